"""Rounds of an id in NumPy: who plays what, what both players are paid, and the Mistake Book.

The rules are those of `codea1_env.referee`, `codea1_env.rewards` and `codea1_env.mistake_book` for rounds of one program and
one suite, with an unbounded book that changes after each group of 32 rounds. The real referee checks it
(`codea1_env.suite.checking`).

passed = v - f        of v different calls of the suite, of which the program does not pass f
coder  = mean(passed / v, passed_h / h)                     h tests were replayed
tester = alpha clip(min(v/K, 1 - i/K), 0, 1) + (1 - alpha) (f/K - (h - passed_h)/h + 1) / 2      f/K where h = 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from codea1_env.rewards import RewardConfig, SuiteOutcome, find_reward
from codea1_env.suite.tasks import GROUP, SuiteTask
from codea1_env.suite.worlds import Bools, Floats, Ints, world_of

_AGES = 1 << 40


class Payoffs(NamedTuple):
    """What came of some rounds: arrays with an entry for each."""

    coder: Floats
    tester: Floats
    validity: Floats
    right: Bools
    """Whether the program is right on all cells."""
    killed: Bools
    """Whether the suite breaks the program, by what is true and not by what the judge says."""
    known: Ints
    """How many tests of the book were replayed."""
    replayed: Ints
    """Their cells, shape (n, size); behind `known` of them it says nothing."""


class One(NamedTuple):
    """What came of one round."""

    coder: float
    tester: float
    known: int
    replayed: Sequence[int]


class Book:
    """Mistake Books of all problems: how often each cell broke a program, less the programs that passed it since."""

    def __init__(self, task: SuiteTask, golden: Ints) -> None:
        self._fixed = task.book in ("golden", "none")
        self._passing = task.book == "passing"
        self.size = golden.shape[1] if self._fixed else task.K
        self.count = np.zeros((task.problems, task.C), np.int64)
        self._entered = np.zeros((task.problems, task.C), np.int64)
        self._clock = 0
        self.cells = golden.copy() if self._fixed else np.zeros((task.problems, task.K), np.int64)
        """Cells that are replayed next, the most frequent first, of equals the older."""
        self.known = np.full(task.problems, self.size if self._fixed else 0)
        """How many of them there are."""
        self._lists: dict[int, tuple[list[int], int]] = {}

    def lists(self, problem: int) -> tuple[list[int], int]:
        """Return the cells that are replayed next on a problem, and how many of them count."""
        found = self._lists.get(problem)
        if found is None:
            found = self._lists[problem] = self.cells[problem].tolist(), int(self.known[problem])
        return found

    def update(self, problem: Ints, failed: Bools, tests: Ints, passed: Bools) -> None:
        """Enter some rounds: new calls that broke programs, and replayed ones that programs passed.

        Args:
            problem: Problem of each round.
            failed: Which calls of the suite, shape (rounds, K), are new and broke the program.
            tests: Cells of the suites, of the same shape.
            passed: Which of the replayed calls, shape (rounds, `size`), the program passed.
        """
        if self._fixed:
            return
        self._lists.clear()
        if (
            self._passing
        ):  # a control: what broke nothing enters, and leaves when it breaks a program
            kept = np.arange(self.size) < self.known[problem][:, None]
            broke, failed, passed = failed, ~failed, kept & ~passed
            gone = np.concatenate([np.repeat(problem, broke.sum(axis=1)), np.repeat(problem, passed.sum(axis=1))])  # fmt: skip
            left = gone, np.concatenate([tests[broke], self.cells[problem][passed]])
        rows, columns = np.nonzero(passed)
        whose, cells = problem[rows], self.cells[problem[rows], columns]
        np.subtract.at(self.count, (whose, cells), 1)
        self.count[whose, cells] = np.maximum(self.count[whose, cells], 0)
        rows, columns = np.nonzero(failed)
        whose, cells = problem[rows], tests[rows, columns]
        new = np.flatnonzero(self.count[whose, cells] == 0)[
            ::-1
        ]  # the first of equals is written last
        self._entered[whose[new], cells[new]] = self._clock + new
        self._clock += len(rows)
        np.add.at(self.count, (whose, cells), 1)
        if self._passing:
            self.count[left] = 0
        played = np.unique(problem)
        count = self.count[played]
        rank = np.where(count > 0, count * _AGES - self._entered[played], -1)
        here = np.arange(len(played))
        for place in range(self.size):
            best = rank.argmax(axis=1)
            self.cells[played, place] = best
            rank[here, best] = -1
        self.known[played] = np.minimum((count > 0).sum(axis=1), self.size)


class Rounds:
    """The rounds of an id, in the order in which they end. Episode e is about problem e // 32 modulo the problems.

    Args:
        task: The id.
        seed: The world's.

    Example:
        >>> from codea1_env.suite.tasks import find_task
        >>> rounds = Rounds(find_task("rare-faults/0"), seed=0)
        >>> episodes = rounds.begin(32)
        >>> paid = rounds.end(episodes, np.zeros(32, int), np.tile([3, 4], (32, 1)))
        >>> float(paid.validity[0]), paid.coder.shape
        (1.0, (32,))
    """

    def __init__(self, task: SuiteTask, seed: int) -> None:
        self.task, self.world = task, world_of(task, seed)
        self.restart()

    def restart(self) -> None:
        """Go back to the first episode, with an empty book."""
        self.book = Book(self.task, self.world.golden)
        self.begun, self.ended = 0, 0
        self._waiting: list[tuple[Any, Any, Any, Any]] = []
        self._count = 0
        self._places = np.arange(self.book.size)
        self._judges: dict[int, int] = {}
        self._paid: dict[tuple[int, ...], tuple[float, float]] = {}

    def begin(self, number: int) -> Ints:
        """Return the numbers of the next episodes."""
        self.begun += number
        return np.arange(self.begun - number, self.begun)

    def group_of(self, episodes: Ints) -> Ints:
        """Return the groups of episodes; behind the last they begin anew."""
        return episodes // GROUP % self.world.groups

    def problem_of(self, episodes: Ints) -> Ints:
        """Return the problems of episodes."""
        return self.group_of(episodes) % self.task.problems

    def end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        """Judge and pay rounds, and let the book learn of them after each group.

        Args:
            episodes: Numbers that `begin` returned, shape (n,).
            programs: The coder's choices, shape (n,).
            tests: Cells of the suites, shape (n, K).
        """
        parts, start = [], 0
        while start < len(episodes):
            stop = start + self._at_once(episodes[start:])
            parts.append(self._end(episodes[start:stop], programs[start:stop], tests[start:stop]))
            start = stop
        if len(parts) == 1:
            return parts[0]
        return Payoffs(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _at_once(self, episodes: Ints) -> int:
        """Return how many rounds can be judged before a book that one of them needs changes."""
        whole = min(len(episodes), GROUP * self.task.problems) // GROUP * GROUP
        begins = whole and not self._count and episodes[0] % GROUP == 0
        if begins and episodes[whole - 1] - episodes[0] == whole - 1:  # different problems
            return int(whole)
        return min(len(episodes), GROUP - self._count)

    def end_one(self, episode: int, program: int, suite: Sequence[int]) -> One:
        """Do what `end` does for one round, without arrays of one entry."""
        task, world = self.task, self.world
        if task.judged < 1 or task.rewards != "code-a1":
            paid = self.end(np.array([episode]), np.array([program]), np.array([suite]))
            return One(float(paid.coder[0]), float(paid.tester[0]), int(paid.known[0]), paid.replayed[0].tolist())  # fmt: skip
        group = episode // GROUP % world.groups
        problem = group % task.problems
        seen, valid = world.bytes
        start = ((problem if task.kind == "fixed" else group) * task.programs + program) * task.C
        fails = [seen[start + cell] for cell in suite]
        replayed, known = self.book.lists(problem)
        fails_old = [seen[start + cell] for cell in replayed]
        if task.wrong and not task.fate:
            errors = world.errors(np.array([episode]), len(fails) + len(fails_old))[0].tolist()
            fails = [one ^ error for one, error in zip(fails, errors[: task.K], strict=True)]
            fails_old = [
                one ^ error for one, error in zip(fails_old, errors[task.K :], strict=True)
            ]
        failed = [bool(one) and cell not in suite[:i] for i, (cell, one) in enumerate(zip(suite, fails, strict=True))]  # fmt: skip
        passed = [not one and i < known for i, one in enumerate(fails_old)]
        k, made, broke, kept = task.K, len(set(suite)), sum(failed), sum(passed)
        invalid = k - sum([valid[problem * task.C + cell] for cell in suite])
        coder, adversarial = (made - broke) / made, broke / k
        if known:
            coder = (coder + kept / known) / 2
            adversarial = (adversarial - (known - kept) / known + 1) / 2
        validity = min(max(min(made / k, 1 - invalid / k), 0.0), 1.0)
        self._waiting.append(([problem], [failed], [list(suite)], [passed]))
        self._count += 1
        if self._count == GROUP:
            self._learn_waiting()
        self.ended += 1
        return One(coder, task.alpha * validity + (1 - task.alpha) * adversarial, known, replayed)

    def _end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        world = self.world
        group = self.group_of(episodes)
        problem = group % self.task.problems
        index = world.of(group, problem)
        replayed, known = self.book.cells[problem], self.book.known[problem]
        again = again_in(tests)
        made = self._places < known[:, None]
        fails = world.seen[index[:, None], programs[:, None], tests]
        fails_old = world.seen[index[:, None], programs[:, None], replayed]
        right_values = world.valid[problem[:, None], tests]
        if self.task.judged < 1:
            fails, right_values = self.judged(group, programs, tests)
            fails_old, _ = self.judged(group, programs, replayed)
        if self.task.wrong:
            errors = world.errors(episodes, fails.shape[1] + fails_old.shape[1])
            fails, fails_old = (
                fails ^ errors[:, : self.task.K],
                fails_old ^ errors[:, self.task.K :],
            )
        failed, passed = fails & ~again, ~fails_old & made
        coder, tester, validity = self.pay(right_values, again, failed, known, passed)
        self._learn(problem, failed, tests, passed)
        self.ended += len(episodes)
        killed = failed
        if self.task.wrong or self.task.judged < 1:
            killed = world.faulty[index[:, None], programs[:, None], tests]
        right, broken = world.right[problem, programs], np.asarray(killed.any(axis=1))
        return Payoffs(coder, tester, validity, right, broken, known, replayed)

    def judged(self, group: Ints, programs: Ints, cells: Ints) -> tuple[Bools, Bools]:
        """Return which calls programs fail and which tests of the pool predict the right value, by who judges each group.

        In groups whose own programs judge it is the first one that is played.
        """
        world, problem = self.world, group % self.task.problems
        judges = self.judges_of(group, programs)
        true = np.where((judges < 0)[:, None], world.table[problem[:, None], cells], world.values(problem, np.maximum(judges, 0), cells))  # fmt: skip
        right = world.predicted[problem[:, None], cells] == true
        return world.values(problem, programs, cells) != true, right

    def judges_of(self, group: Ints, programs: Ints) -> Ints:
        """Return the programs that judge rounds; -1 for the reference."""
        for each, program in zip(group.tolist(), programs.tolist(), strict=True):
            self._judges.setdefault(each, program if self.world.own_judge[each] else -1)
        return np.array([self._judges[each] for each in group.tolist()])

    def pay(
        self, right_values: Bools, again: Bools, failed: Bools, known: Ints, passed: Bools
    ) -> tuple[Floats, Floats, Floats]:
        """Return rewards of coders and testers, and validity.

        Args:
            right_values: Which tests of the suites predict the right value, shape (rounds, K).
            again: Which make a call that one before them makes.
            failed: Which others the program fails.
            known: How many tests are replayed in each round.
            passed: Which of these the program passes.
        """
        k, alpha = self.task.K, self.task.alpha
        made = k - again.sum(axis=1)
        broke = failed.sum(axis=1)
        kept = passed.sum(axis=1)
        invalid = (~right_values).sum(axis=1)
        total = np.maximum(known, 1)
        some = known > 0
        new = (made - broke) / made
        coder = np.where(some, (new + kept / total) / 2, new)
        validity = np.clip(np.minimum(made / k, 1 - invalid / k), 0, 1)
        if self.task.rewards != "code-a1":
            rows = zip(
                *(each.tolist() for each in (made, broke, invalid, known, kept)), strict=True
            )
            other = np.array([self._pay_otherwise(row) for row in rows])
            return other[:, 0], other[:, 1], validity
        adversarial = np.where(some, (broke / k - (known - kept) / total + 1) / 2, broke / k)
        return coder, alpha * validity + (1 - alpha) * adversarial, validity

    def _pay_otherwise(self, row: tuple[int, ...]) -> tuple[float, float]:
        """Return what another rule pays: made, broke, invalid, known and kept tests decide it."""
        if row not in self._paid:
            made, broke, invalid, known, kept = row
            # Only `incremental` looks at places: a suite is never longer than K.
            outcome = SuiteOutcome(True, [i < broke for i in range(made)], invalid, kept, known)
            config = RewardConfig(self.task.alpha, self.task.K)
            coder, tester = find_reward(self.task.rewards)(outcome, config)
            self._paid[row] = (coder or 0.0, tester)
        return self._paid[row]

    def _learn(self, problem: Ints, failed: Bools, tests: Ints, passed: Bools) -> None:
        if self._count or len(problem) < GROUP:
            self._waiting.append((problem, failed, tests, passed))
            self._count += len(problem)
            if self._count == GROUP:
                self._learn_waiting()
            return
        self.book.update(problem, failed, tests, passed)

    def _learn_waiting(self) -> None:
        self.book.update(*(np.concatenate(each) for each in zip(*self._waiting, strict=True)))
        self._waiting, self._count = [], 0


def again_in(tests: Ints) -> Bools:
    """Return which tests of a suite make a call that one before them makes."""
    again = np.zeros(tests.shape, np.bool_)
    for place in range(1, tests.shape[1]):
        again[:, place] = (tests[:, :place] == tests[:, place : place + 1]).any(axis=1)
    return again
