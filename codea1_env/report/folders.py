"""What the folders hold that a report is asked for; of runs what is whole of their logs, and which differ only by their seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codea1_env.baselines.bench.results import TABLE, Result, jobs_of, results_of
from codea1_env.baselines.bench.suite import BenchConfig, Entry
from codea1_env.baselines.bench.sweep import read_rates
from codea1_env.baselines.diagnose.scores import SCORES, unfinished
from codea1_env.baselines.diagnose.scores import VERSION as SCORES_VERSION
from codea1_env.evaluation.runner import REPORT, VERDICTS
from codea1_env.rendering.display import short_names
from codea1_env.support.jobs import (
    BENCHMARK,
    DIAGNOSTICS,
    EVALUATION,
    FolderError,
    read_json,
    read_manifest,
    read_table,
)
from codea1_env.support.logs import every_line
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row
from codea1_env.training.run_folder import METRICS, TIMINGS, read_config
from codea1_env.training.settings import flat

_NO_INFLUENCE = (
    "seed", "output_dir", "workers", "save_steps", "save_total_limit", "tracker", "threads",
    "engine", "address", "coder.devices", "coder.writers", "tester.devices", "tester.writers",
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


_NAMED = 3
"""Folders that an error names."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of algorithms, as far as it is."""

    name: str
    config: BenchConfig
    results: list[Result]
    wanted: int
    """Runs of the whole benchmark."""


@dataclass(frozen=True)
class EvaluationResult:
    """An evaluation, as far as it is."""

    name: str
    path: Path
    command: str
    """What was typed; "" where the folder does not say so."""
    settings: dict[str, Any]
    report: dict[str, Any]
    """report.json; empty while it goes on."""
    verdicts: list[Row | None]
    """Rows of verdicts.jsonl; None for a line that is damaged or cut off."""


@dataclass(frozen=True)
class Diagnosed:
    """What `codea1 bench diagnose` found."""

    name: str
    scores: list[dict[str, Any]]
    experiments: list[dict[str, Any]]
    command: str = ""
    """What was typed last; "" where the folder does not say so."""


@dataclass(frozen=True)
class Findings:
    """What there is to report of."""

    runs: list[LoggedRun] = field(default_factory=list)
    benchmarks: list[Benchmark] = field(default_factory=list)
    evaluations: list[EvaluationResult] = field(default_factory=list)
    diagnostics: list[Diagnosed] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)


def read_folders(paths: Sequence[Path]) -> Findings:
    """Read folders of runs, benchmarks and evaluations.

    Raises a FolderError or a RunError for one that nothing can be reported of.
    """
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    found = Findings(paths=distinct)
    names = short_names(map(str, distinct))
    for path in distinct:
        _read(path, names[str(path)], found)
    return found


def _read(path: Path, name: str, found: Findings) -> None:
    readers: dict[str, tuple[list[Any], Callable[[Path, str], Any]]] = {
        "config.toml": (found.runs, read_run),
        BENCHMARK.manifest: (found.benchmarks, _benchmark),
        EVALUATION.manifest: (found.evaluations, _evaluation),
        SCORES: (found.diagnostics, _diagnostics),
    }
    there = [reader for file, reader in readers.items() if (path / file).is_file()]
    if not there and (path / DIAGNOSTICS.manifest).is_file():
        command = _typed(read_manifest(path, DIAGNOSTICS))
        if (begun := unfinished(path)) is not None:
            shown = begun["scores"], begun["experiments"], command
            found.diagnostics.append(Diagnosed(f"{name} (interrupted)", *shown))
            return
    if not there:
        raise FolderError(
            f"Expect {path} to be the folder of a run, a benchmark, diagnostics or an evaluation, actually: "
            + _nothing_of(path, list(readers))
        )
    for place, read in there:
        place.append(read(path, name))


def _diagnostics(path: Path, name: str) -> Diagnosed:
    content = read_json(path / SCORES)
    if content.get("version") != SCORES_VERSION:
        raise FolderError(
            f"Expect {path / SCORES} to be of version {SCORES_VERSION}, actually: {content.get('version')!r:.40}. Name "
            "another folder, or use the version of codea1_env that wrote it."
        )
    scores, experiments = content.get("scores"), content.get("experiments")
    if not isinstance(scores, list) or not isinstance(experiments, list):
        raise FolderError(
            f"Expect {path / SCORES} to hold scores and experiments, actually: others. Name another folder."
        )
    begun = path / DIAGNOSTICS.manifest
    return Diagnosed(name, scores, experiments, _typed(read_json(begun)) if begun.is_file() else "")


def _typed(manifest: Mapping[str, Any]) -> str:
    """Return the command that a manifest has; "" where it does not say so."""
    typed = manifest.get("command")
    return typed if isinstance(typed, str) else ""


def _nothing_of(path: Path, files: Sequence[str]) -> str:
    if not path.exists():
        return "there is no such folder. Name another"
    if not path.is_dir():
        return "it is a file. Name the folder that holds it"
    inside = {found.parent for file in files for found in path.glob(f"*/{file}")}
    latest = sorted(inside, key=lambda folder: folder.stat().st_mtime)[: -1 - _NAMED : -1]
    named = " or ".join(map(str, latest))
    hint = f"It holds such folders: name {named}" if latest else "Name another folder"
    return f"it has none of {', '.join(files)}. {hint}"


def _benchmark(path: Path, name: str) -> Benchmark:
    settings = read_manifest(path, BENCHMARK)["settings"]
    try:
        lists = {key: tuple(v) for key, v in settings.items() if isinstance(v, list)}
        config = BenchConfig(**{**settings, **lists})
        # Their rows are found by their names alone: no class of a user is loaded.
        entries = [Entry(entry, "baseline") for entry in config.algorithms]
        jobs = jobs_of(config, entries, read_rates(path, config, entries))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FolderError(
            f"Expect {path / BENCHMARK.manifest} to hold the settings of a benchmark, actually: {error}"
        ) from error
    results = results_of(read_table(path / TABLE, Result.of), jobs)
    return Benchmark(name, config, results, config.seeds * len(entries))


def _evaluation(path: Path, name: str) -> EvaluationResult:
    content = read_manifest(path, EVALUATION)
    report = read_json(path / REPORT) if (path / REPORT).is_file() else {}
    if not isinstance(report.get("figures", {}), dict):
        raise FolderError(
            f"Expect {path / REPORT} to hold figures of an evaluation, actually: others. Name another folder."
        )
    verdicts = [row for row, _ in every_line(path / VERDICTS)]
    return EvaluationResult(name, path, _typed(content), content["settings"], report, verdicts)
