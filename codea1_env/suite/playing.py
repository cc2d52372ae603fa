"""An id in play: episodes in order, what both players see, and the record. The environments show it to libraries."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from codea1_env.suite.opponents import CoderOpponent, TesterOpponent
from codea1_env.suite.records import Recorder, folder_of
from codea1_env.suite.rounds import Payoffs, Rounds
from codea1_env.suite.tasks import SuiteError, SuiteTask, Track
from codea1_env.suite.worlds import Ints

Observations = NDArray[np.float32]


class Play:
    """An id, a seed and a track, with or without a record.

    A seed given to `restart` reaches the opponent, and never the world. It also goes back to the first episode, so that equal
    seeds give equal games. With a record it changes nothing: the opponent is that of seed 0, and each episode is played once.
    """

    def __init__(
        self, task: SuiteTask, seed: int, track: Track, record: Path | None = None
    ) -> None:
        self.task, self.track = task, track
        self.rounds = Rounds(task, seed)
        self.recorder = None if record is None else Recorder(record, self.rounds, track, "make")
        self._open: set[int] = set()
        self._oppose(0)
        fixed = task.kind == "fixed"
        self._shown = task.programs if fixed else self.rounds.world.bits
        size = task.problems + 1
        self.spaces: Mapping[str, tuple[spaces.Box, spaces.Space[Any]]] = {
            "coder": (_box(size), spaces.Discrete(task.programs)),
            "tester": (_box(size + self._shown), spaces.MultiDiscrete([task.C] * task.K)),
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Play:
        """A copy is a game of its own, without a record."""
        copied = memo[id(self)] = copy.copy(self)
        memo[id(self.rounds.world)] = self.rounds.world  # which nothing changes
        copied.rounds, copied._open = copy.deepcopy((self.rounds, self._open), memo)
        copied.recorder = None
        return copied

    def restart(self, seed: int | None) -> None:
        """Take a seed that was given to `reset`; None changes nothing."""
        if seed is None or self.recorder is not None:  # whoever chose the opponent chose the score
            return
        self.rounds.restart()
        self._open.clear()
        if seed != self._salt:
            self._oppose(seed)

    def _oppose(self, seed: int) -> None:
        self._salt = seed
        world = self.rounds.world
        self.coder = CoderOpponent(world, salt=seed) if self.track == "tester" else None
        self.tester = TesterOpponent(world, salt=seed) if self.track == "coder" else None

    def begin(self, number: int) -> Ints:
        """Begin episodes, and return their numbers; a SuiteError if the record was closed before it was whole."""
        if self.recorder is not None:
            self.recorder.check_open()
        episodes = self.rounds.begin(number)
        self._open.update(episodes.tolist())
        return episodes

    def end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        """Judge, pay and record episodes; a SuiteError if one has ended before."""
        if over := set(episodes.tolist()) - self._open:
            raise SuiteError(
                f"Expect each episode to end once, actually: episode {min(over)} is over. Begin the next one."
            )
        self._open.difference_update(episodes.tolist())
        paid = self.rounds.end(episodes, programs, tests)
        if self.recorder is not None:
            self.recorder.add(episodes, programs, tests, paid)
        return paid

    def see(
        self, episodes: Ints, programs: Ints | None = None
    ) -> tuple[Observations, Observations]:
        """Return what coders and testers see, shape (n, ...); before programs are chosen testers see none.

        That is the problem, one of many; of a tester the program, one of many, or the bits of its tag; and whether it is the
        player's turn.
        """
        rows, problems = np.arange(len(episodes)), self.task.problems
        problem, index = self.rounds.world.at(episodes)
        coder = np.zeros((len(episodes), problems + 1), np.float32)
        tester = np.zeros((len(episodes), problems + self._shown + 1), np.float32)
        coder[rows, problem] = tester[rows, problem] = 1.0
        (coder if programs is None else tester)[:, -1] = 1.0
        if programs is not None and self.task.kind == "fixed":
            tester[rows, problems + programs] = 1.0
        elif programs is not None:
            tester[:, problems:-1] = self.rounds.world.tags[index, programs]
        return coder, tester

    def programs(self, actions: Any, *number: int) -> Ints:
        """Return actions of coders, one or a number of them; a SuiteError if one is outside the space."""
        return _checked(actions, number, self.task.programs)

    def tests(self, actions: Any, *number: int) -> Ints:
        """Return actions of testers, one or a number of them; a SuiteError if one is outside the space."""
        return _checked(actions, (*number, self.task.K), self.task.C)

    def close(self) -> None:
        """Close the record."""
        if self.recorder is not None:
            self.recorder.close()


_OPEN: weakref.WeakValueDictionary[Path, Play] = weakref.WeakValueDictionary()


def open_play(task: SuiteTask, seed: int, track: Track, record: Path | None) -> Play:
    """Return a play; where this process has one open with the same record, that one."""
    if record is None:
        return Play(task, seed, track)
    path = folder_of(record, task, seed, track).resolve()
    found = _OPEN.get(path)
    if found is None:
        found = _OPEN[path] = Play(task, seed, track, record)
    return found


def _box(size: int) -> spaces.Box:
    return spaces.Box(-1.0, 1.0, (size,), np.float32)


def _checked(actions: Any, shape: tuple[int, ...], size: int) -> Ints:
    found = np.asarray(actions)
    if found.shape != shape or found.dtype.kind not in "iu":
        raise SuiteError(
            f"Expect integers of shape {shape}, actually: {found.dtype} of shape {found.shape}"
        )
    if found.size and not (found.min() >= 0 and found.max() < size):
        raise SuiteError(f"Expect actions from 0 to {size - 1}, actually: {found.tolist()!r:.100}")
    return found.astype(np.int64, copy=False)
