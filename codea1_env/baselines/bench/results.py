"""The results folder of a benchmark.

bench.json       version and settings: a benchmark is resumed only with the same, but for algorithms, seeds and sweep
sweep.jsonl      one row per entry and player: the score of each learning rate that was tried, and the best
sweep/           job, log and run folder of each run of the sweep
results.jsonl    one row per run: status, and each problem's scores before the first and after the last step
runs/            job, log and run folder of each run of the table; of tables also game.json, exact figures by problem
payoffs/         which test breaks which program, by pools
LEADERBOARD.md, *.png
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.baselines.bench.suite import BenchConfig, Entry, Rates, processes_of
from codea1_env.baselines.payoffs import GAME_FIGURES
from codea1_env.evaluation.result_folder import BENCHMARK, FolderError, ResultFolder, read_json
from codea1_env.support.logs import read_rows
from codea1_env.training.metrics import Row, mean
from codea1_env.training.run_folder import HELD_OUT, METRICS, UNSEEN, up_to
from codea1_env.training.settings import SettingsError, apply_table

RESULT = "result.json"
GAME = "game.json"
RUNS = "runs"
PAYOFFS = "payoffs"
"""Folder of what the referee said of pools: the same for all runs with the same."""
JOB = "job.json"

Scores = dict[str, dict[str, float | None]]
"""Problem -> measure -> value."""

_MEASURES = (
    "pass_rate", "kill_rate", "copier_kill_rate", "new_kill_rate", "only_book", "past_pass_rate",
)  # fmt: skip
UNSEEN_PREFIX = "unseen/"
"""Begins the measures of problems that are not trained on."""
RESULTS = "results.jsonl"
SWEEP = "sweep.jsonl"


class DamagedRunError(ValueError):
    """A file of a run does not hold what runs write. The message says which, and what is wrong with it."""


class Ending(NamedTuple):
    """How a run ended: result.json."""

    status: str
    """"ok" or "failed"."""
    error: str
    seconds: float


class Logs(NamedTuple):
    """What a run measured."""

    start: Scores
    end: Scores
    metrics: list[Row]
    """Rows of metrics.jsonl."""


def read_ending(folder: Path) -> Ending:
    """Read the result.json of a run's folder. Raises a DamagedRunError if it is something else."""
    path = folder / RESULT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedRunError(f"Expect {path} to be a JSON file, actually: {error}") from error
    match content:
        case {"status": "ok" | "failed" as status, "error": str(message), "seconds": seconds} if (
            _is_number(seconds)
        ):
            return Ending(status, message, seconds)
    raise DamagedRunError(
        f'Expect {path} to hold a status ("ok" or "failed"), an error and seconds, actually: {content!r:.80}'
    )


def read_logs(run: Path, step: int) -> Logs:
    """Read what a run measured up to a step. Raises a DamagedRunError if rows are missing, or hold something else."""
    metrics = list(read_rows(run / METRICS, up_to(step)))
    if [row["step"] for row in metrics] != list(range(step + 1)):
        steps = f"steps {', '.join(str(row['step']) for row in metrics)}" if metrics else "none"
        raise DamagedRunError(
            f"Expect {run / METRICS} to have one row for each step from 0 to {step}, actually its whole rows "
            f"are those of {steps}."
        )
    for row in metrics:
        _check_values(run / METRICS, row, list(row))
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
        _check_values(path, row, measures)
        values = {f"{prefix}{name}": row[name] for name in measures}
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


def _check_values(path: Path, row: Row, names: list[str] | tuple[str, ...]) -> None:
    for name in names:
        if name not in row or not (row[name] is None or _is_number(row[name])):
            raise DamagedRunError(
                f"Expect {path} to have a number or null for {name} of step {row['step']}, actually: "
                f"{row.get(name, 'nothing')!r:.80}"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


@dataclass(frozen=True)
class TrainingJob:
    """One run."""

    entry: Entry
    seed: int
    folder: Path
    max_steps: int
    rates: Rates

    @property
    def done(self) -> bool:
        """Whether it has a result, good or bad."""
        return (self.folder / RESULT).exists()

    @property
    def steps(self) -> int:
        """Steps done so far."""
        path = self.folder / "run" / "timings.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    @property
    def of_other_rates(self) -> bool:
        """Whether the folder holds a run that was begun with other learning rates."""
        begun = self.begun
        return begun is not None and begun.get("rates") != dataclasses.asdict(self.rates)

    @property
    def begun(self) -> dict[str, Any] | None:
        """What its folder says that it was begun with, empty if that cannot be read; None if it was not begun."""
        try:
            content = json.loads((self.folder / JOB).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}


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
    """Begin a results folder, or go on with one. Raises a FolderError if it holds other results, or is in use."""
    settings = dataclasses.asdict(config)
    del settings["processes"]
    return ResultFolder(folder, settings, resume=resume, kind=BENCHMARK)


def read_settings(folder: Path) -> BenchConfig:
    """Return the settings of a benchmark. Raises a FolderError if the folder holds none of this version."""
    path = folder / BENCHMARK.settings
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


def jobs_of(
    config: BenchConfig, entries: Sequence[Entry], folder: Path, rates: Mapping[str, Rates]
) -> list[TrainingJob]:
    """All runs of the table: all entries with the first seed, then with the next. So an early end leaves whole rounds.

    Entries without learning rates are left out.
    """
    place = folder / RUNS
    return [
        TrainingJob(
            entry, seed, place / entry.folder / f"seed_{seed}", config.max_steps, rates[entry.name]
        )
        for seed in range(config.seeds)
        for entry in entries
        if entry.name in rates
    ]


def finished(folder: Path) -> set[Path]:
    """Return the folders of all runs that have ended, also of rows and seeds that are not wanted now."""
    return {path.parent for path in (folder / RUNS).glob(f"*/seed_*/{RESULT}")}


def collect(jobs: Sequence[TrainingJob]) -> list[Result]:
    """Read the runs that are done, with the rates of the sweep; those whose files are damaged have failed."""
    return [_result(job) for job in jobs if job.done and not job.of_other_rates]


def write_results(folder: ResultFolder, results: Sequence[Result]) -> None:
    """Write results.jsonl: everything but the curves, which are in the run folders."""
    rows = [dataclasses.asdict(result) for result in results]
    for row in rows:
        del row["curves"]
    folder.write_lines(RESULTS, rows)


def read_game(path: Path) -> Scores:
    """Read what a run of tables says of its game; nothing of other runs."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            task: {name: float(row[name]) for name in GAME_FIGURES} for task, row in content.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedRunError(f"Expect {path} to hold figures by problem: {error!r}.") from error


def _result(job: TrainingJob) -> Result:
    logs = Logs({}, {}, [])
    try:
        ending = read_ending(job.folder)
        if ending.status == "ok":
            logs = read_logs(job.folder / "run", job.max_steps)
            for task, figures in read_game(job.folder / GAME).items():
                logs.end[task] = logs.end.get(task, {}) | figures
    except DamagedRunError as damage:
        ending = Ending("failed", f"{damage} --resume runs it again.", 0.0)
    return Result(job.entry.name, job.seed, *ending, *logs)
