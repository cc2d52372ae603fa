"""Tables of runs, benchmarks and evaluations: texts, with the numbers that their columns are sorted by."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codea1_env.baselines.bench.ranking import command
from codea1_env.baselines.bench.score_table import CONTROLS, MEASURES, OF_END, Table
from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.rendering.display import clean, short_names
from codea1_env.report.episode_log import TEST, shortened
from codea1_env.report.folders import Benchmark
from codea1_env.report.runs import RunGroup, differing_settings
from codea1_env.training.summary import SUMMARY, phase_totals, signs, start_and_end


class Cell(NamedTuple):
    """A cell."""

    text: str
    order: float | None = None
    """What it is sorted by; None for its text."""
    folded: bool = False
    """Whether it is shown on a click only, as a command is."""


class Sheet(NamedTuple):
    """A table."""

    title: str
    note: str
    headings: list[str]
    rows: list[list[Cell]]


def figure_cell(value: Estimate | float | None, form: str = ".3f") -> Cell:
    """Return a number as a cell; those that are not known come last."""
    if value is None:
        return Cell("-", float("-inf"))
    if isinstance(value, Estimate):
        return Cell(str(value), value.value)
    return Cell(format(value, form), float(value))


def text_cell(text: str) -> Cell:
    """Return any text as a cell: made safe to show, and cut if it is long."""
    return Cell(shortened(text, TEST))


def _count(number: int) -> Cell:
    return Cell(str(number), number)


def command_cell(words: str) -> Cell:
    """Return a command as a cell."""
    return text_cell(words)._replace(folded=True)


def overview(groups: Sequence[RunGroup], damaged: Mapping[Path, Mapping[str, int]]) -> Sheet:
    """Return the runs."""
    rows = []
    for group in groups:
        for run in group.runs:
            lines = ", ".join(f"{log}: {n}" for log, n in damaged[run.path].items()) or "none"
            of = (_count(run.config.seed), Cell(run.state, run.step), text_cell(lines))
            rows.append([text_cell(run.name), text_cell(group.name), *of])
    headings = ["run", "group", "seed", "steps", "damaged lines"]
    if not any(damaged.values()):  # a column of "none" says nothing
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Sheet("Runs", "", headings, rows)


def health_signs(groups: Sequence[RunGroup]) -> Sheet:
    """Return what runs of language models have said while they trained: signs that they do not learn what they could."""
    rows = [
        [text_cell(run.name), text_cell(line)]
        for group in groups
        for run in group.runs
        if run.config.has_language_model
        for line in signs(run.metrics)
    ]
    return Sheet("Signs of weak learning", "Means of three steps.", ["run", "sign"], rows)


def side_by_side(groups: Sequence[RunGroup]) -> Sheet:
    """Return what came of each group, from its start to its end."""
    ends = [[start_and_end(run.metrics) for run in group.runs if run.metrics] for group in groups]
    rows = []
    for metric, label in SUMMARY.items():
        most = math.inf if metric == "book/size" else 1.0
        cells = [from_to([(a[metric], b[metric]) for a, b in each], most) for each in ends]
        if any(cell.text != "-" for cell in cells):
            shown = label.replace("  ", "↳ ", 1) if label[0] == " " else label
            rows.append([text_cell(shown), *cells])
    note = (
        "Start and end: rewards and shares over the first and the last tenth of the steps, what is held back before the "
        "first step and when last measured. Brackets: 95% interval over runs, by Student's t. Controls stand below what "
        "they control: what copying kills needs no skill."
    )
    return Sheet("Start and end", note, ["measure", *(group.name for group in groups)], rows)


def other_settings(groups: Sequence[RunGroup]) -> Sheet:
    """Return the settings that differ between groups."""
    settings = differing_settings(groups).items()
    rows = [[text_cell(name), *map(text_cell, values)] for name, values in settings]
    return Sheet("Settings that differ", "", ["setting", *(group.name for group in groups)], rows)


def time_and_tokens(groups: Sequence[RunGroup]) -> Sheet:
    """Return the phases of each run."""
    rows = [
        [
            text_cell(run.name),
            text_cell(total.name),
            figure_cell(total.seconds, ".1f"),
            figure_cell(100 * total.share, ".1f"),
            Cell(str(total.tokens) if total.tokens else "-", total.tokens),
            figure_cell(total.speed, ".0f"),
        ]
        for group in groups
        for run in group.runs
        for total in phase_totals(run.timings, run.metrics)
    ]
    headings = ["run", "phase", "seconds", "percent", "tokens", "tokens/s"]
    note = (
        "Tokens are those of language models: generated ones, or those that updates went through."
    )
    return Sheet("Time and tokens of each phase", note, headings, rows)


def from_to(pairs: Sequence[tuple[float | None, float | None]], most: float = 1.0) -> Cell:
    """Return the means of starts and ends, with the interval of the ends, which the measure's range bounds."""
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return Cell("-")
    start, end = (float(np.mean(side)) for side in zip(*known, strict=True))
    text = f"{_short(start)} → {_short(end)}"
    if len(known) > 1:
        found = mean_over_runs([b for _, b in known])
        low, high = max(min(0.0, found.value), found.low), min(max(most, found.value), found.high)
        text += f" {Estimate(end, low, high).interval(_short)}"
    return Cell(text, end)


def _short(value: float) -> str:
    return f"{value:.0f}" if value > 10 else f"{value:.3f}"


def leaderboard_sheet(benchmark: Benchmark) -> Sheet:
    """Return the leaderboard of a benchmark, with the command of each row."""
    table, config = Table(benchmark.results), benchmark.config
    names = short_names(table.entries)
    first = table.entries[0] if table.entries else ""
    shown = clean(names.get(first, first))
    rows = []
    for entry in [*table.entries, *(CONTROLS if table.results else [])]:
        row = [text_cell(CONTROLS.get(entry) or names[entry])]
        for measure in MEASURES:
            less = table.difference(entry, first, measure) if entry != first else None
            row += [figure_cell(table.estimate(entry, measure)), figure_cell(less)]
        for measure in OF_END:
            row.append(figure_cell(None if entry in CONTROLS else table.mean(entry, measure)))
        runs = [result for result in benchmark.results if result.entry == entry]
        failed = sum(result.status == "failed" for result in runs)
        done = (
            "-" if entry in CONTROLS else f"{len(runs)}" + (f", {failed} failed" if failed else "")
        )
        row.append(Cell(done, len(runs)))
        one = dataclasses.replace(config, algorithms=(entry,))
        rows.append([*row, Cell("-") if entry in CONTROLS else command_cell(command(one))])
    rows.sort(key=lambda row: -(row[1].order if row[1].order is not None else -1.0))
    note = (
        f"{len(benchmark.results)} of {benchmark.wanted} runs done. Pass rate: held-out golden tests that the coder passes. "
        "Kill rate: held-out mutants that the tester kills. Means over seeds and problems with 95% intervals over seeds, by "
        f"Student's t; what each is less {shown} is paired by seed: an interval with 0 says nothing. "
        + (
            "Learning rates were not swept: a higher row may only have the better step size."
            if len(config.sweep) == 1
            else "Learning rates were swept for each row: LEADERBOARD.md of the folder has them."
        )
    )
    headings = ["entry"]
    for measure in ("coder: pass rate", "tester: kill rate", "of what copies miss"):
        headings += [measure, f"less {shown}"]
    headings += ["only book", "past", "forgotten", "runs", "command"]
    return Sheet(f"Leaderboard: {benchmark.name}", note, headings, rows)
