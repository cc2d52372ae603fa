"""Tables of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.report.folders import RunGroup, differing_settings
from codea1_env.report.sheet import Cell, Sheet, Value, cell
from codea1_env.training.summary import SUMMARY, phase_totals, signs, start_and_end


def overview(groups: Sequence[RunGroup], damaged: Mapping[Path, Mapping[str, int]]) -> Sheet:
    """Return the runs."""
    rows: list[list[Value]] = [["run", "group", "seed", "steps", "damaged lines"]]
    for group in groups:
        for run in group.runs:
            lines = ", ".join(f"{log}: {n}" for log, n in damaged[run.path].items()) or "none"
            state = Cell(run.state, run.step)
            rows.append([run.name, group.name, run.config.seed, state, lines])
    return Sheet.of(rows, "Runs")


def health_signs(groups: Sequence[RunGroup]) -> Sheet:
    """Warnings that runs of language models printed: signs that they learn less than they could."""
    rows = [
        [run.name, line]
        for group in groups
        for run in group.runs
        if run.config.has_language_model
        for line in signs(run.metrics)
    ]
    return Sheet.of([["run", "sign"], *rows], "Signs of weak learning", "Means of three steps.")


def side_by_side(groups: Sequence[RunGroup]) -> Sheet:
    """Each measure at the start and at the end, a column for each group."""
    ends = [[start_and_end(run.metrics) for run in group.runs if run.metrics] for group in groups]
    rows: list[list[Value]] = [["measure", *(group.name for group in groups)]]
    for metric, label in SUMMARY.items():
        most = math.inf if metric == "book/size" else 1.0
        cells = [from_to([(a[metric], b[metric]) for a, b in each], most) for each in ends]
        if any(cell.text != "-" for cell in cells):
            shown = label.replace("  ", "↳ ", 1) if label[0] == " " else label
            rows.append([shown, *cells])
    note = (
        "Start and end: rewards and shares over the first and the last tenth of the steps, what is held back before the "
        "first step and when last measured. Brackets: 95% interval over runs, by Student's t. Controls stand below what "
        "they control: what copying kills needs no skill."
    )
    return Sheet.of(rows, "Start and end", note)


def other_settings(groups: Sequence[RunGroup]) -> Sheet:
    """Return the settings that differ between groups."""
    rows = [[name, *values] for name, values in differing_settings(groups).items()]
    headings = ["setting", *(group.name for group in groups)]
    return Sheet.of([headings, *rows], "Settings that differ")


def time_and_tokens(groups: Sequence[RunGroup]) -> Sheet:
    """Return the phases of each run."""
    rows: list[list[Value]] = [["run", "phase", "seconds", "share", "tokens", "tokens/s"]]
    for run in (run for group in groups for run in group.runs):
        for total in phase_totals(run.timings, run.metrics):
            tokens = Cell(str(total.tokens) if total.tokens else "-", total.tokens)
            seconds, speed = cell(total.seconds, ".1f"), cell(total.speed, ".0f")
            rows.append([run.name, total.name, seconds, total.share, tokens, speed])
    note = (
        "Tokens are those of language models: generated ones, or those that updates went through."
    )
    return Sheet.of(rows, "Time and tokens of each phase", note)


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
