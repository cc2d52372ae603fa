"""Runs the jobs of a benchmark that are not done."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.baselines.bench import worker
from codea1_env.baselines.bench.results import Result, RunTable, TrainingJob, results_of
from codea1_env.baselines.bench.suite import BenchConfig, Entry
from codea1_env.support.jobs import FolderError
from codea1_env.support.plugins import digest_of
from codea1_env.support.pool import DiedError, Work, run_jobs
from codea1_env.training.checkpoints import checkpoints
from codea1_env.training.config import RunError
from codea1_env.training.run_folder import MACHINE, TIMINGS, read_config

_MAX_ERROR = 300


Report = Callable[[int, int, Sequence[str]], None]
"""Is told of a benchmark how many runs have ended, how many steps all have done, and "NAME #SEED: message" of each that failed."""


def check_files(config: BenchConfig, jobs: Sequence[TrainingJob], table: RunTable) -> None:
    """Raise a FolderError if a user's file has changed since a run was begun with it. Failed runs may go on with others."""
    for job in jobs:
        now = _files(config, job.entry)
        before = table.rows[job.key].files if job.key in table.rows else {}
        for name, digest in before.items():
            if now.get(name, digest) != digest:
                raise FolderError(
                    f"Expect {name} to be what it was when {table.path / job.place} was begun with it, actually: it has "
                    "changed. Put it back; or name what is new otherwise, or another folder."
                )


def _files(config: BenchConfig, entry: Entry) -> dict[str, str]:
    found = {name: digest_of(name) for name in (entry.name, config.preset) if name}
    return {name: digest for name, digest in found.items() if digest is not None}


def run_all(
    config: BenchConfig,
    jobs: Sequence[TrainingJob],
    table: RunTable,
    report: Report = lambda done, steps, failures: None,
) -> None:
    """Run all jobs that are not done, and call `report` now and then.

    A process that dies is started again once, from its last checkpoint; then its run is marked as failed.
    """
    failures: list[str] = []

    def begin(job: TrainingJob) -> Work:
        if _done(table, job):
            return bool  # its process died when it had told all
        rates = dataclasses.asdict(job.rates)
        begun = Result(job.entry.name, job.seed, "begun", rates=rates, files=_files(config, job.entry))  # fmt: skip
        table.note(job, begun)
        (table.path / job.place).mkdir(parents=True, exist_ok=True)
        return partial(worker.run, job, config, table.path, machine_of(jobs, table))

    def hear(job: TrainingJob, found: dict[str, Any]) -> None:
        row = dataclasses.replace(table.rows[job.key], **found)
        table.note(job, row)
        if row.status == "failed":
            name = f"{job.entry.name.rpartition('/')[2]} #{job.seed}"
            failures.append(f"{name}: {' '.join(row.error.split())[:_MAX_ERROR]}")
            return
        for path in checkpoints(table.path / job.place / "run")[:-1]:  # they were kept for its game
            shutil.rmtree(path)

    def lost(job: TrainingJob, error: Exception) -> None:
        if _done(table, job):
            return
        how = f"died {error}" if isinstance(error, DiedError) else f"failed ({error!r})"
        hear(job, {"status": "failed", "error": f"its process {how}, twice; see {job.place}/log.txt"})  # fmt: skip

    def tick() -> None:
        done = results_of(table.rows, jobs)
        steps = [_steps(table.path / job.place) for job in jobs if not _done(table, job)]
        steps += [config.max_steps] * len(done)
        report(len(done), sum(min(each, config.max_steps) for each in steps), failures)

    tick()
    run_jobs(
        [job for job in jobs if not _done(table, job)],
        begin,
        hear,
        lost,
        processes=config.processes,
        imports=(worker.__name__,),
        log=lambda job: table.path / job.place / "log.txt",
        tick=tick,
    )


def _done(table: RunTable, job: TrainingJob) -> bool:
    return bool(results_of(table.rows, [job]))


def _steps(folder: Path) -> int:
    path = folder / "run" / TIMINGS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def machine_of(jobs: Sequence[TrainingJob], table: RunTable) -> dict[str, Any]:
    """Return the number formats and threads of the first run that is done: all others compute in the same way."""
    for job in jobs:
        run = table.path / job.place / "run"
        if _done(table, job) and (run / "config.toml").is_file():
            with suppress(RunError):
                begun = read_config(run)
                return {name: getattr(begun, name) for name in MACHINE}
    return {}
