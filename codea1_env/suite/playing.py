"""An id in play: episodes in order, what both players see, and the record. The environments show it to libraries."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from codea1_env.suite.opponents import CoderOpponent, TesterOpponent
from codea1_env.suite.records import Recorder, folder_of
from codea1_env.suite.rounds import One, Payoffs, Rounds
from codea1_env.suite.tasks import GROUP, SuiteError, SuiteTask, Track
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
        self._ended: list[tuple[Any, ...]] = []
        self._open: set[int] = set()
        self._oppose(0)
        fixed = task.kind == "fixed"
        self._seen = task.programs if fixed else self.rounds.world.bits
        size = task.problems + 1
        self.spaces: Mapping[str, tuple[spaces.Box, spaces.Space[Any]]] = {
            "coder": (_box(size), spaces.Discrete(task.programs)),
            "tester": (_box(size + self._seen), spaces.MultiDiscrete([task.C] * task.K)),
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Play:
        """A copy is a game of its own, without a record."""
        copied = object.__new__(Play)
        memo[id(self)] = copied
        own: dict[str, Any] = {"rounds": _copied(self.rounds, memo), "recorder": None, "_ended": []}
        copied.__dict__ = self.__dict__ | own | {"_open": set(self._open)}
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
        """Begin episodes, and return their numbers."""
        if self.recorder is not None:
            self.recorder.begin(number)
        episodes = self.rounds.begin(number)
        self._open.update(episodes.tolist())
        return episodes

    def end(self, episodes: Ints, programs: Ints, tests: Ints) -> Payoffs:
        """Judge, pay and record episodes; a SuiteError if one has ended before."""
        ending = set(episodes.tolist())
        if not ending <= self._open:
            raise _over(min(ending - self._open))
        self._open -= ending
        paid = self.rounds.end(episodes, programs, tests)
        if self.recorder is not None:
            self.recorder.add(episodes, programs, tests, paid.known, paid.replayed)
        return paid

    def end_one(self, episode: int, program: int, suite: list[int]) -> One:
        """Do what `end` does for one episode."""
        if episode not in self._open:
            raise _over(episode)
        self._open.remove(episode)
        paid = self.rounds.end_one(episode, program, suite)
        if self.recorder is not None:
            self._ended.append((episode, program, suite, paid.known, paid.replayed))
            if len(self._ended) == GROUP or self.rounds.ended == self.task.episodes:
                self.recorder.add(*(np.array(each) for each in zip(*self._ended, strict=True)))
                self._ended = []
        return paid

    def one_sees(self, episode: int, program: int | None) -> tuple[Observations, Observations]:
        """Return what both players see in an episode; before its program is chosen, the tester sees none."""
        group = episode // GROUP % self.rounds.world.groups
        problems = self.task.problems
        coder = np.zeros(problems + 1, np.float32)
        tester = np.zeros(problems + self._seen + 1, np.float32)
        coder[group % problems] = tester[group % problems] = 1.0
        if program is None:
            coder[-1] = 1.0
        else:
            tester[-1] = 1.0
            if self.task.kind == "fixed":
                tester[problems + program] = 1.0
            else:
                tester[problems:-1] = self.rounds.world.tags[group, program]
        return coder, tester

    def program(self, action: Any) -> int:
        """Return a coder's action; a SuiteError if it is outside the space."""
        if isinstance(action, int | np.integer) and 0 <= action < self.task.programs:
            return int(action)
        return int(_checked(action, (), self.task.programs))

    def suite(self, action: Any) -> list[int]:
        """Return a tester's action; a SuiteError if it is outside the space."""
        found: list[int] = _checked(action, (self.task.K,), self.task.C).tolist()
        return found

    def coder_sees(self, episodes: Ints) -> Observations:
        """Return what coders see: the problem, one of many, and whether it is their turn."""
        seen = np.zeros((len(episodes), self.task.problems + 1), np.float32)
        seen[np.arange(len(episodes)), self.rounds.problem_of(episodes)] = 1.0
        seen[:, -1] = 1.0
        return seen

    def tester_sees(self, episodes: Ints, programs: Ints) -> Observations:
        """Return what testers see: the problem, the program or the bits of its tag, and whether it is their turn."""
        rows, problems = np.arange(len(episodes)), self.task.problems
        group = self.rounds.group_of(episodes)
        seen = np.zeros((len(episodes), problems + self._seen + 1), np.float32)
        seen[rows, group % problems] = 1.0
        seen[:, -1] = 1.0
        if self.task.kind == "fixed":
            seen[rows, problems + programs] = 1.0
        else:
            seen[:, problems:-1] = self.rounds.world.tags[group, programs]
        return seen

    def programs(self, actions: Any, number: int) -> Ints:
        """Return coders' actions; a SuiteError if one is outside the space."""
        return _checked(actions, (number,), self.task.programs)

    def tests(self, actions: Any, number: int) -> Ints:
        """Return testers' actions; a SuiteError if one is outside the space."""
        return _checked(actions, (number, self.task.K), self.task.C)

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


def _over(episode: int) -> SuiteError:
    return SuiteError(
        f"Expect each episode to end once, actually: episode {episode} is over. Begin the next one."
    )


def _box(size: int) -> spaces.Box:
    return spaces.Box(-1.0, 1.0, (size,), np.float32)


def _copied(rounds: Rounds, memo: dict[int, Any]) -> Rounds:
    import copy

    memo[id(rounds.world)] = rounds.world  # which nothing changes
    return copy.deepcopy(rounds, memo)


def _checked(actions: Any, shape: tuple[int, ...], size: int) -> Ints:
    found = np.asarray(actions)
    if found.shape != shape or found.dtype.kind not in "iu":
        raise SuiteError(
            f"Expect integers of shape {shape}, actually: {found.dtype} of shape {found.shape}"
        )
    if found.size and not (found.min() >= 0 and found.max() < size):
        raise SuiteError(f"Expect actions from 0 to {size - 1}, actually: {found.tolist()!r:.100}")
    return found.astype(np.int64, copy=False)
