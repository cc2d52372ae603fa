"""The results folder of a benchmark.

bench.json       version and settings: a benchmark is resumed only with the same
results.jsonl    one row per run: status, and each problem's scores before the first and after the last step
runs/            job, log and run folder of each run
LEADERBOARD.md, *.png
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.baselines.bench.run_result import (
    DamagedRunError,
    Logs,
    Scores,
    read_ending,
    read_logs,
)
from codea1_env.baselines.bench.schedule import Job
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.evaluation.result_folder import FolderError, read_json

VERSION = 1
"""Rises when results of before cannot be compared with results of now."""


@dataclass(frozen=True)
class Result:
    """What came of one run."""

    entry: str
    seed: int
    status: str
    """"ok" or "failed"."""
    error: str
    seconds: float
    start: Scores
    end: Scores
    curves: list[dict[str, Any]]
    """Rows of metrics.jsonl."""


def open_folder(folder: Path, config: BenchConfig, *, resume: bool) -> None:
    """Begin a results folder, or go on with one.

    Raises:
        FolderError: It holds other results, or none.
    """
    path = folder / "bench.json"
    settings = dataclasses.asdict(config) | {"algorithms": list(config.algorithms)}
    settings.pop("processes")
    if not path.exists():
        if resume:
            raise FolderError(
                f"Expect {folder} to hold a benchmark to resume, actually: it has no bench.json. Check the "
                "folder, or leave --resume out."
            )
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise FolderError(
                f"Expect {folder} to be a new or an empty folder, actually it is neither. "
                "Name another folder."
            )
        folder.mkdir(parents=True, exist_ok=True)
        content = {"version": VERSION, "settings": settings}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return
    saved = read_json(path)
    if saved.get("version") != VERSION:
        raise FolderError(
            f"Expect a results folder of version {VERSION}, actually {folder} has version "
            f"{saved.get('version')!r}: its results cannot be compared with new ones. Name another folder."
        )
    if not resume:
        raise FolderError(
            f"Expect {folder} to be a new folder, actually it holds a benchmark. Add --resume to go on with "
            "it, or name another folder."
        )
    begun = saved.get("settings")
    if not isinstance(begun, dict):
        raise FolderError(
            f"Expect {path} to hold the settings of a benchmark, actually: {begun!r:.80}. The file was "
            "changed: put it back, or name another folder."
        )
    other = [
        f"{key} was {begun.get(key)!r}, now {settings[key]!r}"
        for key in settings
        if key not in ("algorithms", "seeds") and begun.get(key) != settings[key]
    ]
    if other:
        raise FolderError(
            f"Expect the settings that {folder} was begun with, actually: {'; '.join(other)}. Give the same "
            "options, or name another folder."
        )


def collect(jobs: Sequence[Job]) -> list[Result]:
    """Read what the runs left; runs without a result are left out, those whose files are damaged have failed."""
    return [_result(job) for job in jobs if job.done]


def write_results(folder: Path, results: Sequence[Result]) -> None:
    """Write results.jsonl: everything but the curves, which are in the run folders."""
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        for result in results:
            row = dataclasses.asdict(result)
            del row["curves"]
            file.write(json.dumps(row) + "\n")


def _result(job: Job) -> Result:
    logs = Logs({}, {}, [])
    try:
        ending = read_ending(job.folder)
        if ending.status == "ok":
            logs = read_logs(job.folder / "run", job.max_steps)
        status, error, seconds = ending.status, ending.error, ending.seconds
    except DamagedRunError as damage:
        status, error, seconds = "failed", f"{damage} --resume runs it again.", 0.0
    return Result(
        job.entry.name, job.seed, status, error, seconds, logs.start, logs.end, logs.metrics
    )
