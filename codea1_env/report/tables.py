"""Tables of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from codea1_env.evaluation.statistics import bootstrap
from codea1_env.report.cells import Cell, Sheet, figure_cell, text_cell
from codea1_env.report.episode_log import EpisodeLog, most_replayed
from codea1_env.report.replays import Replays
from codea1_env.report.runs import LoggedRun, RunGroup, differing_settings
from codea1_env.training.summary import SUMMARY, phase_totals, start_and_end

_LISTED = 30
"""Tests that are listed as forgotten."""


def overview(groups: Sequence[RunGroup], damaged: Mapping[Path, Mapping[str, int]]) -> Sheet:
    """The runs."""
    rows = [
        [
            text_cell(run.name),
            text_cell(group.name),
            Cell(str(run.config.seed), run.config.seed),
            Cell(run.state, run.step),
            text_cell(", ".join(f"{log}: {n}" for log, n in damaged[run.path].items()) or "none"),
        ]
        for group in groups
        for run in group.runs
    ]
    return Sheet("Runs", "", ["run", "group", "seed", "steps", "damaged lines"], rows)


def side_by_side(groups: Sequence[RunGroup]) -> Sheet:
    """What came of each group, from its start to its end."""
    ends = [[start_and_end(run.metrics) for run in group.runs if run.metrics] for group in groups]
    rows = []
    for metric, label in SUMMARY.items():
        cells = [_from_to([(a[metric], b[metric]) for a, b in each]) for each in ends]
        if any(cell.text != "-" for cell in cells):
            rows.append(
                [text_cell(label.replace("  ", "↳ ", 1) if label[0] == " " else label), *cells]
            )
    note = (
        "Start and end: rewards and shares over the first and the last tenth of the steps, what is held back before the "
        "first step and when last measured. Brackets: 95% bootstrap interval over runs. Controls stand below what "
        "they control: what copying kills needs no skill."
    )
    return Sheet("Start and end", note, ["measure", *(group.name for group in groups)], rows)


def other_settings(groups: Sequence[RunGroup]) -> Sheet:
    """Settings that differ between groups."""
    rows = [
        [text_cell(name), *map(text_cell, values)]
        for name, values in differing_settings(groups).items()
    ]
    return Sheet("Settings that differ", "", ["setting", *(group.name for group in groups)], rows)


def time_and_tokens(groups: Sequence[RunGroup]) -> Sheet:
    """The phases of each run."""
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


def came_back(runs: Sequence[LoggedRun], replays: Sequence[Replays]) -> Sheet:
    """Tests that programs passed, and later ones failed again."""
    rows = [
        [
            text_cell(run.name),
            text_cell(each.task_id),
            text_cell(each.test),
            Cell(str(each.first), each.first),
            Cell(str(each.times), each.times),
        ]
        for run, found in zip(runs, replays, strict=True)
        for each in found.relapses()
    ]
    rows = sorted(rows, key=lambda row: -(row[-1].order or 0))[:_LISTED]
    total = sum(found.relapsed for found in replays)
    note = (
        f"{total} replayed tests broke a program after one had passed them, as far as episodes.jsonl shows, which has one "
        "program of each problem and step. Programs are drawn anew each step: one relapse may be chance, many are not. "
        "Those that came back most often:"
    )
    headings = ["run", "problem", "test", "first broke in step", "came back"]
    return Sheet("What was forgotten", note, headings, rows)


def replay_counts(logs: Sequence[EpisodeLog]) -> Sheet:
    """How often the tests of the Mistake Book were replayed."""
    rows = [
        [
            text_cell(log.run.name),
            text_cell(each.task_id),
            text_cell(each.test),
            *(Cell(str(n), n) for n in (each.first, each.last, each.replays, each.passed)),
        ]
        for log in logs
        for each in most_replayed(log)
    ]
    rows = sorted(rows, key=lambda row: -(row[-2].order or 0))[:_LISTED]
    counts = [entry.replays for log in logs for entry in log.replays.entries.values()]
    note = (
        f"{len(counts)} tests were replayed, half of them {np.median(counts):.0f} times or less, as far as "
        "episodes.jsonl shows, which has one program of each problem and step. Those that were replayed most often:"
        if counts
        else ""
    )
    headings = ["run", "problem", "test", "first broke in step", "last replay", "replays", "passed"]
    return Sheet("Replays of each test", note, headings, rows)


def _from_to(pairs: Sequence[tuple[float | None, float | None]]) -> Cell:
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return Cell("-")
    start, end = (float(np.mean(side)) for side in zip(*known, strict=True))
    text = f"{_short(start)} → {_short(end)}"
    if len(known) > 1:
        ends = np.array([[b] for _, b in known])
        found = bootstrap(ends, lambda tables: tables.mean(axis=(1, 2)), np.random.default_rng(0))
        text += f" [{_short(found.low)}, {_short(found.high)}]"
    return Cell(text, end)


def _short(value: float) -> str:
    return f"{value:.0f}" if value > 10 else f"{value:.3f}"
