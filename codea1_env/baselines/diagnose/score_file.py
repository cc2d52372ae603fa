"""scores.json of a results folder: the scores, for other programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.baselines.diagnose.experiments import (
    EXPERIMENTS,
    Expectation,
    Experiment,
    expectations,
)
from codea1_env.baselines.diagnose.running import RESULTS, RowRun, done_runs
from codea1_env.baselines.diagnose.scores import RowScore, came, score_rows
from codea1_env.support.logs import read_rows, write_whole

SCORES = "scores.json"
VERSION = 1


def write_scores(
    folder: Path,
    experiments: Sequence[Experiment],
    runs: Sequence[RowRun],
    expected: Mapping[str, Expectation],
) -> None:
    """Write scores.json."""
    content = content_of(experiments, runs, expected)
    write_whole(folder / SCORES, json.dumps(content, indent=1, allow_nan=False) + "\n")


def content_of(
    experiments: Sequence[Experiment],
    runs: Sequence[RowRun],
    expected: Mapping[str, Expectation],
) -> dict[str, Any]:
    """Return the content of scores.json: `scores` has a flat row for each row of each experiment, `experiments` all that a page shows."""
    scores: list[dict[str, Any]] = []
    shown = []
    for each in experiments:
        rows = score_rows(each, runs)
        scores += [_flat(each, row) for row in rows]
        shown.append(_whole(each, rows, expected.get(each.name)))
    return {"version": VERSION, "scores": scores, "experiments": shown}


def unfinished(folder: Path) -> dict[str, Any] | None:
    """Return the content of scores.json for the runs of an interrupted diagnosis; None without runs.

    Raises:
        FolderError: A line of its results is damaged.
    """
    first = next(read_rows(folder / RESULTS), None)
    if first is None or not {each.name for each in dataclasses.fields(RowRun)} <= first.keys():
        return None  # results of something else
    runs = list(done_runs(folder).values())
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


def _flat(experiment: Experiment, row: RowScore) -> dict[str, Any]:
    area = row.area if row.row != experiment.control else None
    return {
        "experiment": experiment.name,
        "tag": experiment.tag,
        "row": row.row,
        "score": row.score if area else None,
        "low": area.low if area else None,
        "high": area.high if area else None,
        "area": area.value if area else None,
        "seeds": row.seeds,
    }


def _whole(
    experiment: Experiment, rows: Sequence[RowScore], expectation: Expectation | None
) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "question": experiment.question,
        "knob": experiment.knob,
        "measure": experiment.measure,
        "control": experiment.control,
        "settings": list(rows[0].means),
        "expected": expectation.expected if expectation else "",
        "refuted_by": expectation.refuted_by if expectation else "",
        "came": came(experiment, rows[0], expectation) if expectation else "",
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
