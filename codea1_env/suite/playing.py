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
from codea1_env.suite.records import Recorder
from codea1_env.suite.rounds import Payoffs, Rounds
from codea1_env.suite.tasks import RecordKey, SuiteError
from codea1_env.suite.worlds import Floats, Ints

Observations = NDArray[np.float32]


class Play:
    """An id in play, with or without a record.

    A seed given to `restart` reaches the opponent, and never the world. It also goes back to the first episode, so that equal
    seeds give equal games. With a record it changes nothing: the opponent is that of seed 0, and each episode is played once.
    """

    def __init__(self, key: RecordKey, record: Path | None = None) -> None:
        self.track, self.task, seed = key
        task = self.task
        self.rounds = Rounds(task, seed)
        self.recorder = None if record is None else Recorder(record, key, self.rounds, "make")
        self._open: set[int] = set()
        self._oppose(0)
        self._shown = task.programs if task.kind == "fixed" else self.rounds.world.bits
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

    def see(self, episodes: Ints, programs: Ints | None) -> tuple[Observations, Observations]:
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


class Games:
    """Episodes that are played at once: programs are chosen, then tests. Several games may share a play.

    Example:
        >>> from codea1_env.suite import make
        >>> games = make("rare-faults/0", 1000, api="vector", num_envs=64)
        >>> games.begin().shape, games.show(np.zeros(64, int)).shape
        ((64, 9), (64, 25))
        >>> coder, tester = games.end(np.tile([1, 2], (64, 1)))
    """

    def __init__(self, play: Play, num_envs: int = 1) -> None:
        self.play, self.num_envs = play, num_envs
        self._episodes = np.zeros(0, np.int64)
        self.programs: Ints | None = None

    def begin(self) -> Observations:
        """Begin episodes, and return what the coders see, shape (num_envs, ...)."""
        self._episodes, self.programs = self.play.begin(self.num_envs), None
        self.seen = self.play.see(self._episodes, None)
        return self.seen[0]

    def show(self, programs: Any) -> Observations:
        """Take the coders' choices, once after each `begin`, and return what the testers see."""
        if self.programs is not None or not len(self._episodes):
            raise SuiteError(
                "Expect begin() before show(), actually: no episode waits for a program"
            )
        self.programs = _checked(programs, (self.num_envs,), self.play.task.programs)
        self.seen = self.play.see(self._episodes, self.programs)
        return self.seen[1]

    def end(self, tests: Any) -> tuple[Floats, Floats]:
        """Take the testers' suites, once after each `show`, and return the rewards of coders and testers."""
        if self.programs is None or not len(self._episodes):
            raise SuiteError("Expect show() before end(), actually: no program was shown")
        task = self.play.task
        suites = _checked(tests, (self.num_envs, task.K), task.C)
        paid = self.play.end(self._episodes, self.programs, suites)
        self._episodes = self._episodes[:0]
        return paid.coder, paid.tester

    def reset(self, seed: int | None) -> Observations:
        """Begin episodes of one side, and return what it sees."""
        self.play.restart(seed)
        seen, coder = self.begin(), self.play.coder
        return seen if coder is None else self.show(coder.choose(self._episodes))

    def step(self, actions: Any) -> Floats:
        """Take the actions of one side, and return its rewards."""
        if not len(self._episodes):
            raise SuiteError("Expect reset() before each step(), actually: no episode was begun")
        if self.play.tester is None:
            return self.end(actions)[1]
        self.show(actions)
        programs = _checked(actions, (self.num_envs,), self.play.task.programs)
        return self.end(self.play.tester.choose(self._episodes, programs))[0]

    @property
    def over(self) -> bool:
        """Whether all episodes of the id were played."""
        return self.play.rounds.ended >= self.play.task.episodes

    def close(self) -> None:
        """Close the record."""
        if self.play.recorder is not None:
            self.play.recorder.close()


_OPEN: weakref.WeakValueDictionary[Path, Play] = weakref.WeakValueDictionary()


def open_play(key: RecordKey, record: Path | None) -> Play:
    """Return a play; where this process has one open with the same record, that one."""
    if record is None:
        return Play(key)
    path = key.folder(record).resolve()
    found = _OPEN.get(path)
    if found is None:
        found = _OPEN[path] = Play(key, record)
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
