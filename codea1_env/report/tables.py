"""Tables of runs, benchmarks and evaluations: texts, with the numbers that their columns are sorted by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.report.episode_log import TEST, shortened
from codea1_env.report.folders import RunGroup, differing_settings
from codea1_env.training.summary import SUMMARY, phase_totals, signs, start_and_end


class Bar(NamedTuple):
    """A bar with its interval, as percent of the room: starts and widths."""

    start: float
    width: float
    low: float
    between: float


class Cell(NamedTuple):
    """A cell."""

    text: str
    order: float | None = None
    """What it is sorted by; None for its text."""
    folded: bool = False
    """Whether it is shown on a click only, as a command is."""
    bar: Bar | None = None
    """What is drawn below its text."""


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


def bar_cell(value: Estimate | None, least: float) -> Cell:
    """Return a figure with its bar, where it lies between `least`, which is 0 or -1, and 1."""
    cell = figure_cell(value)
    if value is None or value.low < least or value.high > 1:
        return cell
    zero, at, low, high = (
        round(100 * (each - least) / (1 - least), 2)
        for each in (0.0, value.value, value.low, value.high)
    )
    return cell._replace(bar=Bar(min(zero, at), abs(at - zero), low, high - low))


def with_values(sheet: Sheet) -> Sheet:
    """Return a table without the columns that say nothing in any row."""
    kept = [
        place
        for place in range(len(sheet.headings))
        if place == 0 or any(row[place].text not in ("", "-", "none") for row in sheet.rows)
    ]
    rows = [[row[place] for place in kept] for row in sheet.rows]
    return sheet._replace(headings=[sheet.headings[place] for place in kept], rows=rows)


def markdown(sheet: Sheet) -> list[str]:
    """Return the lines of a table in Markdown, without the columns that are shown on a click only."""
    kept = [i for i in range(len(sheet.headings)) if not any(row[i].folded for row in sheet.rows)]
    rows = [[row[i].text for i in kept] for row in sheet.rows]
    texts = [[sheet.headings[i] for i in kept], *rows]
    shown = [[" ".join(text.split()).replace("|", "\\|") for text in row] for row in texts]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    return [lines[0], f"|{'---|' * len(kept)}", *lines[1:]]


def text_cell(text: str) -> Cell:
    """Return any text as a cell: made safe to show, and cut if it is long."""
    return Cell(shortened(text, TEST))


def command_cell(words: str) -> Cell:
    """Return a command as a cell."""
    return text_cell(words)._replace(folded=True)


def overview(groups: Sequence[RunGroup], damaged: Mapping[Path, Mapping[str, int]]) -> Sheet:
    """Return the runs."""
    rows = []
    for group in groups:
        for run in group.runs:
            lines = ", ".join(f"{log}: {n}" for log, n in damaged[run.path].items()) or "none"
            seed = Cell(str(run.config.seed), run.config.seed)
            of = (seed, Cell(run.state, run.step), text_cell(lines))
            rows.append([text_cell(run.name), text_cell(group.name), *of])
    return Sheet("Runs", "", ["run", "group", "seed", "steps", "damaged lines"], rows)


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
            figure_cell(total.share),
            Cell(str(total.tokens) if total.tokens else "-", total.tokens),
            figure_cell(total.speed, ".0f"),
        ]
        for group in groups
        for run in group.runs
        for total in phase_totals(run.timings, run.metrics)
    ]
    headings = ["run", "phase", "seconds", "share", "tokens", "tokens/s"]
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
