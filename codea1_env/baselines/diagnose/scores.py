"""Curves of an experiment over the knob, differences from the control, and the area between them; scores.json.

Scores are those of codea1-suite: 0 is random play, 1 the oracle, and what is below 0 is not cut off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.baselines.diagnose.experiments import EXPERIMENTS, Experiment
from codea1_env.baselines.diagnose.running import RowRun, runs_in
from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.suite.players import BAD
from codea1_env.suite.scores import between

SCORES = "scores.json"
VERSION = 4
"""Rises when the file says something else."""
WIDEST = 0.5
"""Width of an interval from which on it says nothing of a sign."""


@dataclass(frozen=True)
class RowScore:
    """A row of an experiment."""

    row: str
    means: Mapping[str, float | None]
    """Setting -> mean score over seeds; None where no run has one."""
    differences: Mapping[str, Estimate]
    """Setting -> how much more than the control it is, paired by seed; where at least two seeds have both."""
    area: Estimate | None
    """The mean difference over the settings: the area between the curves of row and control."""
    seeds: int
    """Seeds that the area is of: those of which row and control have all settings."""
    failures: tuple[str, ...]
    """Setting, seed and message of each run that failed."""


def score_rows(experiment: Experiment, runs: Sequence[RowRun]) -> list[RowScore]:
    """Score all rows of an experiment."""
    settings = [name for name in experiment.settings if any(run.setting == name for run in runs)]
    found: dict[tuple[str, str], dict[int, float]] = {}
    for run in runs:
        if run.value is not None:
            found.setdefault((run.row, run.setting), {})[run.seed] = run.value
    scored: dict[tuple[str, str], dict[int, float]] = {}
    for (row, setting), values in found.items():
        random, oracle = (found.get((name, setting), {}) for name in ("random", "oracle"))
        if random and oracle:
            scored[row, setting] = between(values, [*random.values()], [*oracle.values()])
    return [_score(experiment, row, settings, scored, runs) for row in experiment.rows]


def _score(
    experiment: Experiment,
    row: str,
    settings: Sequence[str],
    scored: Mapping[tuple[str, str], Mapping[int, float]],
    runs: Sequence[RowRun],
) -> RowScore:
    own = {setting: scored.get((row, setting), {}) for setting in settings}
    less: dict[str, dict[int, float]] = {}
    for setting, values in own.items():
        control = scored.get((experiment.control, setting), {})
        less[setting] = {seed: v - control[seed] for seed, v in values.items() if seed in control}
    differences = {
        setting: mean_over_runs([*each.values()])
        for setting, each in less.items()
        if len(each) > 1 and row != experiment.control
    }
    seeds = set[int].intersection(*map(set, less.values())) if less else set[int]()
    whole = [float(np.mean([less[setting][seed] for setting in settings])) for seed in sorted(seeds)]  # fmt: skip
    area = mean_over_runs(whole) if len(whole) > 1 else None
    if row == experiment.control or experiment.two_signs:
        area = None
    failures = tuple(f"{run.setting}, seed {run.seed}: {run.error}" for run in runs if run.row == row and run.error)  # fmt: skip
    means = {s: float(np.mean([*values.values()])) if values else None for s, values in own.items()}
    return RowScore(row, means, differences, area, len(whole), failures)


def signs_of(experiment: Experiment, first: RowScore) -> list[dict[str, str | None]]:
    """Return the signs of the first row beside the expected ones; None for one that too few seeds say nothing of."""
    expected = dict(zip(experiment.settings, experiment.signs, strict=True))
    told = {s: _sign(d) != "0" or d.high - d.low <= WIDEST for s, d in first.differences.items()}
    return [
        {"setting": s, "expected": expected[s], "came": _sign(d) if told[s] else None}
        for s, d in first.differences.items()
    ]


def came(row: str, control: str, signs: Sequence[Mapping[str, str | None]]) -> str:
    """Say what `signs_of` returns.

    Example:
        >>> came("a", "b", [{"setting": "1/2", "expected": "+", "came": None}])
        'a against b, sign by sign: 1/2: expected +, came too few seeds (0 of 0 as expected).'
    """
    said = [
        f"{each['setting']}: expected {each['expected']}, came {each['came'] or 'too few seeds'}"
        for each in signs
    ]
    told = [each["came"] == each["expected"] for each in signs if each["came"]]
    return (
        f"{row} against {control}, sign by sign: {'; '.join(said) or 'one seed has no sign'}"
        f" ({sum(told)} of {len(told)} as expected)."
    )


def _sign(difference: Estimate) -> str:
    return "+" if difference.low > 0 else "-" if difference.high < 0 else "0"


def tell_nothing(rows: Sequence[RowScore]) -> dict[str, str]:
    """Return the settings in which a bad row does better than GRPO, and which one."""
    means = {row.row: row.means for row in rows}
    found: dict[str, str] = {}
    for setting, good in means.get("grpo", {}).items():
        better = [name for name in BAD if name in means and good is not None and (means[name][setting] or -9.0) > good]  # fmt: skip
        if better:
            found[setting] = ", ".join(better)
    return found


def content_of(experiments: Sequence[Experiment], runs: Sequence[RowRun]) -> dict[str, Any]:
    """Return the content of scores.json: `scores` has a flat row for each row of each experiment, `experiments` all that a page shows."""
    scores: list[dict[str, Any]] = []
    shown = []
    for each in experiments:
        rows = score_rows(each, [run for run in runs if run.experiment == each.name])
        scores += [_flat(each, row) for row in rows]
        shown.append(_whole(each, rows))
    return {"version": VERSION, "scores": scores, "experiments": shown}


def unfinished(folder: Path) -> dict[str, Any] | None:
    """Return the content of scores.json for what an interrupted diagnosis has; None without a whole record."""
    experiments, runs = [], []
    for each in EXPERIMENTS.values():
        found = runs_in(folder, each)
        rows = tuple(dict.fromkeys(run.row for run in found))
        if found:
            experiments.append(dataclasses.replace(each, rows=rows))
            runs += found
    return content_of(experiments, runs) if runs else None


def _flat(experiment: Experiment, row: RowScore) -> dict[str, Any]:
    area = row.area
    return {
        "experiment": experiment.name,
        "tag": experiment.tag,
        "row": row.row,
        "low": area.low if area else None,
        "high": area.high if area else None,
        "area": area.value if area else None,
        "seeds": row.seeds,
    }


def _whole(experiment: Experiment, rows: Sequence[RowScore]) -> dict[str, Any]:
    first = rows[0].row == EXPERIMENTS[experiment.name].rows[0]
    return {
        "name": experiment.name,
        "question": experiment.question,
        "knob": experiment.knob,
        "measure": experiment.measure,
        "control": experiment.control,
        "settings": list(rows[0].means),
        "expected": experiment.expected if first else "",
        "refuted_by": experiment.refuted_by if first else "",
        "tells_nothing": tell_nothing(rows),
        "signs": signs_of(experiment, rows[0]) if first else [],
        "rows": [
            {
                "row": row.row,
                "means": dict(row.means),
                "differences": {name: vars(each) for name, each in row.differences.items()},
                "failures": list(row.failures),
            }
            for row in rows
        ],
    }
