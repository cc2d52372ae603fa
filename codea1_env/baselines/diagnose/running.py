"""Runs of experiments in several processes. Each world is made once for all rows, and each run is written when it ends."""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean

from codea1_env.baselines.diagnose.experiments import Experiment, row_changes
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.baselines.diagnose.playing import play
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.evaluation.result_folder import FolderError
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.support.logs import every_line, write_whole

RESULTS = "results.jsonl"
_LOOK = 0.5
"""Seconds between two looks at what was written."""


@dataclass(frozen=True)
class WorldJob:
    """All rows of one world."""

    experiment: Experiment
    setting: str
    seed: int
    rows: tuple[str, ...]
    """Those that are not done."""


@dataclass(frozen=True)
class RowRun:
    """Result of a run: a line of results.jsonl."""

    experiment: str
    setting: str
    row: str
    seed: int
    config: int
    """Checksum of its settings: a run with others is not this one."""
    seconds: float
    measures: Mapping[str, float | None]
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Name of the run."""
        return self.experiment, self.setting, self.row, self.seed, self.config


def checksum(config: PlayConfig) -> int:
    """Return a checksum of the settings of a run."""
    return zlib.crc32(repr(config).encode())


def wanted(
    experiments: Sequence[Experiment], seeds: Sequence[int], quick: bool
) -> list[tuple[str, str, str, int, int]]:
    """Return the keys of all runs, in the order in which they are made."""
    return [
        (each.name, setting, row, seed, checksum(each.config(setting, row, seed)))
        for each in experiments
        for setting in (each.quick if quick else each.settings)
        for seed in seeds
        for row in each.rows
    ]


def done_runs(folder: Path) -> dict[tuple[str, str, str, int, int], RowRun]:
    """Return the runs of a results folder that did not fail, by their keys.

    Raises a FolderError if a line is no run. One at the end that was cut off when its process was killed is left out.
    """
    rows = [row for row, _ in every_line(folder / RESULTS)]
    if rows and rows[-1] is None:
        rows.pop()
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(RowRun(**(row or {})))
        except TypeError as error:
            raise FolderError(
                f"{folder / RESULTS}: Expect a run in each line, actually not in line {number}. Take that line out: its run "
                "is made again."
            ) from error
    return {run.key: run for run in found if not run.error}


def run_all(
    experiments: Sequence[Experiment],
    seeds: Sequence[int],
    folder: Path,
    *,
    quick: bool,
    processes: int,
    tell: Callable[[RowRun, int, float | None], None],
) -> list[RowRun]:
    """Make all runs that the folder lacks.

    Args:
        experiments: What to run.
        seeds: Of each row in each setting.
        folder: Where results.jsonl is, to which every run is added when it ends.
        quick: Only the quick settings.
        processes: Worlds at the same time. Has no influence on the results.
        tell: Is told of each run, how many are left, and the estimated seconds that these take; None before that is known.

    Returns:
        All runs that were asked for, also those done before, in order; failed ones have an error.
    """
    keys = wanted(experiments, seeds, quick)
    known = done_runs(folder)
    # Without failed runs, which are made again, and without a line that was cut off.
    kept = (json.dumps(dataclasses.asdict(run)) + "\n" for run in known.values())
    write_whole(folder / RESULTS, "".join(kept))
    jobs = list(_jobs(experiments, keys, known))
    written = _Written(folder / RESULTS)
    left = _Left(jobs)
    if jobs:
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        with (
            theirs,
            ours,
            ProcessPoolExecutor(
                min(processes, len(jobs)), context, _begin_worker, (theirs,)
            ) as pool,
        ):
            running = {pool.submit(run_job, job, folder) for job in jobs}
            try:
                while running:
                    ended, running = wait(running, _LOOK, FIRST_COMPLETED)
                    for future in ended:
                        future.result()  # raises what ended a world
                    for run in written.more():
                        known[run.key] = run
                        tell(run, *left.after(run))
            except BaseException:
                ours.close()  # worlds that are being played are not waited for
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [known[key] for key in keys]


class _Left:
    """Estimates what the runs take that are left. The first of each world asks the sandbox, which takes longer than the rest."""

    def __init__(self, jobs: Sequence[WorldJob]) -> None:
        self._started = time.perf_counter()
        self._firsts = {(job.experiment.name, job.setting, job.seed, job.rows[0]) for job in jobs}
        runs = sum(len(job.rows) for job in jobs)
        self._runs = {True: len(jobs), False: runs - len(jobs)}
        self._seconds: dict[bool, list[float]] = {True: [], False: []}

    def after(self, run: RowRun) -> tuple[int, float | None]:
        """Return how many runs are left after one, and how many seconds these take."""
        first = (run.experiment, run.setting, run.seed, run.row) in self._firsts
        self._seconds[first].append(run.seconds)
        self._runs[first] -= 1
        left = sum(self._runs.values())
        if any(number and not self._seconds[kind] for kind, number in self._runs.items()):
            return left, None
        work = sum(n * mean(self._seconds[kind]) for kind, n in self._runs.items() if n)
        spent = time.perf_counter() - self._started
        return left, work * spent / max(1e-9, sum(map(sum, self._seconds.values())))


class _Written:
    """Reads the runs that are added to a file from now on, each as soon as its line is whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, path.stat().st_size

    def more(self) -> list[RowRun]:
        with self._path.open("rb") as file:
            file.seek(self._place)
            whole, _, _ = file.read().rpartition(b"\n")
        self._place += len(whole) + bool(whole)
        return [RowRun(**json.loads(line)) for line in whole.splitlines()]


def _begin_worker(parent: Connection) -> None:
    """End this worker process when the other end of its pipe is closed.

    A lock or an event would not do: who dies while it waits for one leaves it as it is, for all others.
    """

    def watch() -> None:
        parent.poll(None)
        os._exit(1)

    # Ctrl-C and the end of a job go to all processes of a group; the parent says what becomes of it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    threading.Thread(target=watch, daemon=True).start()


def _jobs(
    experiments: Sequence[Experiment],
    keys: Sequence[tuple[str, str, str, int, int]],
    known: Mapping[tuple[str, str, str, int, int], RowRun],
) -> Iterator[WorldJob]:
    by_name = {each.name: each for each in experiments}
    rows: dict[tuple[str, str, int], list[str]] = {}
    for key in keys:
        if key not in known:
            rows.setdefault((key[0], key[1], key[3]), []).append(key[2])
    for (name, setting, seed), missing in rows.items():
        yield WorldJob(by_name[name], setting, seed, tuple(missing))


def run_job(job: WorldJob, folder: Path) -> list[RowRun]:
    """Play all rows of a world, and write each when it ends. A row that raises is a failed run; the others go on."""
    found = []
    with Sandbox(workers=1) as sandbox:
        memory = RememberingReferee(sandbox)
        for row in job.rows:
            config = job.experiment.config(job.setting, row, job.seed)
            started, error = time.perf_counter(), ""
            measures: Mapping[str, float | None] = {}
            try:
                measures = _finite(play(config, sandbox, memory))
            except SandboxError:
                raise  # the machine's fault, not the row's
            except (Exception, SystemExit) as raised:  # a player of one's own may say anything
                error = " ".join(f"{type(raised).__name__}: {raised}".split())
            seconds = time.perf_counter() - started
            name = (job.experiment.name, job.setting, row, job.seed, checksum(config))
            found.append(RowRun(*name, seconds, measures, error))
            with (folder / RESULTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(dataclasses.asdict(found[-1])) + "\n")
    return found


def _finite(measures: Mapping[str, float | None]) -> Mapping[str, float | None]:
    return {
        name: value if value is not None and math.isfinite(value) else None
        for name, value in measures.items()
    }


def check(experiments: Sequence[Experiment], quick: bool) -> None:
    """Make the settings of all runs and drop them, so that wrong settings raise before anything runs."""
    for each in experiments:
        for row in each.rows:
            row_changes(row)
            for setting in each.quick if quick else each.settings:
                each.config(setting, row, 0)
