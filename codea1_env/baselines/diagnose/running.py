"""Runs of experiments in several processes. Each world is made once for all rows, and each run is written when it ends."""

from __future__ import annotations

import dataclasses
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any, NamedTuple

from codea1_env.baselines.diagnose.experiments import Experiment
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.baselines.diagnose.playing import play
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.support.jobs import Jobs
from codea1_env.support.pool import DiedError, run_jobs

RESULTS = "results.jsonl"


class Key(NamedTuple):
    """Name of a run."""

    experiment: str
    setting: str
    row: str
    seed: int
    config: int
    """Checksum of its settings: a run with others is not this one."""


@dataclass(frozen=True)
class World:
    """What is to be done in one world: a job."""

    experiment: Experiment
    runs: tuple[Key, ...]


@dataclass(frozen=True)
class RowRun:
    """Result of a run: a line of results.jsonl, where the fields of its key come first."""

    experiment: str
    setting: str
    row: str
    seed: int
    config: int
    seconds: float
    measures: Mapping[str, float | None]
    error: str = ""

    @property
    def key(self) -> Key:
        """Name of the run."""
        return Key(self.experiment, self.setting, self.row, self.seed, self.config)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> tuple[Key, RowRun]:
        """Read a line of results.jsonl."""
        found = cls(**row)
        return found.key, found


def wanted(experiments: Sequence[Experiment], seeds: Sequence[int], quick: bool) -> list[World]:
    """Return all runs in the order in which they are made. Wrong settings raise here, before anything runs."""
    return [
        World(
            each,
            tuple(
                Key(each.name, setting, row, seed, checksum(each.config(setting, row, seed)))
                for row in each.rows
            ),
        )
        for each in experiments
        for setting in (each.quick if quick else each.settings)
        for seed in seeds
    ]


def checksum(config: PlayConfig) -> int:
    """Return a checksum of the settings of a run."""
    return zlib.crc32(repr(config).encode())


def run_all(
    worlds: Sequence[World],
    jobs: Jobs,
    *,
    processes: int,
    tell: Callable[[RowRun, int, float | None], None],
) -> list[RowRun]:
    """Make all runs that the folder lacks, and those that failed before.

    Args:
        worlds: What is wanted.
        jobs: The folder, to whose results.jsonl every run is added when it ends.
        processes: Worlds at the same time. Has no influence on the results.
        tell: Is told of each run, how many are left, and the estimated seconds that these take; None before that is known.

    Returns:
        All runs that were asked for, also those done before, in order; failed ones have an error.
    """
    known = {key: run for key, run in jobs.done(RESULTS, RowRun.of).items() if not run.error}

    def missing(world: World) -> World:
        return World(world.experiment, tuple(key for key in world.runs if key not in known))

    def hear(world: World, run: RowRun) -> None:
        jobs.append(RESULTS, [dataclasses.asdict(run)])
        known[run.key] = run
        tell(run, *left.after(run))

    def lost(world: World, error: Exception) -> None:
        if isinstance(error, DiedError):
            name = world.experiment.name
            raise SandboxError(f"the process of a world of {name} died {error}, twice") from error
        raise error

    begun = [found for world in worlds if (found := missing(world)).runs]
    left = _Left(begun)
    run_jobs(
        begun,
        lambda world: partial(play_rows, missing(world)),  # less for a second attempt
        hear,
        lost,
        processes=processes,
        imports=(__name__,),
    )
    return [known[key] for world in worlds for key in world.runs]


class _Left:
    """Estimates what the runs take that are left. The first of each world asks the sandbox, which takes longer than the rest."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self._started = time.perf_counter()
        self._firsts = {world.runs[0] for world in worlds}
        runs = sum(len(world.runs) for world in worlds)
        self._runs = {True: len(worlds), False: runs - len(worlds)}
        self._seconds: dict[bool, list[float]] = {True: [], False: []}

    def after(self, run: RowRun) -> tuple[int, float | None]:
        """Return how many runs are left after one, and how many seconds these take."""
        first = run.key in self._firsts
        self._seconds[first].append(run.seconds)
        self._runs[first] -= 1
        left = sum(self._runs.values())
        if any(number and not self._seconds[kind] for kind, number in self._runs.items()):
            return left, None
        work = sum(n * mean(self._seconds[kind]) for kind, n in self._runs.items() if n)
        spent = time.perf_counter() - self._started
        return left, work * spent / max(1e-9, sum(map(sum, self._seconds.values())))


def play_rows(world: World, tell: Callable[[RowRun], None]) -> None:
    """Play all rows of a world, and tell of each when it ends. A row that raises is a failed run; the others go on."""
    with Sandbox(workers=1) as sandbox:
        memory = RememberingReferee(sandbox)
        for key in world.runs:
            config = world.experiment.config(key.setting, key.row, key.seed)
            started, error = time.perf_counter(), ""
            measures: Mapping[str, float | None] = {}
            try:
                measures = _finite(play(config, sandbox, memory))
            except SandboxError:
                raise  # the machine's fault, not the row's
            except (Exception, SystemExit) as raised:  # a player of one's own may say anything
                error = " ".join(f"{type(raised).__name__}: {raised}".split())
            tell(RowRun(*key, time.perf_counter() - started, measures, error))


def _finite(measures: Mapping[str, float | None]) -> Mapping[str, float | None]:
    return {
        name: value if value is not None and math.isfinite(value) else None
        for name, value in measures.items()
    }
