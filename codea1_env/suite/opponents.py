"""Opponents of one side, and the players that learn nothing: functions of the world, so that every world has them.

What they do in an episode follows from the world, a salt (a seed that was given to `reset`) and the episode's number.
Four episodes in a row meet the same choice of a coder, so that groups of suites attack one program.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from codea1_env.suite.rounds import Rounds
from codea1_env.suite.tasks import GROUP, SuiteError
from codea1_env.suite.worlds import Bools, Ints, SuiteWorld

SUITES = 4
"""Episodes in a row with one program of an opponent."""
_MOST_RIGHT = 0.5
"""Share of right programs that the population of coders comes to; it rises evenly, from 0."""
_INFORMED = 0.25
"""Share of the population's suites that have a faulty cell, if the program has one."""

Kind = Literal["population", "random", "oracle", "fixed", "pool"]


class CoderOpponent:
    """Chooses programs.

    Args:
        world: The world.
        kind: "population": more and more right programs, wrong ones evenly; "random": all evenly; "oracle": right ones.
        salt: A seed.
    """

    def __init__(self, world: SuiteWorld, kind: Kind = "population", salt: int = 0) -> None:
        blocks = world.groups * GROUP // SUITES
        rng = np.random.default_rng([world.seed, 1, salt])
        task = world.task
        group = np.arange(blocks) * SUITES // GROUP
        most = {"population": _MOST_RIGHT * group / world.groups, "oracle": np.ones(blocks)}
        share = most.get(kind, np.full(blocks, task.right / task.programs))
        right = world.right[group % task.problems]
        wanted = right == (rng.random(blocks) < share)[:, None]
        wanted |= ~wanted.any(axis=1, keepdims=True)  # where no program is right
        self._choice = np.where(wanted, rng.random(wanted.shape), -1.0).argmax(axis=1)

    def choose(self, episodes: Ints) -> Ints:
        """Return the programs of episodes."""
        choice: Ints = self._choice[episodes // SUITES % len(self._choice)]
        return choice


class TesterOpponent:
    """Chooses suites of different tests.

    Args:
        world: The world.
        kind: "population": drawn evenly, and a fourth of the suites begins with a faulty cell; "random": drawn evenly;
            "oracle": begins with a faulty cell and predicts right values; "fixed": of a problem always the same 4 suites, with as
            many different tests as four random ones; "pool": cells on which programs of the pool are wrong, any of them.
        salt: A seed.
    """

    def __init__(self, world: SuiteWorld, kind: Kind = "population", salt: int = 0) -> None:
        self.world, self._kind = world, kind
        task, episodes = world.task, world.groups * GROUP
        rng = np.random.default_rng([world.seed, 2, salt])
        self._cells = rng.integers(task.C, size=(episodes, task.K))
        while (same := _twice(self._cells)).any():
            self._cells[same] = rng.integers(task.C, size=(int(same.sum()), task.K))
        if kind == "fixed":
            problem = np.arange(episodes) // GROUP % task.problems
            self._cells = self._cells[problem * GROUP + np.arange(episodes) % SUITES]
        elif kind == "pool":
            self._cells = _of_the_pool(world, episodes, rng)
        share = {"population": _INFORMED, "oracle": 1.0}.get(kind, 0.0)
        self._informed = rng.random(episodes) < share
        self._start = rng.integers(task.C, size=episodes)

    def choose(self, episodes: Ints, rounds: Rounds, programs: Ints) -> Ints:
        """Return the suites of episodes against programs, shape (n, K)."""
        at = episodes % len(self._cells)
        tests: Ints = self._cells[at].copy()
        group = rounds.group_of(episodes)
        problem = group % self.world.task.problems
        if self._kind == "oracle":
            allowed = self.world.valid[problem]
            tests = _from(self._start[at], allowed, tests)
        faulty = self.world.faulty[self.world.of(group, problem), programs]
        if self._kind == "oracle":
            both = faulty & self.world.valid[problem]
            faulty = np.where(both.any(axis=1, keepdims=True), both, faulty)
        told = np.flatnonzero(self._informed[at] & faulty.any(axis=1))
        order = (np.arange(faulty.shape[1]) + self._start[at[told], None]) % faulty.shape[1]
        first = np.take_along_axis(faulty[told], order, axis=1).argmax(axis=1)
        cell = order[np.arange(len(told)), first]
        for place in range(1, tests.shape[1]):  # the cell stands once in a suite
            same = tests[told, place] == cell
            tests[told[same], place] = tests[told[same], 0]
        tests[told, 0] = cell
        return tests


def _of_the_pool(world: SuiteWorld, episodes: int, rng: np.random.Generator) -> Ints:
    """Draw suites of cells on which a wrong program of the pool fails, whichever plays. Raises a SuiteError where there is no pool."""
    task = world.task
    if task.kind != "fixed":
        raise SuiteError(f"Expect an id whose programs are of a pool, actually: {task.id}")
    known = np.asarray(world.faulty.any(axis=1))
    noisy = np.where(
        known[np.arange(episodes) // GROUP % task.problems], rng.random((episodes, task.C)), 0
    )
    return np.argpartition(-noisy, task.K - 1, axis=1)[:, : task.K]


def _from(start: Ints, allowed: Bools, tests: Ints) -> Ints:
    """Return suites of allowed cells, the first ones from a cell on; where these are too few, the suites as they are."""
    order = (np.arange(allowed.shape[1]) + start[:, None]) % allowed.shape[1]
    there = np.take_along_axis(allowed, order, axis=1)
    first = np.argsort(~there, axis=1, kind="stable")[:, : tests.shape[1]]
    enough = there.sum(axis=1, keepdims=True) >= tests.shape[1]
    return np.where(enough, np.take_along_axis(order, first, axis=1), tests)


def _twice(cells: Ints) -> Bools:
    ordered = np.sort(cells, axis=1)
    twice: Bools = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    return twice
