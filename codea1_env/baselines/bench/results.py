"""The results folder of a benchmark.

bench.json       version and settings: a benchmark is resumed only with the same, but for algorithms, seeds and sweep
jobs.jsonl       table of all runs: a row when one begins, and one with what it measured when it has ended
sweep.jsonl      one row per entry and player: the score of each learning rate that was tried, and the best
sweep/           log and run folder of each run of the sweep
results.jsonl    one row per run: status, and each problem's scores before the first and after the last step
runs/            log and run folder of each run of the table
payoffs/         which test breaks which program, by pools
LEADERBOARD.md, *.png
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.baselines.bench.suite import (
    SWEEP_SEED,
    BenchConfig,
    Entry,
    Rates,
    processes_of,
)
from codea1_env.support.jobs import BENCHMARK, FolderError, Jobs, read_manifest
from codea1_env.support.logs import read_rows
from codea1_env.training.metrics import Row, mean
from codea1_env.training.run_folder import HELD_OUT, METRICS, UNSEEN, up_to
from codea1_env.training.settings import apply_table

PAYOFFS = "payoffs"
"""Folder of what the referee said of pools: the same for all runs with the same."""

Scores = dict[str, dict[str, float | None]]
"""Problem -> measure -> value."""

_MEASURES = (
    "pass_rate", "kill_rate", "copier_kill_rate", "new_kill_rate", "only_book", "past_pass_rate",
)  # fmt: skip
UNSEEN_PREFIX = "unseen/"
"""Begins the measures of problems that are not trained on."""
TABLE = "jobs.jsonl"
RESULTS = "results.jsonl"
SWEEP = "sweep.jsonl"
_CURVES = ("step", "held_out/", UNSEEN_PREFIX, "reward/", "past/pass_rate", "tester/validity")
"""Metrics of each step that stand in the table, or what their names begin with."""


class DamagedRunError(ValueError):
    """A file of a run does not hold what runs write. The message says which, and what is wrong with it."""


class Logs(NamedTuple):
    """What a run measured."""

    start: Scores
    end: Scores
    metrics: list[Row]
    """Rows of metrics.jsonl."""


def read_logs(run: Path, step: int) -> Logs:
    """Read what a run measured up to a step. Raises a DamagedRunError if rows are missing, or hold something else."""
    metrics = list(read_rows(run / METRICS, up_to(step)))
    if [row["step"] for row in metrics] != list(range(step + 1)):
        steps = f"steps {', '.join(str(row['step']) for row in metrics)}" if metrics else "none"
        raise DamagedRunError(
            f"Expect {run / METRICS} to have one row for each step from 0 to {step}, actually its whole rows "
            f"are those of {steps}."
        )
    measured = [row for row in metrics if "held_out/pass_rate" in row]
    if not measured or measured[0]["step"] != 0:
        raise DamagedRunError(
            f"Expect {run / METRICS} to have measures of step 0, actually: there are none."
        )
    trained = _read_scores(run / HELD_OUT, measured, "held_out/", _MEASURES)
    others = _read_scores(run / UNSEEN, measured, UNSEEN_PREFIX, _MEASURES[:4], UNSEEN_PREFIX)
    last = measured[-1]["step"]
    end = trained[last] | others.get(last, {})
    for task, lost in forgetting([trained[row["step"]] for row in measured]).items():
        end[task] = end[task] | {"forgetting": lost}
    return Logs(trained[0] | others.get(0, {}), end, metrics)


def _read_scores(
    path: Path, measured: list[Row], kind: str, measures: tuple[str, ...], prefix: str = ""
) -> dict[int, Scores]:
    rows_of = [row for row in measured if f"{kind}pass_rate" in row]
    scores: dict[int, Scores] = {}
    for row in read_rows(path, up_to(measured[-1]["step"])):
        values = {f"{prefix}{name}": row.get(name) for name in measures}
        scores.setdefault(row["step"], {})[str(row.get("task_id"))] = values
    for row in rows_of:
        found = scores.get(row["step"], {})
        rate = mean(values[f"{prefix}pass_rate"] for values in found.values())
        if found.keys() != scores.get(0, {}).keys() or rate != row[f"{kind}pass_rate"]:
            raise DamagedRunError(
                f"Expect {path} to have the rows whose means are in {METRICS}, actually those of "
                f"step {row['step']} are others, or incomplete."
            )
    return {row["step"]: scores.get(row["step"], {}) for row in rows_of}


def forgetting(measured: list[Scores]) -> dict[str, float]:
    """Problem -> how much more of its held-out tests was passed at the best earlier measurement than at the last.

    That is the forgetting of Chaudhry et al. 2018 (arXiv 1801.10112, equation 3) with problems as tasks, but never below 0.
    """
    found = {}
    for task in measured[-1]:
        rates = [row[task]["pass_rate"] for row in measured if task in row]
        known = [rate for rate in rates if rate is not None]
        if len(known) > 1:
            found[task] = max(0.0, max(known[:-1]) - known[-1])
    return found


Key = tuple[str, int, float, float]
"""Entry, seed, and multiples of the learning rates of coder and tester."""


@dataclass(frozen=True)
class TrainingJob:
    """One run."""

    entry: Entry
    seed: int
    rates: Rates

    @property
    def key(self) -> Key:
        """Its key in the table."""
        return self.entry.name, self.seed, self.rates.coder, self.rates.tester

    @property
    def place(self) -> str:
        """Its folder within that of the benchmark."""
        kind = "sweep" if self.seed >= SWEEP_SEED else "runs"
        rates = f"x{self.rates.coder!r}-x{self.rates.tester!r}"
        return f"{kind}/{self.entry.folder}/{rates}/seed_{self.seed}"


@dataclass(frozen=True)
class Result:
    """A row of the table: that a run was begun, or what came of it."""

    entry: str
    seed: int
    status: str
    """"begun", "ok" or "failed"."""
    error: str = ""
    seconds: float = 0.0
    start: Scores = field(default_factory=dict)
    end: Scores = field(default_factory=dict)
    curves: list[dict[str, Any]] = field(default_factory=list)
    """Metrics of each step."""
    rates: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """The user's files that it was begun with -> their digests."""

    @classmethod
    def of(cls, row: Row) -> tuple[Key, Result]:
        """Read a row of the table."""
        found = cls(**row)
        return (found.entry, found.seed, found.rates["coder"], found.rates["tester"]), found


class RunTable:
    """The table of a benchmark's runs. Failed ones are run again when it goes on, also with other files."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs, self.path = jobs, jobs.path
        self.rows = jobs.done(TABLE, Result.of)
        for key, row in self.rows.items():
            if row.status == "failed":
                self.rows[key] = dataclasses.replace(row, status="begun", files={})

    def note(self, job: TrainingJob, row: Result) -> None:
        """Add a row."""
        self._jobs.append(TABLE, [dataclasses.asdict(row)])
        self.rows[job.key] = row


def results_of(rows: Mapping[Key, Result], jobs: Iterable[TrainingJob]) -> list[Result]:
    """Return what came of the runs that have ended, well or badly."""
    return [row for job in jobs if (row := rows.get(job.key)) and row.status != "begun"]


def curves_of(metrics: Iterable[Row]) -> list[dict[str, Any]]:
    """Return what the table keeps of the metrics of a run."""
    return [{name: row[name] for name in row if name.startswith(_CURVES)} for row in metrics]


def open_folder(folder: Path, config: BenchConfig, *, resume: bool) -> Jobs:
    """Begin a results folder, or go on with one. Raises a FolderError if it holds other results, or is in use."""
    settings = dataclasses.asdict(config)
    del settings["processes"]
    return Jobs(folder, settings, BENCHMARK, resume=resume)


def read_settings(folder: Path) -> BenchConfig:
    """Return the settings of a benchmark. Raises a FolderError if the folder holds none of this version."""
    table = read_manifest(folder, BENCHMARK)["settings"]
    try:
        config = apply_table(BenchConfig(), table, str(folder / BENCHMARK.manifest))
        return dataclasses.replace(config, processes=processes_of(config.base(0)))
    except ValueError as error:  # SettingsError, or a preset that is gone
        raise FolderError(
            f"Expect the settings of a benchmark of this version, actually: {error}. Name another folder."
        ) from error


def jobs_of(
    config: BenchConfig, entries: Sequence[Entry], rates: Mapping[str, Rates]
) -> list[TrainingJob]:
    """All runs of the leaderboard: all entries with the first seed, then with the next. So an early end leaves whole rounds.

    Entries without learning rates are left out.
    """
    return [
        TrainingJob(entry, seed, rates[entry.name])
        for seed in range(config.seeds)
        for entry in entries
        if entry.name in rates
    ]


def write_results(folder: Jobs, results: Sequence[Result]) -> None:
    """Write results.jsonl: everything but the curves."""
    rows = [dataclasses.asdict(result) for result in results]
    for row in rows:
        del row["curves"]
    folder.write_lines(RESULTS, rows)
