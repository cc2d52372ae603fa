"""How replayed tests fared: how old they are, how many pass, and which faults came back."""

from __future__ import annotations

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
class Replays:
    """Counts replayed tests, episode by episode. The log has one program of each problem and step."""

    steps: dict[int, ReplayCount] = field(default_factory=dict)
    _first: dict[int, int] = field(default_factory=dict)
    """Test -> the step in which it first broke a program. Tests are known by their hashes: there may be millions."""
    _passed: set[int] = field(default_factory=set)
    """Tests that the last program passed."""
    _times: Counter[int] = field(default_factory=Counter)
    _texts: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, episode: Row) -> None:
        """Count the replayed tests of an episode, and note the new ones that broke its program."""
        step, task = episode["step"], episode["task_id"]
        count = self.steps.setdefault(step, ReplayCount())
        for test in episode["history"]:
            key = hash((task, test["test"]))
            age = step - self._first.setdefault(key, step)
            count.tests += 1
            count.ages += age
            count.oldest = max(count.oldest, age)
            if test.get("outcome") == "pass":
                count.passed += 1
                self._passed.add(key)
            elif key in self._passed:
                self._passed.remove(key)
                self._times[key] += 1
                if len(self._texts) < _KEPT:
                    self._texts.setdefault(key, (task, test["test"]))
        for suite in episode["suites"]:
            for test in suite["tests"]:
                if test.get("outcome") not in (None, "pass"):
                    self._first.setdefault(hash((task, test["test"])), step)

    def relapses(self) -> list[Relapse]:
        """The tests that came back most often."""
        worst = [key for key, _ in self._times.most_common() if key in self._texts][:_SHOWN]
        return [Relapse(*self._texts[key], self._first[key], self._times[key]) for key in worst]

    @property
    def relapsed(self) -> int:
        """How many tests came back."""
        return len(self._times)
