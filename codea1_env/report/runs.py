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

NO_INFLUENCE = (
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


class RunReader:
    """Reads the folder of a run again and again while it goes on, each time only what is new."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._logs = {log: _NumberLog(path / log) for log in (METRICS, TIMINGS)}
        self._config, self._written = read_config(path), _changed(path)

    def read(self, *, growing: bool = True) -> LoggedRun:
        """Return all that is logged by now."""
        if (written := _changed(self._path)) != self._written:
            # A run decides some of its settings itself, after it has begun.
            self._config, self._written = read_config(self._path), written
        for log in self._logs.values():
            log.read(growing)
        damaged = {name: log.damaged for name, log in self._logs.items() if log.damaged}
        metrics, timings = (self._logs[name].by_step() for name in (METRICS, TIMINGS))
        return LoggedRun(self._name, self._path, self._config, metrics, timings, damaged)


def read_run(path: Path, name: str) -> LoggedRun:
    """Read the folder of a run, also while it goes on."""
    return RunReader(path, name).read(growing=False)


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
    return {name: value for name, value in flat(config).items() if name not in NO_INFLUENCE}


def _changed(run: Path) -> int:
    path = run / "config.toml"
    return path.stat().st_mtime_ns if path.is_file() else 0


class _NumberLog:
    """The numbers of each step's row, and how many lines have none. The last row of a step counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin_again()

    def _begin_again(self) -> None:
        self._rows: dict[int, Row] = {}
        self._end = 0
        self.damaged = 0

    def read(self, growing: bool) -> None:
        if self._end and (not self._path.exists() or self._path.stat().st_size < self._end):
            self._begin_again()  # the run was resumed from a step before
        for row, end in every_line(self._path, self._end, growing=growing):
            self._end = end
            if row is None or type(row.get("step")) is not int:
                self.damaged += 1
            else:
                numbers = {name: value for name, value in row.items() if is_number(value)}
                self._rows[row["step"]] = numbers

    def by_step(self) -> list[Row]:
        return [self._rows[step] for step in sorted(self._rows)]
