"""Tables of benchmarks and evaluations: each row with its command."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codea1_env.baselines.bench.ranking import command
from codea1_env.baselines.bench.score_table import CONTROLS, MEASURES, OF_END, Table
from codea1_env.evaluation.registry import evaluation_names
from codea1_env.evaluation.result_folder import short_names
from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import clean
from codea1_env.report.cells import Cell, Sheet, figure_cell, text_cell
from codea1_env.report.folders import Benchmark, EvaluationResult

_OPTIONS = (
    "agent", "samples", "problems", "split", "max_problems", "num_samples", "num_tests", "protocol", "mutator", "seed",
)  # fmt: skip
"""Settings of evaluations that are options of their commands, too. Those of how a language model answers are left out:
the settings of a folder name them otherwise."""


def leaderboard_sheet(benchmark: Benchmark) -> Sheet:
    """The leaderboard of a benchmark, with the command of each row."""
    table, config = Table(benchmark.results), benchmark.config
    names = short_names(table.entries)
    first = table.entries[0] if table.entries else ""
    rows = []
    for entry in [*table.entries, *(CONTROLS if table.results else [])]:
        row = [text_cell(CONTROLS.get(entry) or names[entry])]
        for measure in MEASURES:
            better = table.improvement(entry, first, measure) if entry != first else None
            row += [figure_cell(table.iqm(entry, measure)), figure_cell(table.mean(entry, measure))]
            row.append(figure_cell(better))
        for measure in OF_END:
            row.append(figure_cell(None if entry in CONTROLS else table.mean(entry, measure)))
        runs = [result for result in benchmark.results if result.entry == entry]
        failed = sum(result.status == "failed" for result in runs)
        done = (
            "-" if entry in CONTROLS else f"{len(runs)}" + (f", {failed} failed" if failed else "")
        )
        row.append(Cell(done, len(runs)))
        one = dataclasses.replace(config, algorithms=(entry,))
        rows.append([*row, _command_cell("-" if entry in CONTROLS else command(one))])
    rows.sort(key=lambda row: -(row[2].order if row[2].order is not None else -1.0))
    note = (
        f"{len(benchmark.results)} of {benchmark.wanted} runs done. Pass rate: held-back golden tests that the coder passes. "
        "Kill rate: held-back mutants that the tester kills. IQM: interquartile mean over seeds and problems with its 95% "
        f"interval. P: probability of a higher score than {clean(names.get(first, first))} on a random problem; an interval with 0.5 says nothing. "
        + (
            "Learning rates were not swept: a higher row may only have the better step size."
            if len(config.sweep) == 1
            else "Learning rates were swept for each row: LEADERBOARD.md of the folder has them."
        )
    )
    headings = [
        "entry",
        "coder: pass rate, IQM",
        "mean",
        "P",
        "tester: kill rate, IQM",
        "mean",
        "P",
        "of what copies miss, IQM",
        "mean",
        "P",
    ]
    return Sheet(
        f"Leaderboard: {benchmark.name}",
        note,
        [*headings, "only book", "past", "forgotten", "runs", "command"],
        rows,
    )


def evaluation_sheets(evaluations: Sequence[EvaluationResult]) -> Iterator[Sheet]:
    """A table for each kind of evaluation: a row for each folder, a column for each figure."""
    for kind in dict.fromkeys(map(_kind, evaluations)):
        members = [each for each in evaluations if _kind(each) == kind]
        figures = [_flat(each.report.get("figures", {})) for each in members]
        names = list(dict.fromkeys(name for each in figures for name in each))
        rows = [
            [
                text_cell(each.name),
                text_cell(str(each.settings.get("agent", "samples of a file"))),
                text_cell(str(each.settings.get("problems", "-"))),
                *(figure_cell(found.get(name)) for name in names),
                text_cell(_state(each)),
                _command_cell(_evaluation_command(kind, each.settings) if each.report else "-"),
            ]
            for each, found in zip(members, figures, strict=True)
        ]
        headings = ["folder", "agent", "problems", *names, "state", "command"]
        note = "Brackets: 95% interval over problems."
        yield Sheet(f"Evaluations: {clean(kind)}", note, headings, rows)


def _kind(each: EvaluationResult) -> str:
    return str(each.report.get("kind", "code")) if each.report else "not finished"


def _state(each: EvaluationResult) -> str:
    state = f"{each.verdicts} verdicts" + ("" if each.report else " so far, not finished")
    return state + (f", {each.damaged} damaged lines" if each.damaged else "")


def _flat(figures: Mapping[str, Any], before: str = "") -> dict[str, Estimate]:
    """Figures by name, also of those that stand in groups, as those of base tests do."""
    found: dict[str, Estimate] = {}
    for name, value in figures.items():
        match value:
            case {"value": float(middle), "low": float(low), "high": float(high)}:
                found[f"{before}{name}"] = Estimate(middle, low, high)
            case dict():
                found |= _flat(value, "" if name == "all" else f"{name}: ")
    return found


def _command_cell(words: str) -> Cell:
    return text_cell(words)._replace(one_line=True)


def _evaluation_command(kind: str, settings: Mapping[str, Any]) -> str:
    words = ["codea1", "eval", *([kind] if kind in evaluation_names() else ["run", "FILE.py:NAME"])]
    for name in _OPTIONS:
        if settings.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(settings[name])]
    return shlex.join(words)
