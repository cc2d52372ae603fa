"""The log of a run's episodes, which may be larger than memory, and the bounded sample of them that a page shows.

Texts of a sample, which recur in many episodes, stand once in a list.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from codea1_env.judging.verdicts import Status
from codea1_env.report.folders import LoggedRun, is_number
from codea1_env.report.sheet import TEST, TEXT, shortened
from codea1_env.sandbox import Outcome
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import EPISODES

_PAID = ("reward", "validity", "adversarial")
"""What a suite may have been paid, and for what."""
SAMPLE_BYTES = 3_600_000
"""Size of all episodes of a page together, at most."""
_COMPARED_LINES = 400
"""Programs with more lines are not compared: the time grows with the square."""
_OUTCOMES = (None, *(outcome.value for outcome in Outcome))


@dataclass(frozen=True)
class EpisodeLog:
    """What one pass over the episodes of a run found."""

    run: LoggedRun
    places: list[tuple[int, int, int]]
    """Step and offset of each whole episode, and the number of one of the same problem in the step or round before, or -1."""
    damaged: int

    def episode(self, number: int) -> Row:
        """Read an episode by its number."""
        with (self.run.path / EPISODES).open("rb") as file:
            file.seek(self.places[number][1])
            row: Row = json.loads(file.readline())
        return row


def scan(run: LoggedRun) -> EpisodeLog:
    """Read all episodes of a run once."""
    places: list[tuple[int, int, int]] = []
    last: dict[
        str, tuple[Any, int, int]
    ] = {}  # step and round, their first episode, the one before
    damaged = begin = 0
    for row, end in every_line(run.path / EPISODES):
        if row is None or not is_episode(row):
            damaged += 1
        else:
            now = row["step"], row.get("round")
            known, first, before = last.get(row["task_id"], (None, -1, -1))
            if known != now:
                last[row["task_id"]] = now, len(places), (before := first)
            places.append((row["step"], begin, before))
        begin = end
    return EpisodeLog(run, places, damaged)


def _drawing_order(places: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the episodes in the order in which they are drawn: one of each step, then another one of each."""
    rng = np.random.default_rng(0)
    taken: dict[int, int] = {}
    ranked: list[tuple[int, int, int]] = []
    for index in rng.permutation(len(places)).tolist():
        step = places[index][0]
        taken[step] = taken.get(step, 0) + 1
        ranked.append((taken[step], len(ranked), index))
    return [index for *_, index in sorted(ranked)]


def outcome_of(row: Row) -> tuple[str, str]:
    """Tell what became of a program, and who won."""
    if not row.get("executes"):
        return "does not run", "tester"
    new = [test.get("outcome") for suite in row["suites"] for test in suite["tests"]]
    old = [test.get("outcome") for test in row["history"]]
    if any(outcome not in (None, "pass") for outcome in new):
        return "broken by new tests", "tester"
    if any(outcome not in (None, "pass") for outcome in old):
        return "broken by replayed tests only", "tester"
    if any((*new, *old)):
        return "passes all tests", "coder"
    return "met no valid test", "nobody"


def is_episode(row: Row) -> bool:
    """Whether a row has what is read of it, in the types that are expected."""
    suites = row.get("suites")
    if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
        return False
    tests = [row.get("history"), *(suite.get("tests") for suite in suites)]
    texts = [row.get(name) for name in ("task_id", "problem", "code")]
    texts += [suite.get("answer", "") for suite in suites] + [row.get("answer", "")]
    return (
        type(row.get("step")) is int
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(each, list) for each in tests)
        and all(_is_test(test) for each in tests for test in each or ())
    )


def _is_test(test: Any) -> bool:
    return (
        isinstance(test, dict)
        and isinstance(test.get("test"), str)
        and test.get("status") in get_args(Status)
        and test.get("outcome") in _OUTCOMES
        and isinstance(test.get("reason", ""), str)
    )


# The sample of a page


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
    """Text, status, outcome, and the reason why a test is not kept as written (or None); texts by number."""
    rows: list[Row] = field(default_factory=list)
    total: int = 0

    def fit(self, rows: Iterator[Row], room: int) -> tuple[list[Row], int]:
        """Take rows as long as they fit with their texts, which come in as a row is made; also returns the bytes they took."""
        taken: list[Row] = []
        used = 0
        before = self.texts.bytes + self.tests.bytes
        for row in rows:
            now = self.texts.bytes + self.tests.bytes
            used += len(embedded(row)) + now - before
            before = now
            if used > room:
                break
            taken.append(row)
        return taken, used

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
        rows = (_slim(log, place, number, found) for place in _drawing_order(log.places))
        drawn, spent = found.fit(rows, limit * (number + 1) // len(logs) - used)
        used += spent
        found.rows += sorted(drawn, key=lambda row: (row["step"], row["order"]))
    return found


def _slim(log: EpisodeLog, index: int, run: int, page: EpisodeSample) -> Row:
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
                **{name: _number(suite.get(name)) for name in (*_PAID, "invalid")},
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
