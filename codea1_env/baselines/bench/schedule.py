"""Runs the jobs of a benchmark, a few at a time, each in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from codea1_env.baselines.bench import results
from codea1_env.baselines.bench.results import DamagedRunError, TrainingJob
from codea1_env.baselines.bench.suite import BenchConfig, Entry
from codea1_env.evaluation.result_folder import FolderError
from codea1_env.support.plugins import digest_of
from codea1_env.training.config import RunError
from codea1_env.training.run_folder import MACHINE, read_config

_ATTEMPTS = 2
_POLL_SECONDS = 0.2
_MAX_ERROR = 300


@dataclass(frozen=True)
class RunsDone:
    """How far a benchmark is."""

    done: int
    """Runs that have a result."""
    steps: int
    """Steps of all runs together; those of failed runs count as done."""
    failures: tuple[str, ...] = ()
    """"NAME #SEED: message" of each that failed, in the order in which they did."""


def check_files(config: BenchConfig, jobs: Sequence[TrainingJob]) -> None:
    """Raise a FolderError if a user's file has changed since a run was begun with it. Failed runs may go on with others."""
    for job in jobs:
        now, before = _files(config, job.entry), (job.begun or {}).get("files")
        with suppress(DamagedRunError):
            if job.done and results.read_ending(job.folder).status != "ok":
                continue
        for name, digest in before.items() if isinstance(before, dict) else ():
            if now.get(name, digest) != digest:
                raise FolderError(
                    f"Expect {name} to be what it was when {job.folder} was begun with it, actually: it has changed. "
                    "Put it back; or name what is new otherwise, or another folder; or remove that run's folder."
                )


def _files(config: BenchConfig, entry: Entry) -> dict[str, str]:
    found = {name: digest_of(name) for name in (entry.name, config.preset) if name}
    return {name: digest for name, digest in found.items() if digest is not None}


def forget_unusable(jobs: Sequence[TrainingJob]) -> list[str]:
    """Let runs be run again that failed, that have other learning rates, or whose files are damaged; returns the damages."""
    damages: list[str] = []
    for job in jobs:
        if job.of_other_rates:
            shutil.rmtree(job.folder)
        if not job.done:
            continue
        try:
            usable = results.read_ending(job.folder).status == "ok"
            if usable:
                results.read_logs(job.folder / "run", job.max_steps)
        except DamagedRunError as error:
            usable = False
            damages.append(str(error))
        try:
            results.read_game(job.folder / results.GAME)
        except DamagedRunError as error:  # the checkpoints that it was made from are gone
            usable = False
            damages.append(str(error))
            (job.folder / results.GAME).unlink()
            shutil.rmtree(job.folder / "run", ignore_errors=True)
        if not usable:
            (job.folder / results.RESULT).unlink()
    return damages


def run_all(
    config: BenchConfig,
    jobs: Sequence[TrainingJob],
    report: Callable[[RunsDone], None] = lambda progress: None,
    python: Sequence[str] = (sys.executable,),
) -> None:
    """Run all jobs that have no result yet, and call `report` now and then.

    A process that dies is started again once, from its last checkpoint; then its run is marked as failed.
    """
    waiting = deque((job, 1) for job in jobs if not job.done)
    running: list[tuple[TrainingJob, int, subprocess.Popen[bytes]]] = []
    failures: list[str] = []
    report(_progress(config, jobs, [], failures))
    try:
        while waiting or running:
            while waiting and len(running) < config.processes:
                job, attempt = waiting.popleft()
                running.append((job, attempt, _start(config, job, python, machine_of(jobs))))
            time.sleep(_POLL_SECONDS)
            for item in [item for item in running if item[2].poll() is not None]:
                running.remove(item)
                job, attempt, process = item
                if not job.done and attempt < _ATTEMPTS:
                    waiting.appendleft((job, attempt + 1))
                    continue
                if not job.done:
                    _mark_failed(job, process.returncode)
                with suppress(DamagedRunError):  # which the report will say
                    ending = results.read_ending(job.folder)
                    if ending.status != "ok":
                        name = f"{job.entry.name.rpartition('/')[2]} #{job.seed}"
                        failures.append(f"{name}: {' '.join(ending.error.split())[:_MAX_ERROR]}")
            report(_progress(config, jobs, [item[0] for item in running], failures))
    finally:
        # After Ctrl-C: runs end after their step, with a checkpoint.
        for _, _, process in running:
            process.terminate()
        for _, _, process in running:
            process.wait()


def machine_of(jobs: Sequence[TrainingJob]) -> dict[str, Any]:
    """Return the number formats and threads of the first run that is done: all others compute in the same way."""
    for job in jobs:
        if job.done and (job.folder / "run" / "config.toml").is_file():
            with suppress(RunError):  # it will be run again
                begun = read_config(job.folder / "run")
                return {name: getattr(begun, name) for name in MACHINE}
    return {}


def _start(
    config: BenchConfig, job: TrainingJob, python: Sequence[str], machine: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    job.folder.mkdir(parents=True, exist_ok=True)
    content = {
        "entry": dataclasses.asdict(job.entry),
        "seed": job.seed,
        "rates": dataclasses.asdict(job.rates),
        "bench": dataclasses.asdict(config),
        "machine": machine,
        "files": _files(config, job.entry),
    }
    (job.folder / results.JOB).write_text(json.dumps(content) + "\n", encoding="utf-8")
    with (job.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [*python, "-m", "codea1_env.baselines.bench.worker", str(job.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us: we let the runs end after their step
        )


def _mark_failed(job: TrainingJob, code: int) -> None:
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    place = "/".join(job.folder.parts[-3:])
    error = f"its process died {how}, twice; see {place}/log.txt"
    result = {"status": "failed", "error": error, "seconds": 0.0}
    (job.folder / results.RESULT).write_text(json.dumps(result) + "\n", encoding="utf-8")


def _progress(
    config: BenchConfig,
    jobs: Sequence[TrainingJob],
    running: Sequence[TrainingJob],
    failures: Sequence[str],
) -> RunsDone:
    done = [job for job in jobs if job.done]
    at_work = [job for job in running if job not in done]  # one may have ended just now
    return RunsDone(
        len(done),
        len(done) * config.max_steps + sum(min(job.steps, config.max_steps) for job in at_work),
        tuple(failures),
    )
