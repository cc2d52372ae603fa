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
    running: tuple[str, ...]
    failures: tuple[str, ...] = ()
    """"NAME #SEED: message" of each that failed, in the order in which they did."""


def prepare(config: BenchConfig, jobs: Sequence[TrainingJob]) -> list[str]:
    """Let runs be made anew that failed, are damaged or have other learning rates; returns the damages.

    Raises:
        FolderError: A user's file has changed since a run was begun with it that did not fail.
    """
    damages: list[str] = []
    for job in jobs:
        begun = job.begun
        if begun is None:
            continue
        anew = job.of_other_rates
        if job.done and not anew:
            try:
                anew = results.read_result(job).status != "ok"
            except DamagedRunError as error:
                anew = True
                damages.append(str(error))
        if anew:
            shutil.rmtree(job.folder)
        else:
            _check_files(job, _files(config, job.entry), begun.get("files", {}))
    return damages


def _check_files(job: TrainingJob, now: Mapping[str, str], before: Mapping[str, str]) -> None:
    for name, digest in before.items():
        if now.get(name, digest) != digest:
            raise FolderError(
                f"Expect {name} to be what it was when {job.folder} was begun with it, actually: it has changed. "
                "Put it back; or name what is new otherwise, or another folder; or remove that run's folder."
            )


def _files(config: BenchConfig, entry: Entry) -> dict[str, str]:
    found = {name: digest_of(name) for name in (entry.name, config.preset) if name}
    return {name: digest for name, digest in found.items() if digest is not None}


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
                [result] = results.collect([job])
                if result.status != "ok":
                    failures.append(f"{_short(job)}: {' '.join(result.error.split())[:_MAX_ERROR]}")
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


def _short(job: TrainingJob) -> str:
    return f"{job.entry.name.rpartition('/')[2]} #{job.seed}"


def _progress(
    config: BenchConfig,
    jobs: Sequence[TrainingJob],
    running: Sequence[TrainingJob],
    failures: Sequence[str],
) -> RunsDone:
    done = [job for job in jobs if job.done]
    return RunsDone(
        len(done),
        len(done) * config.max_steps + sum(min(job.steps, config.max_steps) for job in running),
        tuple(map(_short, running)),
        tuple(failures),
    )
