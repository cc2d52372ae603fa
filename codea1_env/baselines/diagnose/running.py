"""Runs of experiments: each row of an experiment has the records of codea1-suite, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codea1_env.baselines.diagnose.experiments import Experiment, find_row
from codea1_env.suite.running import PlayError, run_all, value_in
from codea1_env.suite.tasks import RecordKey

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
        keys, base = experiment.keys(row, seeds, quick), folder / row.folder
        values: Mapping[RecordKey, float | None]
        checked, error = seeds[:1] if name == CHECKED else (), ""
        try:
            values = run_all(base, row.algorithm, row.args, list(keys), rates=row.rates, processes=processes, checked=checked)  # fmt: skip
        except PlayError as raised:  # an algorithm of one's own may say anything
            values, error = {key: value_in(base, key) for key in keys}, str(raised)
        runs = [
            RowRun(experiment.name, setting, name, key.seed, value, error if value is None else "")
            for key, setting in keys.items()
            for value in [values[key]]
        ]
        tell(experiment.name, runs)
        found += runs
    return found


def runs_in(folder: Path, experiment: Experiment) -> list[RowRun]:
    """Return what a folder has of an experiment, whole records only."""
    found = []
    for name in experiment.rows:
        row = find_row(name)
        base = folder / row.folder
        numbers = {int(path.name) for path in base.glob("records/*/*/*") if path.name.isdigit()}
        for key, setting in experiment.keys(row, sorted(numbers), quick=False).items():
            if (value := value_in(base, key)) is not None:
                found.append(RowRun(experiment.name, setting, name, key.seed, value))
    return found
