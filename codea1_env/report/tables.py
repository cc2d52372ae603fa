"""Tables of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.report.folders import RunGroup, differing_settings
from codea1_env.report.sheet import Cell, Sheet, figure_cell, text_cell
from codea1_env.training.summary import SUMMARY, phase_totals, signs, start_and_end


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
    """Warnings that runs of language models printed: signs that they learn less than they could."""
    rows = [
        [text_cell(run.name), text_cell(line)]
        for group in groups
        for run in group.runs
        if run.config.has_language_model
        for line in signs(run.metrics)
    ]
    return Sheet("Signs of weak learning", "Means of three steps.", ["run", "sign"], rows)


def side_by_side(groups: Sequence[RunGroup]) -> Sheet:
    """Each measure at the start and at the end, a column for each group."""
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
