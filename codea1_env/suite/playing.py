"""An id in play: what both players see, and whose turn it is. The environments show it to libraries."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from codea1_env.suite.opponents import CoderOpponent, TesterOpponent
from codea1_env.suite.records import Recorder
from codea1_env.suite.rounds import Rounds
from codea1_env.suite.tasks import RecordKey, SuiteError
from codea1_env.suite.worlds import Floats, Ints

Observations = NDArray[np.float32]
_OPEN: weakref.WeakValueDictionary[Path, Rounds] = weakref.WeakValueDictionary()
"""Folder of a record -> what is recorded there."""


class Games:
    """Episodes that are played at once: programs are chosen, then tests. Games with one record share its rounds.

    Example:
        >>> from codea1_env.suite import make
        >>> games = make("rare-faults/0", 1000, api="vector", num_envs=64)
        >>> games.begin().shape, games.show(np.zeros(64, int)).shape
        ((64, 9), (64, 25))
        >>> coder, tester = games.end(np.tile([1, 2], (64, 1)))
    """

    def __init__(self, key: RecordKey, record: Path | None = None, num_envs: int = 1) -> None:
        self.track, self.task, seed = key
        self.num_envs = num_envs
        self.rounds = Rounds(self.task, seed)
        if record is not None:
            path = key.folder(record).resolve()
            self.rounds = _OPEN.setdefault(path, self.rounds)
            if self.rounds.recorder is None:
                self.rounds.recorder = Recorder(record, key, "make")
        self._episodes = np.zeros(0, np.int64)
        self.programs: Ints | None = None
        self._oppose(0)
        size, shown = self.task.problems + 1, self.rounds.world.tags.shape[2]
        self._coders_problem = np.eye(size - 1, size, dtype=np.float32)
        self._testers_problem = np.eye(size - 1, size + shown, dtype=np.float32)
        tests = spaces.MultiDiscrete([self.task.C] * self.task.K)
        self.spaces: Mapping[str, tuple[spaces.Box, spaces.Space[Any]]] = {
            "coder": (_box(size), spaces.Discrete(self.task.programs)),
            "tester": (_box(size + shown), tests),
        }

    def _oppose(self, seed: int) -> None:
        self._salt = seed
        world = self.rounds.world
        self._coder = CoderOpponent(world, salt=seed) if self.track == "tester" else None
        self._tester = TesterOpponent(world, salt=seed) if self.track == "coder" else None

    def restart(self, seed: int | None) -> None:
        """Take a seed that was given to `reset`; None changes nothing.

        It reaches the opponent, and never the world. It also goes back to the first episode, so that equal seeds give equal
        games. With a record it changes nothing: the opponent is that of seed 0, and each episode is played once.
        """
        if seed is None or self.rounds.recorder is not None:
            return  # who chooses the opponent chooses the score
        self.rounds.restart()
        if seed != self._salt:
            self._oppose(seed)

    def begin(self) -> Observations:
        """Begin episodes, and return what the coders see, shape (num_envs, ...)."""
        self._episodes, self.programs = self.rounds.begin(self.num_envs), None
        self._at = self.rounds.world.at(self._episodes)
        self.seen = self._see(None)
        return self.seen[0]

    def show(self, programs: Any) -> Observations:
        """Take the coders' choices, once after each `begin`, and return what the testers see."""
        self._expect(self.programs is None, "begin() before show()")
        self.programs = _checked(programs, (self.num_envs,), self.task.programs)
        self.seen = self._see(self.programs)
        return self.seen[1]

    def end(self, tests: Any) -> tuple[Floats, Floats]:
        """Take the testers' suites, once after each `show`, and return the rewards of coders and testers."""
        self._expect(self.programs is not None, "show() before end()")
        suites = _checked(tests, (self.num_envs, self.task.K), self.task.C)
        paid = self.rounds.end(self._episodes, np.asarray(self.programs), suites)
        self._episodes = self._episodes[:0]
        return paid.coder, paid.tester

    def _expect(self, right: bool, what: str) -> None:
        if not right or not len(self._episodes):
            raise SuiteError(f"Expect {what}, actually: no episode waits for that")

    def reset(self, seed: int | None) -> Observations:
        """Begin episodes of one side, and return what it sees."""
        self.restart(seed)
        seen = self.begin()
        return seen if self._coder is None else self.show(self._coder.choose(self._episodes))

    def step(self, actions: Any) -> Floats:
        """Take the actions of one side, and return its rewards."""
        self._expect(True, "reset() before each step()")
        if self._tester is None:
            return self.end(actions)[1]
        self.show(actions)
        return self.end(self._tester.choose(self._episodes, np.asarray(actions)))[0]

    def _see(self, programs: Ints | None) -> tuple[Observations, Observations]:
        """Return what coders and testers see, shape (n, ...); before programs are chosen testers see none.

        That is the problem, one of many; of a tester the program's tag; and whether it is the player's turn.
        """
        problem, index = self._at
        coder = self._coders_problem.take(problem, axis=0)
        tester = self._testers_problem.take(problem, axis=0)
        (coder if programs is None else tester)[:, -1] = 1.0
        if programs is not None:
            tester[:, self.task.problems : -1] = self.rounds.world.tags[index, programs]
        return coder, tester

    def close(self) -> None:
        """Close the record."""
        if self.rounds.recorder is not None:
            self.rounds.recorder.close()


def _box(size: int) -> spaces.Box:
    return spaces.Box(-1.0, 1.0, (size,), np.float32)


def _checked(actions: Any, shape: tuple[int, ...], size: int) -> Ints:
    found = np.asarray(actions)
    if found.shape != shape or found.dtype.kind not in "iu":
        raise SuiteError(
            f"Expect integers of shape {shape}, actually: {found.dtype} of shape {found.shape}"
        )
    found = found.astype(np.int64, copy=False)
    if found.view(np.uint64).max() >= size:  # what is below 0 is large here
        raise SuiteError(f"Expect actions from 0 to {size - 1}, actually: {found.tolist()!r:.100}")
    return found
