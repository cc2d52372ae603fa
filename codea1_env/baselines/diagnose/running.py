"""Runs of experiments: each row of an experiment has the records of codea1-suite, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from codea1_env.baselines.diagnose.experiments import VERSION, Experiment, find_row
from codea1_env.suite.records import folder_of, read_record
from codea1_env.suite.running import PlayError, RecordKey, is_whole, run_all

CHECKED = "grpo"
"""The row of which the referee judges a sample, in its first seed: the worlds of all rows are the same."""


class RowRun(NamedTuple):
    """A row in a world."""

    experiment: str
    setting: str
    row: str
    seed: int
    value: float | None
    """The measure, from 0 to 1; None if the run failed."""
    error: str = ""


def run_experiment(
    folder: Path,
    experiment: Experiment,
    seeds: Sequence[int],
    *,
    quick: bool,
    processes: int,
    tell: Callable[[str, list[RowRun]], None],
) -> list[RowRun]:
    """Play all records of an experiment that the folder lacks; returns those of before, too. Rows that raise have failed.

    Args:
        folder: Folder of the diagnosis.
        experiment: What is asked.
        seeds: Worlds.
        quick: Whether only some settings are played.
        processes: Records at the same time. Has no influence on them.
        tell: Is told of each row, and what came.
    """
    found: list[RowRun] = []
    for name in experiment.rows:
        row = find_row(name)
        keys = experiment.keys(row, seeds, quick)
        error, came = "", dict[RecordKey, float]()

        def hear(key: RecordKey, value: float, left: int, came: dict[RecordKey, float] = came) -> None:  # fmt: skip
            came[key] = value

        def check(key: RecordKey, name: str = name) -> bool:
            return name == CHECKED and key.seed == seeds[0]

        try:
            run_all(folder / row.folder, row.algorithm, row.args, list(keys), rates=row.rates, processes=processes, check=check, tell=hear)  # fmt: skip
        except PlayError as raised:  # an algorithm of one's own may say anything
            error = str(raised)
        for key in keys:
            if key not in came and is_whole(folder / row.folder, key):
                came[key] = _read(folder / row.folder, key)
        runs = [
            RowRun(experiment.name, setting, name, key.seed, came.get(key), "" if key in came else error)
            for key, setting in keys.items()
        ]  # fmt: skip
        tell(experiment.name, runs)
        found += runs
    return found


def _read(base: Path, key: RecordKey) -> float:
    return read_record(folder_of(base, key.task, key.seed, key.track), VERSION).value


def runs_in(folder: Path, experiment: Experiment) -> list[RowRun]:
    """Return what a folder has of an experiment, whole records only."""
    found = []
    for name in experiment.rows:
        row = find_row(name)
        base = folder / row.folder
        numbers = {int(path.name) for path in base.glob("records/*/*/*") if path.name.isdigit()}
        for key, setting in experiment.keys(row, sorted(numbers), quick=False).items():
            if is_whole(base, key):
                found.append(RowRun(experiment.name, setting, name, key.seed, _read(base, key)))
    return found
