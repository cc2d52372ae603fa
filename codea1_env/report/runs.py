"""Runs as a report needs them: what is whole of their logs, and which of them differ only by their seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.support.logs import every_line
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import METRICS, TIMINGS, read_config
from codea1_env.training.settings import flat

_NO_INFLUENCE = (
    "seed", "output_dir", "workers", "save_steps", "save_total_limit", "tracker", "threads", "generation_threads",
    "engine", "address", "learner_gpus",
)  # fmt: skip
"""Settings in which the runs of a group may differ."""


_LARGEST = 1e100
_LONGEST_LABEL = 60


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


def read_run(path: Path, name: str) -> LoggedRun:
    """Read the folder of a run, also while it goes on."""
    config = read_config(path)
    metrics, timings = (_numbers(path / log) for log in (METRICS, TIMINGS))
    lines = {METRICS: metrics[1], TIMINGS: timings[1]}
    damaged = {log: number for log, number in lines.items() if number}
    return LoggedRun(name, path, config, metrics[0], timings[0], damaged)


def _numbers(path: Path) -> tuple[list[Row], int]:
    rows: dict[int, Row] = {}
    damaged = 0
    for row, _ in every_line(path):
        if row is None or type(row.get("step")) is not int:
            damaged += 1
        else:
            rows[row["step"]] = {key: value for key, value in row.items() if is_number(value)}
    return [rows[step] for step in sorted(rows)], damaged


def player_name(run: LoggedRun, role: str) -> str:
    """Return the model that plays a role, or the kind of another player."""
    player = run.config.player(role).player
    return run.config.model_of(role) if player == "llm" else f"codea1/{player}"


def grouped(runs: Sequence[LoggedRun]) -> list[RunGroup]:
    """Put runs together that differ only by their seed, in the order in which they were given.

    A second run of one seed begins another group: as a copy it would make the interval over seeds too narrow.
    """
    found: dict[tuple[str, int], list[LoggedRun]] = {}
    seen: Counter[tuple[str, int]] = Counter()
    for run in runs:
        settings = repr(_what_counts(run.config))
        again = seen[settings, run.config.seed]
        seen[settings, run.config.seed] += 1
        found.setdefault((settings, again), []).append(run)
    return [
        RunGroup(group[0].name + (f" and {len(group) - 1} more" if group[1:] else ""), tuple(group))
        for group in found.values()
    ]


def differing_settings(groups: Sequence[RunGroup]) -> dict[str, list[str]]:
    """Return setting -> its value in each group, of those that are not the same in all."""
    values = [_what_counts(group.runs[0].config) for group in groups]
    return {
        name: [str(each[name]) for each in values]
        for name in values[0]
        if len({repr(each[name]) for each in values}) > 1
    }


def by_difference(groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Name groups by what differs, as `use_book=False`; by their folders where that is long, or not enough."""
    settings = differing_settings(groups) if groups else {}
    labels = [
        ", ".join(f"{name}={values[i]}" for name, values in settings.items())
        for i in range(len(groups))
    ]
    told_apart = len(set(labels)) == len(groups) > 1
    if not told_apart or max(map(len, labels)) > _LONGEST_LABEL:
        return list(groups)
    return [replace(group, name=label) for group, label in zip(groups, labels, strict=True)]


def is_number(value: Any) -> bool:
    """Whether a value of a log is a number that can be reckoned with: finite, also in sums and squares.

    Example:
        >>> [is_number(value) for value in (1, 0.5, True, None, "1", 10**4000, float("nan"))]
        [True, True, False, False, False, False, False]
    """
    return type(value) in (int, float) and abs(value) < _LARGEST


def _what_counts(config: TrainConfig) -> dict[str, Any]:
    return {name: value for name, value in flat(config).items() if name not in _NO_INFLUENCE}
