"""Plots of a benchmark. They need matplotlib, which comes with the extra `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.baselines.bench.results import Result
from codea1_env.baselines.bench.score_table import CONTROLS, Table
from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import short_names
from codea1_env.support.extras import require

_CURVES: dict[str, tuple[tuple[str, ...], set[str], dict[str, str]]] = {
    "curves.png": ((), set(), {"held_out/pass_rate": "held-out golden tests passed", "held_out/kill_rate": "held-out mutants killed", "held_out/new_kill_rate": "of those that copies do not kill"}),
    "collusion.png": (("self-collusion", "code-a1-no-reference", "self-play", "code-a1"), {"self-collusion", "code-a1"}, {"reward/coder/mean": "reward of the coder", "tester/validity": "validity, as it is judged", "held_out/pass_rate": "held-out golden tests passed"}),
    "forgetting.png": (("code-a1", "no-book"), {"code-a1", "no-book"}, {"past/pass_rate": "tests passed that once broke a program"}),
}  # fmt: skip
"""File -> the entries whose curves it has (all where none is named), those that must be there, and what is drawn."""


def plot_all(folder: Path, results: Sequence[Result]) -> list[str]:
    """Draw what the results allow; returns the names of the files. Raises an ImportError without matplotlib."""
    new_figure: Any = require("matplotlib.figure", "plots").Figure
    made: list[str] = []

    def save(name: str, figure: Any) -> None:
        figure.savefig(folder / name, dpi=120, bbox_inches="tight")
        made.append(name)

    done = [result for result in results if result.status == "ok"]
    names = list(dict.fromkeys(result.entry for result in done))
    if not names:
        return []
    figure = new_figure(figsize=(14, 0.35 * len(names) + 1.5))
    _draw_ranking(figure, Table(results), names)
    save("scores.png", figure)

    for name, (shown, needed, metrics) in _CURVES.items():
        if needed <= set(names):
            figure = new_figure(figsize=(14 if len(metrics) > 1 else 6, 4))
            _draw_curves(figure, done, [each for each in shown or names if each in names], metrics)
            save(name, figure)
    return made


def _draw_ranking(figure: Any, table: Table, names: Sequence[str]) -> None:
    panels = figure.subplots(1, 3, sharey=True)
    short = short_names(names)
    labels = [short[name] for name in names]
    for panel, measure in zip(panels, ("pass_rate", "kill_rate", "new_kill_rate"), strict=True):
        for control, style in zip(CONTROLS, ("--", ":"), strict=True):
            if (level := table.mean(control, measure)) is not None:
                panel.axvline(level, color="gray", ls=style, label=CONTROLS[control])
        for place, name in enumerate(names):
            found = table.estimate(name, measure)
            if isinstance(found, Estimate):
                panel.plot([found.low, found.high], [place, place], color="tab:blue", lw=5, alpha=0.4)  # fmt: skip
            if found is not None:
                panel.plot(table.mean(name, measure), place, "o", color="tab:blue")
        panel.set_yticks(range(len(labels)), labels)
        panel.set_xlabel(f"{measure.replace('_', ' ')} (mean over seeds, 95%)")
        panel.grid(axis="x", alpha=0.3)
    panels[0].invert_yaxis()
    if panels[1].get_legend_handles_labels()[0]:
        panels[1].legend(fontsize="small")


def _draw_curves(
    figure: Any, results: Sequence[Result], names: Sequence[str], metrics: dict[str, str]
) -> None:
    """Means over seeds, with the range of the seeds."""
    panels = np.atleast_1d(figure.subplots(1, len(metrics)))
    short = short_names(names)
    for panel, (metric, label) in zip(panels, metrics.items(), strict=True):
        for number, name in enumerate(names):
            steps, low, middle, high = _band([r for r in results if r.entry == name], metric)
            color = f"C{number % 10}"
            style = "-" if number < 10 else "--"
            panel.plot(steps, middle, style, color=color, label=short[name])
            if len(names) <= 4:
                panel.fill_between(steps, low, high, color=color, alpha=0.15)
        panel.set_xlabel("step")
        panel.set_ylabel(label)
        panel.grid(alpha=0.3)
    panels[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _band(
    results: Sequence[Result], metric: str
) -> tuple[list[int], list[float], list[float], list[float]]:
    by_step: dict[int, list[float]] = {}
    for result in results:
        for row in result.curves:
            if row.get(metric) is not None:
                by_step.setdefault(row["step"], []).append(row[metric])
    steps, values = sorted(by_step), [by_step[step] for step in sorted(by_step)]
    middle = [float(np.mean(each)) for each in values]
    return steps, list(map(min, values)), middle, list(map(max, values))
