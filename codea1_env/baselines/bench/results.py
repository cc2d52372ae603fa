"""The results folder of a benchmark.

bench.json       version and settings: a benchmark is resumed only with the same
sweep.jsonl      one row per entry and player: the score of each learning rate that was tried, and the best
sweep/           job, log and run folder of each run of the sweep
results.jsonl    one row per run: status, and each problem's scores before the first and after the last step
runs/            job, log and run folder of each run of the table
LEADERBOARD.md, *.png
"""

from __future__ import annotations

import dataclasses
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
from codea1_env.baselines.bench.schedule import TrainingJob
from codea1_env.baselines.bench.suite import BenchConfig, processes_of
from codea1_env.evaluation.result_folder import FolderError, FolderKind, ResultFolder, read_json
from codea1_env.training.settings import SettingsError, apply_table

RESULTS = "results.jsonl"
SWEEP = "sweep.jsonl"
_BENCHMARK = FolderKind(
    "a benchmark",
    "bench.json",
    version=2,
    extensible=("algorithms", "seeds", "sweep", "sweep_seeds"),
)


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


def open_folder(folder: Path, config: BenchConfig, *, resume: bool) -> ResultFolder:
    """Begin a results folder, or go on with one.

    Raises:
        FolderError: It holds other results, or none, or somebody works on it.
    """
    settings = dataclasses.asdict(config)
    del settings["processes"]
    return ResultFolder(folder, settings, resume=resume, kind=_BENCHMARK)


def read_settings(folder: Path) -> BenchConfig:
    """The settings that a benchmark was begun with.

    Raises:
        FolderError: The folder holds no benchmark of this version.
    """
    path = folder / _BENCHMARK.settings
    if not path.is_file():
        raise FolderError(
            f"Expect {folder} to hold a benchmark to resume, actually: it has no {path.name}. Check the folder, or "
            "leave --resume out."
        )
    table = read_json(path).get("settings")
    try:
        if not isinstance(table, dict):
            raise SettingsError(f"{path}: no settings")
        config = apply_table(BenchConfig(), table, str(path))
        return dataclasses.replace(config, processes=processes_of(config.base(0)))
    except ValueError as error:  # SettingsError, or a preset that is gone
        raise FolderError(
            f"Expect the settings of a benchmark of this version, actually: {error}. Name another folder."
        ) from error


def collect(jobs: Sequence[TrainingJob]) -> list[Result]:
    """Read what the runs left; those whose files are damaged have failed.

    Left out are runs without a result, and those with learning rates that the sweep has chosen no longer.
    """
    return [_result(job) for job in jobs if job.done and not job.of_other_rates]


def write_results(folder: ResultFolder, results: Sequence[Result]) -> None:
    """Write results.jsonl: everything but the curves, which are in the run folders."""
    rows = [dataclasses.asdict(result) for result in results]
    for row in rows:
        del row["curves"]
    folder.write_lines(RESULTS, rows)


def _result(job: TrainingJob) -> Result:
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
