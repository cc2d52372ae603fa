"""What the folders hold that a report is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.baselines.bench.results import Result, collect, jobs_of
from codea1_env.baselines.bench.suite import BenchConfig, Entry
from codea1_env.baselines.bench.sweep import read_rates
from codea1_env.baselines.diagnose.scores import COMMAND, SCORES, unfinished
from codea1_env.baselines.diagnose.scores import VERSION as SCORES_VERSION
from codea1_env.evaluation.result_folder import (
    REPORT,
    SETTINGS,
    VERDICTS,
    VERSION,
    FolderError,
    read_json,
)
from codea1_env.rendering.display import short_names
from codea1_env.report.runs import LoggedRun, read_run
from codea1_env.support.logs import every_line
from codea1_env.training.config import RunError
from codea1_env.training.metrics import Row

_NAMED = 3
"""Folders that an error names."""


class ReportError(ValueError):
    """A folder that nothing can be reported of. The message says what to do."""


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
    """Read folders of runs, benchmarks and evaluations."""
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    found = Findings(paths=distinct)
    names = short_names(map(str, distinct))
    for path in distinct:
        try:
            _read(path, names[str(path)], found)
        except (RunError, FolderError) as error:
            raise ReportError(str(error)) from error
    return found


def _read(path: Path, name: str, found: Findings) -> None:
    readers: dict[str, tuple[list[Any], Callable[[Path, str], Any]]] = {
        "config.toml": (found.runs, read_run),
        "bench.json": (found.benchmarks, _benchmark),
        SETTINGS: (found.evaluations, _evaluation),
        SCORES: (found.diagnostics, _diagnostics),
    }
    there = [reader for file, reader in readers.items() if (path / file).is_file()]
    if not there and (begun := unfinished(path)) is not None:
        shown = begun["scores"], begun["experiments"], _typed(path / COMMAND)
        found.diagnostics.append(Diagnosed(f"{name} (interrupted)", *shown))
        return
    if not there:
        raise ReportError(
            f"Expect {path} to be the folder of a run, a benchmark, diagnostics or an evaluation, actually: "
            + _nothing_of(path, list(readers))
        )
    for place, read in there:
        place.append(read(path, name))


def _diagnostics(path: Path, name: str) -> Diagnosed:
    content = _of_version(path / SCORES, SCORES_VERSION)
    scores, experiments = content.get("scores"), content.get("experiments")
    if not isinstance(scores, list) or not isinstance(experiments, list):
        raise ReportError(
            f"Expect {path / SCORES} to hold scores and experiments, actually: others. Name another folder."
        )
    return Diagnosed(name, scores, experiments, _typed(path / COMMAND))


def _typed(path: Path) -> str:
    """Return the command that a file of settings has; "" where it does not say so."""
    typed = read_json(path).get("command") if path.is_file() else None
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
    content = _of_version(path / "bench.json", 2)
    try:
        lists = {key: tuple(v) for key, v in content["settings"].items() if isinstance(v, list)}
        config = BenchConfig(**{**content["settings"], **lists})
        # Their files are found by their names alone: no class of a user is loaded.
        entries = [Entry(entry, "baseline") for entry in config.algorithms]
        jobs = jobs_of(config, entries, path, read_rates(path, config, entries))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(
            f"Expect {path / 'bench.json'} to hold the settings of a benchmark, actually: {error}"
        ) from error
    return Benchmark(name, config, collect(jobs), config.seeds * len(entries))


def _evaluation(path: Path, name: str) -> EvaluationResult:
    content = _of_version(path / SETTINGS, VERSION)
    settings = content.get("settings")
    report = read_json(path / REPORT) if (path / REPORT).is_file() else {}
    if not isinstance(settings, dict) or not isinstance(report.get("figures", {}), dict):
        raise ReportError(
            f"Expect {path} to hold settings and figures of an evaluation, actually: others. Name another folder."
        )
    verdicts = [row for row, _ in every_line(path / VERDICTS)]
    return EvaluationResult(name, path, _typed(path / SETTINGS), settings, report, verdicts)


def _of_version(path: Path, version: int) -> dict[str, Any]:
    content = read_json(path)
    if content.get("version") != version:
        raise ReportError(
            f"Expect {path} to be of version {version}, actually: {content.get('version')!r:.40}. Name another folder, "
            "or use the version of codea1_env that wrote it."
        )
    return content
