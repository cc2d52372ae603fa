"""Curves of an experiment over the knob, differences from the control, and the area between them; scores.json.

Scores of algorithms are made by `codea1_env.suite`; an area here says how far a row is from its control.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.baselines.diagnose.experiments import (
    EXPERIMENTS,
    Expectation,
    Experiment,
    expectations,
)
from codea1_env.baselines.diagnose.running import RESULTS, RowRun
from codea1_env.baselines.payoffs import GAME_FIGURES
from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.support.jobs import read_table

WIDEST = 0.5
"""Width of an interval from which on it says nothing of a sign: measures are from 0 to 1."""
_GRPO = ("code-a1", "grpo")
_FAULTY = ("negated-rewards", "random-rewards")
_BESIDE = (*GAME_FIGURES, "killed/seen", "killed/in", "right/in", "right/out")


@dataclass(frozen=True)
class RowScore:
    """A row of an experiment."""

    row: str
    means: Mapping[str, float | None]
    """Setting -> mean of the measure over seeds; None where no run has one."""
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
    own = [run for run in runs if run.experiment == experiment.name]
    settings = [name for name in experiment.settings if any(run.setting == name for run in own)]
    values = {
        (run.row, run.setting, run.seed): run.measures.get(experiment.measure)
        for run in own
        if not run.error
    }
    seeds = sorted({run.seed for run in own})
    scores = []
    for row in experiment.rows:
        found: dict[str, dict[int, float]] = {setting: {} for setting in settings}
        for setting in settings:
            for seed in seeds:
                mine = values.get((row, setting, seed))
                control = values.get((experiment.control, setting, seed))
                if mine is not None and control is not None:
                    found[setting][seed] = mine - control
        means = {s: _mean([values.get((row, s, seed)) for seed in seeds]) for s in settings}
        differences = {
            setting: mean_over_runs(list(each.values()))
            for setting, each in found.items()
            if len(each) > 1 and row != experiment.control
        }
        whole = [
            float(np.mean([found[setting][seed] for setting in settings]))
            for seed in seeds
            if all(seed in found[setting] for setting in settings)
        ]
        area = mean_over_runs(whole) if len(whole) > 1 else None
        failures = tuple(
            f"{run.setting}, seed {run.seed}: {run.error}"
            for run in own
            if run.row == row and run.error
        )
        scores.append(RowScore(row, means, differences, area, len(whole), failures))
    return scores


def signs_of(
    experiment: Experiment, first: RowScore, expectation: Expectation
) -> list[dict[str, str | None]]:
    """Return the signs of the first row beside the expected ones; None for one that too few seeds say nothing of."""
    expected = dict(zip(experiment.settings, expectation.signs, strict=True))
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


def _beside(
    experiment: Experiment, runs: Sequence[RowRun], row: str, setting: str
) -> dict[str, float]:
    """Means of other figures of a row."""
    own = [
        run
        for run in runs
        if (run.experiment, run.row, run.setting) == (experiment.name, row, setting)
    ]
    means = {
        name: _mean([run.measures.get(name) for run in own if not run.error]) for name in _BESIDE
    }
    return {name: mean for name, mean in means.items() if mean is not None}


def _sign(difference: Estimate) -> str:
    return "+" if difference.low > 0 else "-" if difference.high < 0 else "0"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


SCORES = "scores.json"
VERSION = 3
"""Rises when the file says something else."""


def content_of(
    experiments: Sequence[Experiment], runs: Sequence[RowRun], expected: Mapping[str, Expectation]
) -> dict[str, Any]:
    """Return the content of scores.json: `scores` has a flat row for each row of each experiment, `experiments` all that a page shows."""
    scores: list[dict[str, Any]] = []
    shown = []
    for each in experiments:
        rows = score_rows(each, runs)
        scores += [_flat(each, row) for row in rows]
        shown.append(_whole(each, rows, expected.get(each.name), runs))
    return {"version": VERSION, "scores": scores, "experiments": shown}


def unfinished(folder: Path) -> dict[str, Any] | None:
    """Return the content of scores.json for the runs of an interrupted diagnosis; None without runs.

    Raises a FolderError if a line of its results is damaged.
    """
    runs = [run for run in read_table(folder / RESULTS, RowRun.of).values() if not run.error]
    there = [
        EXPERIMENTS[name] for name in EXPERIMENTS if any(run.experiment == name for run in runs)
    ]
    experiments = []
    for each in there:
        rows = dict.fromkeys(run.row for run in runs if run.experiment == each.name)
        order = [row for row in each.rows if row in rows]
        experiments.append(dataclasses.replace(each, rows=tuple(dict.fromkeys((*order, *rows)))))
    expected = {
        name: each
        for name, each in expectations().items()
        if any(
            shown.name == name and shown.rows[0] == EXPERIMENTS[name].rows[0]
            for shown in experiments
        )
    }
    return content_of(experiments, runs, expected) if experiments else None


def two_signs(experiment: Experiment) -> bool:
    """Whether a row is expected on both sides of its control: what is won and lost is not summed to nothing."""
    return {"+", "-"} <= set(expectations()[experiment.name].signs)


def tell_nothing(rows: Sequence[RowScore]) -> list[str]:
    """Return the settings in which a faulty learner does better than GRPO."""
    means = {row.row: row.means for row in rows}
    good = next((means[name] for name in _GRPO if name in means), None)
    bad = [means[name] for name in _FAULTY if name in means]
    return [
        setting
        for setting in (good or {})
        if any((own[setting] or 0) > ((good or {})[setting] or 0) for own in bad)
    ]


def _flat(experiment: Experiment, row: RowScore) -> dict[str, Any]:
    area = None if row.row == experiment.control or two_signs(experiment) else row.area
    return {
        "experiment": experiment.name,
        "tag": experiment.tag,
        "row": row.row,
        "low": area.low if area else None,
        "high": area.high if area else None,
        "area": area.value if area else None,
        "seeds": row.seeds,
    }


def _whole(
    experiment: Experiment,
    rows: Sequence[RowScore],
    expectation: Expectation | None,
    runs: Sequence[RowRun],
) -> dict[str, Any]:
    last = list(rows[0].means)[-1]
    return {
        "name": experiment.name,
        "question": experiment.question,
        "knob": experiment.knob,
        "measure": experiment.measure,
        "control": experiment.control,
        "settings": list(rows[0].means),
        "expected": expectation.expected if expectation else "",
        "refuted_by": expectation.refuted_by if expectation else "",
        "tells_nothing": tell_nothing(rows),
        "signs": signs_of(experiment, rows[0], expectation) if expectation else [],
        "rows": [
            {
                "row": row.row,
                "means": dict(row.means),
                "differences": {name: vars(each) for name, each in row.differences.items()},
                "failures": list(row.failures),
                "beside": _beside(experiment, runs, row.row, last),
            }
            for row in rows
        ],
    }
