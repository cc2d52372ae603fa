"""Runs as a report needs them: what is whole of their logs, and which of them differ only by their seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.support.logs import every_line
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import METRICS, TIMINGS, read_config
from codea1_env.training.settings import flat

_NO_INFLUENCE = (
    "seed", "output_dir", "workers", "save_steps", "save_total_limit", "tracker", "threads", "generation_threads",
)  # fmt: skip
"""Settings in which the runs of a group may differ."""


_LARGEST = 1e100


@dataclass(frozen=True)
class LoggedRun:
    """What a run has logged so far."""

    name: str
    path: Path
    config: TrainConfig
    metrics: list[Row]
    """Rows of metrics.jsonl from step 0 on: their finite numbers."""
    timings: list[Row]
    damaged: Mapping[str, int]
    """Log -> lines that are damaged or cut off, of those that have any."""

    @property
    def step(self) -> int:
        """The last step that is logged."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def state(self) -> str:
        """How far it is, in words."""
        steps = self.config.max_steps
        done = self.step >= steps
        return f"{self.step} steps" if done else f"{self.step} of {steps} steps so far"


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only by their seed."""

    name: str
    runs: tuple[LoggedRun, ...]

    @property
    def seeds(self) -> str:
        """The seeds, as a text."""
        return ", ".join(str(run.config.seed) for run in self.runs)


def read_run(path: Path, name: str) -> LoggedRun:
    """Read the folder of a run, also while it goes on.

    Raises:
        RunError: The folder holds no run, or none of this version of the package.
    """
    config = read_config(path)
    metrics, broken_metrics = _numbers(path / METRICS)
    timings, broken_timings = _numbers(path / TIMINGS)
    damaged = {METRICS: broken_metrics, TIMINGS: broken_timings}
    return LoggedRun(
        name, path, config, metrics, timings, {log: n for log, n in damaged.items() if n}
    )


def grouped(runs: Sequence[LoggedRun]) -> list[RunGroup]:
    """Put runs together that differ only by their seed, in the order in which they were given."""
    found: dict[str, list[LoggedRun]] = {}
    for run in runs:
        found.setdefault(repr(_what_counts(run.config)), []).append(run)
    return [RunGroup(_group_name(group), tuple(group)) for group in found.values()]


def differing_settings(groups: Sequence[RunGroup]) -> dict[str, list[str]]:
    """Setting -> its value in each group, of those that are not the same in all."""
    values = [_what_counts(group.runs[0].config) for group in groups]
    return {
        name: [str(each[name]) for each in values]
        for name in values[0]
        if len({repr(each[name]) for each in values}) > 1
    }


def is_number(value: Any) -> bool:
    """Whether a value of a log is a number that can be reckoned with: finite, also in sums and squares.

    Example:
        >>> [is_number(value) for value in (1, 0.5, True, None, "1", 10**4000, float("nan"))]
        [True, True, False, False, False, False, False]
    """
    return type(value) in (int, float) and abs(value) < _LARGEST


def _what_counts(config: TrainConfig) -> dict[str, Any]:
    return {name: value for name, value in flat(config).items() if name not in _NO_INFLUENCE}


def _group_name(runs: Sequence[LoggedRun]) -> str:
    return runs[0].name + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")


def _numbers(path: Path) -> tuple[list[Row], int]:
    """The numbers of each step's row, by step, and how many lines have none. The last row of a step counts."""
    rows: dict[int, Row] = {}
    damaged = 0
    for row, _ in every_line(path):
        if row is None or type(row.get("step")) is not int:
            damaged += 1
            continue
        rows[row["step"]] = {name: value for name, value in row.items() if is_number(value)}
    return [rows[step] for step in sorted(rows)], damaged
