"""How replayed tests fared: how old they are, how many pass, and which faults came back."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

from codea1_env.training.metrics import Row

_SHOWN = 20
"""Tests that are listed."""
_KEPT = 10_000
"""Tests whose texts are kept for the list."""


@dataclass
class ReplayCount:
    """The replayed tests of a step."""

    tests: int = 0
    passed: int = 0
    ages: int = 0
    """Steps since each first broke a program, together."""
    oldest: int = 0


@dataclass(frozen=True)
class Relapse:
    """A test that a program passed and a later one failed again."""

    task_id: str
    test: str
    first: int
    """The step in which it first broke a program."""
    times: int
    """How often it broke a program after one had passed it."""


@dataclass
class BookEntry:
    """How often a test was replayed."""

    replays: int = 0
    passed: int = 0
    episode: int = -1
    """The number of the last episode that it was replayed in, where its text can be found."""


@dataclass
class Replays:
    """Counts replayed tests, episode by episode. The log has one program of each problem and step."""

    steps: dict[int, ReplayCount] = field(default_factory=dict)
    _first: dict[int, int] = field(default_factory=dict)
    """Test -> the step in which it first broke a program. Tests are known by their hashes: there may be millions."""
    _passed: set[int] = field(default_factory=set)
    """Tests that the last program passed."""
    _times: Counter[int] = field(default_factory=Counter)
    _texts: dict[int, tuple[str, str]] = field(default_factory=dict)
    entries: dict[int, BookEntry] = field(default_factory=dict)
    """The tests that were replayed."""

    def add(self, episode: Row, number: int = -1) -> None:
        """Count the replayed tests of an episode, and note the new ones that broke its program.

        Args:
            episode: Its row.
            number: Its number in the log.
        """
        step, task = episode["step"], episode["task_id"]
        count = self.steps.setdefault(step, ReplayCount())
        for test in episode["history"]:
            key = entry_key(task, test["test"])
            entry = self.entries.setdefault(key, BookEntry())
            entry.replays += 1
            entry.episode = number
            age = step - self._first.setdefault(key, step)
            count.tests += 1
            count.ages += age
            count.oldest = max(count.oldest, age)
            if test.get("outcome") == "pass":
                count.passed += 1
                entry.passed += 1
                self._passed.add(key)
            elif key in self._passed:
                self._passed.remove(key)
                self._times[key] += 1
                if len(self._texts) < _KEPT:
                    self._texts.setdefault(key, (task, test["test"]))
        for suite in episode["suites"]:
            for test in suite["tests"]:
                if test.get("outcome") not in (None, "pass"):
                    self._first.setdefault(entry_key(task, test["test"]), step)

    def relapses(self) -> list[Relapse]:
        """The tests that came back most often."""
        worst = [key for key, _ in self._times.most_common() if key in self._texts][:_SHOWN]
        return [Relapse(*self._texts[key], self._first[key], self._times[key]) for key in worst]

    def most_replayed(self) -> list[tuple[int, BookEntry]]:
        """The tests that were replayed most often, by their keys."""
        return heapq.nlargest(_SHOWN, self.entries.items(), key=lambda item: item[1].replays)

    def first_broke(self, key: int) -> int:
        """The step in which a test first broke a program."""
        return self._first[key]

    @property
    def relapsed(self) -> int:
        """How many tests came back."""
        return len(self._times)


def entry_key(task_id: str, test: str) -> int:
    """Stand for a test of the book: there may be millions."""
    return hash((task_id, test))
