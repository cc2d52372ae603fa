"""Opponents of one side, and the players that learn nothing: functions of the world, so that every world has them.

What they do in an episode follows from the world, a salt (a seed that was given to `reset`) and the episode's number.
Four episodes in a row meet the same choice of a coder, so that groups of suites attack one program.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

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
    """Chooses programs: more and more right ones and wrong ones evenly ("population"), all evenly ("random"), or right ones ("oracle")."""

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

    "random": drawn evenly; "population": a fourth of them begins with a faulty cell; "oracle": begins with a faulty cell and
    predicts right values; "fixed": of a problem always the same 4 suites, with as many different tests as four random ones;
    "pool": cells on which programs of the pool are wrong, any of them, which raises a SuiteError where there is no pool.
    """

    def __init__(self, world: SuiteWorld, kind: Kind = "population", salt: int = 0) -> None:
        self.world, self._kind = world, kind
        task, episodes = world.task, world.groups * GROUP
        rng = np.random.default_rng([world.seed, 2, salt])
        problem = np.arange(episodes) // GROUP % task.problems
        self._cells = rng.integers(task.C, size=(episodes, task.K))
        while (same := (np.diff(np.sort(self._cells, axis=1)) == 0).any(axis=1)).any():
            self._cells[same] = rng.integers(task.C, size=(int(same.sum()), task.K))
        if kind == "fixed":
            self._cells = self._cells[problem * GROUP + np.arange(episodes) % SUITES]
        elif kind == "pool":
            if task.kind != "fixed":
                raise SuiteError(f"Expect an id whose programs are of a pool, actually: {task.id}")
            known = np.asarray(world.faulty.any(axis=1))[problem]
            noisy = np.where(known, rng.random(known.shape), 0.0)
            self._cells = np.argpartition(-noisy, task.K - 1, axis=1)[:, : task.K]
        share = {"population": _INFORMED, "oracle": 1.0}.get(kind, 0.0)
        self._informed = rng.random(episodes) < share
        self._start = rng.integers(task.C, size=episodes)

    def choose(self, episodes: Ints, programs: Ints) -> Ints:
        """Return the suites of episodes against programs, shape (n, K)."""
        at = episodes % len(self._cells)
        tests: Ints = self._cells[at].copy()
        problem, index = self.world.at(episodes)
        faulty = self.world.faulty[index, programs]
        if self._kind == "oracle":
            valid = self.world.valid[problem]
            tests = _from(self._start[at], valid, tests)
            both = faulty & valid
            faulty = np.where(both.any(axis=1, keepdims=True), both, faulty)
        told = np.flatnonzero(self._informed[at] & faulty.any(axis=1))
        cell = _from(self._start[at[told]], faulty[told], tests[told, :1])[:, 0]
        for place in range(1, tests.shape[1]):  # the cell stands once in a suite
            same = tests[told, place] == cell
            tests[told[same], place] = tests[told[same], 0]
        tests[told, 0] = cell
        return tests


def _from(start: Ints, allowed: Bools, tests: Ints) -> Ints:
    """Return suites of allowed cells, the first ones from a cell on; where these are too few, the suites as they are."""
    order = (np.arange(allowed.shape[1]) + start[:, None]) % allowed.shape[1]
    there = np.take_along_axis(allowed, order, axis=1)
    first = np.argsort(~there, axis=1, kind="stable")[:, : tests.shape[1]]
    enough = there.sum(axis=1, keepdims=True) >= tests.shape[1]
    return np.where(enough, np.take_along_axis(order, first, axis=1), tests)
