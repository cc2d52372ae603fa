"""Rounds of an id in NumPy: who plays what, what both players are paid, and the Mistake Book.

What counts follows the rules of `codea1_env.referee` and `codea1_env.mistake_book` for rounds of one program and one suite,
with an unbounded book that changes after each group of 32 rounds; what is paid for it says `codea1_env.rewards`. The real
referee checks it (`codea1_env.suite.checking`).
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from codea1_env.rewards import RewardConfig, SuiteOutcome, suite_rewards
from codea1_env.suite.tasks import GROUP, SuiteError, SuiteTask
from codea1_env.suite.worlds import Bools, Floats, Ints, world_of

_AGES = 1 << 40


class Payoffs(NamedTuple):
    """What came of some rounds: arrays with an entry for each."""

    coder: Floats
    tester: Floats
    replayed: Ints
    """Cells of the book's tests that were replayed, shape (n, size); -1 where there are fewer."""


@functools.lru_cache(maxsize=16)
def paid_for(config: RewardConfig, size: int) -> Floats:
    """Return what is paid to coder and tester, and validity, as the last axis of a table.

    The others are: different calls of a suite; how many of them the program fails; right tests; replayed tests, `size` at
    most; how many of them it passes.
    """
    k = config.num_tests
    table = np.zeros((k + 1, k + 1, k + 1, size + 1, size + 1, 3))
    for made, right, known in itertools.product(range(1, k + 1), range(k + 1), range(size + 1)):
        for broke, kept in itertools.product(range(made + 1), range(known + 1)):
            # Only `incremental` looks at places: a suite is never longer than K.
            outcome = SuiteOutcome(True, [i < broke for i in range(made)], k - right, kept, known)
            paid = suite_rewards(outcome, config)
            table[made, broke, right, known, kept] = paid.code, paid.test, paid.validity
    return table


class Book:
    """Mistake Books of all problems: how often each cell broke a program, less the programs that passed it since."""

    def __init__(self, task: SuiteTask, golden: Ints) -> None:
        self._fixed = task.book in ("golden", "none")
        self._passing = task.book == "passing"
        self.size = golden.shape[1] if self._fixed else task.K
        self.count = np.zeros((task.problems, task.C), np.int64)
        self._entered = np.zeros((task.problems, task.C), np.int64)
        self._clock = 0
        self.cells = golden.copy() if self._fixed else np.full((task.problems, task.K), -1)
        """Cells that are replayed next, the most frequent first, of equals the older; -1 where there are fewer."""

    def update(self, problem: Ints, failed: Bools, tests: Ints, passed: Bools) -> None:
        """Enter some rounds.

        `failed` says which `tests` of the suites, shape (rounds, K), are new calls and broke the program; `passed` which of the
        replayed calls, shape (rounds, `size`), the program passed.
        """
        if self._fixed:
            return
        if self._passing:  # a control: what broke nothing enters, until it breaks a program
            broke, failed, passed = failed, ~failed, (self.cells[problem] >= 0) & ~passed
            gone = [np.repeat(problem, each.sum(axis=1)) for each in (broke, passed)]
            left = np.concatenate(gone), np.concatenate([tests[broke], self.cells[problem][passed]])
        rows, columns = np.nonzero(passed)
        whose, cells = problem[rows], self.cells[problem[rows], columns]
        np.subtract.at(self.count, (whose, cells), 1)
        self.count[whose, cells] = np.maximum(self.count[whose, cells], 0)
        rows, columns = np.nonzero(failed)
        whose, cells = problem[rows], tests[rows, columns]
        new = np.flatnonzero(self.count[whose, cells] == 0)[::-1]
        self._entered[whose[new], cells[new]] = self._clock + new  # the first of equals comes last
        self._clock += len(rows)
        np.add.at(self.count, (whose, cells), 1)
        if self._passing:
            self.count[left] = 0
        played = np.unique(problem)  # find what is replayed next on these
        count = self.count[played]
        rank = np.where(count > 0, count * _AGES - self._entered[played], -1)
        here = np.arange(len(played))
        for place in range(self.size):
            best = rank.argmax(axis=1)
            self.cells[played, place] = np.where(rank[here, best] < 0, -1, best)
            rank[here, best] = -1


class Rounds:
    """The rounds of an id, in the order in which they end."""

    def __init__(self, task: SuiteTask, seed: int) -> None:
        self.task, self.world = task, world_of(task, seed)
        self.recorder: Any = None
        """The `codea1_env.suite.records.Recorder`, if what is played is recorded."""
        self.restart()

    def restart(self) -> None:
        """Go back to the first episode, with an empty book."""
        task = self.task
        self.book = Book(task, self.world.golden)
        self.begun, self.ended = 0, 0
        self._open: set[int] = set()
        self._waiting: list[tuple[Any, Any, Any, Any]] = []
        self._judges: dict[int, int] = {}
        config = RewardConfig(task.alpha, task.K, function=task.rewards)
        table = paid_for(config, self.book.size)
        self._paid = table.reshape(-1, table.shape[-1])
        lengths = [task.K, task.K, task.K, self.book.size, self.book.size]
        self._steps = np.repeat(np.array(table.strides[:-1]) // table.strides[-2], lengths)
        """How many rows of `_paid` farther a mark of a round stands: see `judge`."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Rounds:
        """A copy is a game of its own, without a record."""
        memo[id(self.world)], memo[id(self.recorder)] = self.world, None
        copied = memo[id(self)] = copy.copy(self)
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    def begin(self, number: int) -> Ints:
        """Return the numbers of the next episodes; a SuiteError if their record was closed before it was whole."""
        if self.recorder is not None:
            self.recorder.check_open()
        self.begun += number
        self._open.update(range(self.begun - number, self.begun))
        return np.arange(self.begun - number, self.begun)

    def end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        """Judge, pay and record rounds, and let the book learn of them after each group; a SuiteError if one has ended before."""
        ended = episodes.tolist()
        if not self._open.issuperset(ended):
            over = min(set(ended) - self._open)
            raise SuiteError(
                f"Expect each episode to end once, actually: episode {over} is over. Begin the next one."
            )
        self._open.difference_update(ended)
        parts, start = [], 0
        while start < len(episodes):
            stop = start + self._at_once(episodes[start:])
            parts.append(self._end(episodes[start:stop], programs[start:stop], tests[start:stop]))
            start = stop
        paid = parts[0]
        if len(parts) > 1:
            paid = Payoffs(*map(np.concatenate, zip(*parts, strict=True)))
        if self.recorder is not None:
            self.recorder.add(self, (episodes, programs, tests, paid.replayed))
        return paid

    def _at_once(self, episodes: Ints) -> int:
        """Return how many rounds can be judged before a book that one of them needs changes."""
        left = GROUP - self.ended % GROUP
        whole = min(len(episodes), GROUP * self.task.problems) // GROUP * GROUP
        aligned = left == GROUP and whole and episodes[0] % GROUP == 0
        if aligned and episodes[whole - 1] - episodes[0] == whole - 1:  # different problems
            return whole
        return min(len(episodes), left)

    def _end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        problem, _ = at = self.world.at(episodes)
        replayed = self.book.cells.take(problem, axis=0)
        failed, passed, paid = self.judge(at, (episodes, programs, tests, replayed))
        self._waiting.append((problem, failed, tests, passed))
        self.ended += len(episodes)
        if self.ended % GROUP == 0:
            self.book.update(*(np.concatenate(each) for each in zip(*self._waiting, strict=True)))
            self._waiting = []
        return Payoffs(paid[:, 0], paid[:, 1], replayed)

    def judge(
        self, at: tuple[Ints, Ints], played: Sequence[Ints], *, truly: bool = False
    ) -> tuple[Bools, Bools, Floats]:
        """Judge rounds, with the wrong verdicts that some ids have, or (`truly`) without.

        `at` is what `world.at` says of the episodes; `played` are episodes, programs, tests, and tests of the book.
        Returns which tests of the suites are new calls and break the program, which replayed ones it passes, and what is paid.
        """
        world, k, (problem, index) = self.world, self.task.K, at
        episodes, programs, tests, replayed = played
        cells = np.concatenate([tests, replayed], axis=1)
        fails = (world.faulty if truly else world.seen)[index[:, None], programs[:, None], cells]
        right = world.valid[problem[:, None], tests]
        if self.task.judged < 1:
            judges = self.judges_of(episodes, programs)
            said = world.values(problem, index, judges, cells)
            fails = world.values(problem, index, programs, cells) != said
            right = world.predicted[problem[:, None], tests] == said[:, :k]
        if self.task.wrong and not self.task.fate and not truly:  # `seen` has fate's errors
            fails = fails ^ world.errors(episodes, cells.shape[1])
        made, known = ~again_in(tests), replayed >= 0
        failed, passed = fails[:, :k] & made, known & ~fails[:, k:]
        marks = np.concatenate([made, failed, right, known, passed], axis=1)
        return failed, passed, self._paid.take(marks.dot(self._steps), axis=0)

    def judges_of(self, episodes: Ints, programs: Ints) -> Ints:
        """Return the programs that judge rounds, -1 for the reference: in some groups it is the first one that is played."""
        groups = (episodes // GROUP % self.world.groups).tolist()
        for group, program in zip(groups, programs.tolist(), strict=True):
            self._judges.setdefault(group, program if self.world.own_judge[group] else -1)
        return np.array([self._judges[group] for group in groups])


def again_in(tests: Ints) -> Bools:
    """Return which tests of a suite make a call that one before them makes."""
    equal = tests[:, :, None] == tests[:, None, :]
    return np.asarray(equal.argmax(axis=2) < np.arange(tests.shape[1]))
