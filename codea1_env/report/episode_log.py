"""The log of a run's episodes, which may be larger than memory: one pass notes where each stands, and what was replayed.

The log has one program of each problem and step.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import numpy as np

from codea1_env.judging.verdicts import Status
from codea1_env.rendering.display import clean
from codea1_env.report.runs import LoggedRun
from codea1_env.sandbox import Outcome
from codea1_env.support.logs import every_line
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import EPISODES

TEXT = 20_000
"""Characters of a program or an answer that are shown."""
TEST = 2_000
"""Characters of a test or of a reason that are shown."""
PAID = ("reward", "validity", "adversarial")
"""What a suite may have been paid, and for what."""
_OUTCOMES = (None, *(outcome.value for outcome in Outcome))


_SHOWN = 20
"""Tests that are listed."""


@dataclass
class BookEntry:
    """How a test of the Mistake Book fared."""

    replays: int = 0
    passed: int = 0
    passes: bool = False
    episode: int = -1
    """The number of the last episode that it was replayed in, where its text can be found."""


@dataclass
class Replays:
    """Counts replayed tests, episode by episode. They are known by their hashes: there may be millions."""

    tests: Counter[int] = field(default_factory=Counter)
    ages: Counter[int] = field(default_factory=Counter)
    """Step -> steps since each of these first broke a program, together."""
    first: dict[int, int] = field(default_factory=dict)
    """Test -> the step in which it first broke a program."""
    relapses: Counter[int] = field(default_factory=Counter)
    """Test -> how often it broke a program after one had passed it."""
    entries: dict[int, BookEntry] = field(default_factory=dict)

    def add(self, episode: Row, number: int) -> None:
        """Count the replayed tests of an episode, and note the new ones that broke its program."""
        step, task = episode["step"], episode["task_id"]
        for test in episode["history"]:
            key = _key(task, test["test"])
            entry = self.entries.setdefault(key, BookEntry())
            passes = test.get("outcome") == "pass"
            if entry.passes and not passes:
                self.relapses[key] += 1
            entry.replays += 1
            entry.passed += passes
            entry.passes = passes
            entry.episode = number
            self.tests[step] += 1
            self.ages[step] += step - self.first.setdefault(key, step)
        for suite in episode["suites"]:
            for test in suite["tests"]:
                if test.get("outcome") not in (None, "pass"):
                    self.first.setdefault(_key(task, test["test"]), step)


class ReplayedTest(NamedTuple):
    """A test of the Mistake Book, and how it fared."""

    task_id: str
    test: str
    first: int
    last: int
    replays: int
    passed: int
    relapses: int
    """How often it broke a program after one had passed it."""


@dataclass(frozen=True)
class EpisodeLog:
    """What one pass over the episodes of a run found."""

    run: LoggedRun
    places: list[tuple[int, int, int]]
    """Step and offset of each whole episode, and the number of the one before for the same problem, or -1."""
    damaged: int
    replays: Replays

    def episode(self, number: int) -> Row:
        """Read an episode by its number."""
        with (self.run.path / EPISODES).open("rb") as file:
            file.seek(self.places[number][1])
            row: Row = json.loads(file.readline())
        return row

    def most_replayed(self) -> list[ReplayedTest]:
        """Return the tests of the Mistake Book that were replayed most often."""
        entries = self.replays.entries
        return self._tests(heapq.nlargest(_SHOWN, entries, key=lambda key: entries[key].replays))

    def came_back(self) -> list[ReplayedTest]:
        """Return the tests that most often broke a program after one had passed them."""
        return self._tests(key for key, _ in self.replays.relapses.most_common(_SHOWN))

    def _tests(self, keys: Iterable[int]) -> list[ReplayedTest]:
        found = []
        for key in keys:
            entry = self.replays.entries[key]
            row = self.episode(entry.episode)
            task = row["task_id"]
            texts = [test["test"] for test in row["history"]]
            text = next(each for each in texts if _key(task, each) == key)
            first, relapses = self.replays.first[key], self.replays.relapses[key]
            found.append(
                ReplayedTest(task, text, first, row["step"], entry.replays, entry.passed, relapses)
            )
        return found


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
            replays.add(row, len(places))
            places.append((row["step"], begin, last.get(row["task_id"], -1)))
            last[row["task_id"]] = len(places) - 1
        begin = end
    return EpisodeLog(run, places, damaged, replays)


def shortened(text: str, longest: int = TEXT) -> str:
    """Return a text safe to show, and cut if it is long, which it says."""
    more = f" ... ({len(text) - longest} more characters)" if len(text) > longest else ""
    return clean(text[:longest]) + more


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


def _key(task_id: str, test: str) -> int:
    return hash((task_id, test))
