"""Episodes for the browser of the page: a bounded sample of them, and what all of them say of the Mistake Book.

A log of episodes may be larger than memory: one pass notes where each stands and how replayed tests fared, a second
one reads those that were drawn. Their texts, which recur in many of them, stand once in a list.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, get_args

import numpy as np

from codea1_env.judging.verdicts import Status
from codea1_env.rendering.display import clean
from codea1_env.report.embedding import embedded
from codea1_env.report.replays import Replays, entry_key
from codea1_env.report.runs import LoggedRun, is_number
from codea1_env.sandbox import Outcome
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import EPISODES

SAMPLE_BYTES = 3_600_000
"""Size of all episodes of a page together, at most."""
TEXT = 20_000
"""Characters of a program or an answer that are shown."""
TEST = 2_000
"""Characters of a test or of a reason that are shown."""
_COMPARED_LINES = 400
"""Programs with more lines are not compared: the time grows with the square."""
_OUTCOMES = (None, *(outcome.value for outcome in Outcome))


class Catalogue:
    """A list of different things, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.bytes = 0

    def number(self, thing: Hashable) -> int:
        """The number of a thing."""
        if thing not in self._numbers:
            self._numbers[thing] = len(self._numbers)
            self.bytes += len(embedded(thing)) + 1
        return self._numbers[thing]

    def all(self) -> list[Any]:
        """The things by their numbers."""
        return list(self._numbers)


@dataclass(frozen=True)
class EpisodeLog:
    """What one pass over the episodes of a run found."""

    run: LoggedRun
    places: list[tuple[int, int, int]]
    """Step and offset of each whole episode, and the number of the one before for the same problem, or -1."""
    damaged: int
    """Lines that are no whole episodes."""
    replays: Replays


def scan(run: LoggedRun) -> EpisodeLog:
    """Read all episodes of a run once."""
    places: list[tuple[int, int, int]] = []
    last: dict[str, int] = {}
    damaged = begin = 0
    replays = Replays()
    for row, end in every_line(run.path / EPISODES):
        if row is None or not is_episode(row):
            damaged += 1
        else:
            places.append((row["step"], begin, last.get(row["task_id"], -1)))
            last[row["task_id"]] = len(places) - 1
            replays.add(row, len(places) - 1)
        begin = end
    return EpisodeLog(run, places, damaged, replays)


class ReplayedTest(NamedTuple):
    """A test of the Mistake Book, and how often it was replayed."""

    task_id: str
    test: str
    first: int
    """The step in which it first broke a program."""
    last: int
    """The step in which it was last replayed."""
    replays: int
    passed: int


def most_replayed(log: EpisodeLog) -> list[ReplayedTest]:
    """Return the tests of the Mistake Book that were replayed most often, as the log shows."""
    found = log.replays.most_replayed()
    tests = []
    if found:
        with (log.run.path / EPISODES).open("rb") as file:
            for key, entry in found:
                row = read_episode(file, log.places[entry.episode][1])
                task, first = row["task_id"], log.replays.first_broke(key)
                texts = [test["test"] for test in row["history"]]
                text = next(each for each in texts if entry_key(task, each) == key)
                tests.append(
                    ReplayedTest(task, text, first, row["step"], entry.replays, entry.passed)
                )
    return tests


@dataclass
class EpisodeSample:
    """The episodes that a page shows, as its browser reads them."""

    texts: Catalogue = field(default_factory=Catalogue)
    tests: Catalogue = field(default_factory=Catalogue)
    """Of each its text, status, outcome, and why it is not kept as it was written (or None): the texts by number."""
    rows: list[Row] = field(default_factory=list)
    total: int = 0
    """Episodes that there are."""

    def data(self) -> Row:
        """All of it, as JSON has it."""
        return {"texts": self.texts.all(), "tests": self.tests.all(), "episodes": self.rows}

    def text(self, text: str, longest: int = TEXT) -> int:
        """The number of a text, made safe to show."""
        return self.texts.number(shortened(text, longest))

    def test(self, test: Row) -> int:
        """The number of a test with what became of it."""
        reason = self.text(test["reason"], TEST) if test.get("reason") else None
        return self.tests.number(
            (self.text(test["test"], TEST), test["status"], test.get("outcome"), reason)
        )


def shortened(text: str, longest: int = TEXT) -> str:
    """Return a text safe to show, and cut if it is long, which it says."""
    more = f" ... ({len(text) - longest} more characters)" if len(text) > longest else ""
    return clean(text[:longest]) + more


def sample(logs: Sequence[EpisodeLog], limit: int = SAMPLE_BYTES) -> EpisodeSample:
    """Draw as many episodes as fit, of all runs and of all steps alike; the same ones each time.

    Args:
        logs: The runs. Each gets the same share of the room.
        limit: Bytes that all may take as JSON.
    """
    found = EpisodeSample()
    used = 0
    for number, log in enumerate(logs):
        found.total += len(log.places)
        drawn = []
        if log.places:
            with (log.run.path / EPISODES).open("rb") as file:
                for place in drawing_order(log.places):
                    before = found.texts.bytes + found.tests.bytes
                    row = _slim(log, place, number, file, found)
                    used += len(embedded(row)) + found.texts.bytes + found.tests.bytes - before
                    if used > limit * (number + 1) // len(logs):
                        break
                    drawn.append(row)
        found.rows += sorted(drawn, key=lambda row: (row["step"], row["order"]))
    return found


def drawing_order(places: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return the episodes in the order in which they are drawn: one of each step, then another one of each."""
    rng = np.random.default_rng(0)
    taken: dict[int, int] = {}
    ranked: list[tuple[int, int, int]] = []
    for index in rng.permutation(len(places)).tolist():
        step = places[index][0]
        taken[step] = taken.get(step, 0) + 1
        ranked.append((taken[step], len(ranked), index))
    return [index for *_, index in sorted(ranked)]


def _slim(log: EpisodeLog, index: int, run: int, file: IO[bytes], page: EpisodeSample) -> Row:
    """An episode with numbers in place of texts."""
    step, _, before = log.places[index]
    row = read_episode(file, log.places[index][1])
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
                **{
                    name: _number(suite.get(name))
                    for name in ("reward", "validity", "adversarial", "invalid")
                },
                "tests": [page.test(test) for test in suite["tests"]],
            }
            for suite in row["suites"]
        ],
    }
    if row.get("answer", row["code"]) != row["code"]:
        slim["answer"] = page.text(row["answer"])
    if before >= 0:
        last = read_episode(file, log.places[before][1])
        slim["last"] = {
            "step": last["step"],
            "diff": page.text(_difference(last["code"], row["code"])),
        }
    return slim


def read_episode(file: IO[bytes], offset: int) -> Row:
    """Read the episode that begins there."""
    file.seek(offset)
    row: Row = json.loads(file.readline())
    return row


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


def _difference(before: str, now: str) -> str:
    if before == now:
        return "The same program."
    old, new = before[:TEXT].splitlines(), now[:TEXT].splitlines()
    if max(len(old), len(new)) > _COMPARED_LINES:
        return "Too long to compare."
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=2))[2:])


def is_episode(row: Row) -> bool:
    """Tell whether a row has what is read of it, in the types that are expected."""
    tests = [row.get("history")]
    suites = row.get("suites")
    if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
        return False
    tests += [suite.get("tests") for suite in suites]
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


def _number(value: Any) -> float | None:
    return round(value, 4) if is_number(value) else None
