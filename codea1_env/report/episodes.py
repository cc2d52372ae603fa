"""Episodes for the browser of the page: a bounded sample of them.

Their texts, which recur in many of them, stand once in a list.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.report.episode_log import (
    PAID,
    TEST,
    TEXT,
    EpisodeLog,
    drawing_order,
    outcome_of,
    shortened,
)
from codea1_env.report.runs import is_number
from codea1_env.training.metrics import Row

SAMPLE_BYTES = 3_600_000
"""Size of all episodes of a page together, at most."""
_COMPARED_LINES = 400
"""Programs with more lines are not compared: the time grows with the square."""


def embedded(value: Any) -> str:
    r"""JSON in ASCII without a character that HTML could read as more than text.

    Example:
        >>> embedded({"a": "</script><!-- é"})
        '{"a":"\\u003c/script\\u003e\\u003c!-- \\u00e9"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


class Catalogue:
    """A list of different things, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.bytes = 0

    def number(self, thing: Hashable) -> int:
        """Return the number of a thing."""
        if thing not in self._numbers:
            self._numbers[thing] = len(self._numbers)
            self.bytes += len(embedded(thing)) + 1
        return self._numbers[thing]

    def all(self) -> list[Any]:
        """Return the things by their numbers."""
        return list(self._numbers)


@dataclass
class EpisodeSample:
    """The episodes that a page shows, as its browser reads them."""

    texts: Catalogue = field(default_factory=Catalogue)
    tests: Catalogue = field(default_factory=Catalogue)
    """Of each its text, status, outcome, and why it is not kept as it was written (or None): the texts by number."""
    rows: list[Row] = field(default_factory=list)
    total: int = 0

    def data(self) -> Row:
        """All of it, as JSON has it."""
        return {"texts": self.texts.all(), "tests": self.tests.all(), "episodes": self.rows}

    def text(self, text: str, longest: int = TEXT) -> int:
        """Return the number of a text, made safe to show."""
        return self.texts.number(shortened(text, longest))

    def test(self, test: Row) -> int:
        """The number of a test with what became of it."""
        reason = self.text(test["reason"], TEST) if test.get("reason") else None
        return self.tests.number(
            (self.text(test["test"], TEST), test["status"], test.get("outcome"), reason)
        )


def sample(logs: Sequence[EpisodeLog], limit: int = SAMPLE_BYTES) -> EpisodeSample:
    """Draw as many episodes as fit, of all runs and of all steps alike; the same ones each time."""
    found = EpisodeSample()
    used = 0
    for number, log in enumerate(logs):
        found.total += len(log.places)
        drawn = []
        for place in drawing_order(log.places):
            before = found.texts.bytes + found.tests.bytes
            row = _slim(log, place, number, found)
            used += len(embedded(row)) + found.texts.bytes + found.tests.bytes - before
            if used > limit * (number + 1) // len(logs):
                break
            drawn.append(row)
        found.rows += sorted(drawn, key=lambda row: (row["step"], row["order"]))
    return found


def _slim(log: EpisodeLog, index: int, run: int, page: EpisodeSample) -> Row:
    """Return an episode with numbers in place of texts."""
    step, _, before = log.places[index]
    row = log.episode(index)
    outcome, winner = outcome_of(row)
    slim: Row = {
        "run": run,
        "order": index,
        "step": step,
        "task": page.text(row["task_id"], TEST),
        "program": _number(row.get("program")),
        "problem": page.text(row["problem"]),
        "code": page.text(row["code"]),
        "outcome": outcome,
        "winner": winner,
        "executes": bool(row.get("executes")),
        "reward": _number(row.get("reward")),
        "history": [page.test(test) for test in row["history"]],
        "suites": [
            {
                **({"answer": page.text(suite["answer"])} if "answer" in suite else {}),
                **{name: _number(suite.get(name)) for name in (*PAID, "invalid")},
                "tests": [page.test(test) for test in suite["tests"]],
            }
            for suite in row["suites"]
        ],
    }
    if row.get("answer", row["code"]) != row["code"]:
        slim["answer"] = page.text(row["answer"])
    if before >= 0:
        last = log.episode(before)
        difference = page.text(_difference(last["code"], row["code"]))
        slim["last"] = {"step": last["step"], "diff": difference}
    return slim


def _difference(before: str, now: str) -> str:
    if before == now:
        return "The same program."
    old, new = before[:TEXT].splitlines(), now[:TEXT].splitlines()
    if max(len(old), len(new)) > _COMPARED_LINES:
        return "Too long to compare."
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=2))[2:])


def _number(value: Any) -> float | None:
    return round(value, 4) if is_number(value) else None
