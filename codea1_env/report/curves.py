"""Curves of metrics: the mean over the runs of a group, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from codea1_env.evaluation.statistics import Floats, bootstrap
from codea1_env.report.runs import LoggedRun, RunGroup

_POINTS = 200
"""Points of a curve at most: beyond that, one point is the mean of several steps."""

Point = dict[str, Any]
"""step, value, and low and high where there are two runs or more."""


def curve(group: RunGroup, metric: str) -> list[Point]:
    """The curve of a metric; empty where no run has it.

    The interval is a 95% bootstrap interval over runs. It says nothing of other problems.
    """
    width = bin_width(group.runs)
    binned = [
        bin_means(((row["step"], row[metric]) for row in run.metrics if metric in row), width)
        for run in group.runs
    ]
    points = []
    for step in sorted(set().union(*binned)):
        values = [each[step] for each in binned if step in each]
        point: Point = {"step": step, "value": sum(values) / len(values)}
        if len(values) > 1:
            found = bootstrap(
                np.array(values)[:, None], _mean, np.random.default_rng(0), repetitions=500
            )
            point |= {"low": found.low, "high": found.high}
        points.append(point)
    return points


def bin_width(runs: Sequence[LoggedRun]) -> int:
    """Steps that one point of a curve stands for."""
    return 1 + max((run.step for run in runs), default=0) // _POINTS


def bin_means(values: Iterable[tuple[int, float]], width: int) -> dict[int, float]:
    """The means of values over so many steps each, by the last of these steps; step 0 stands alone.

    Example:
        >>> bin_means([(0, 5.0), (1, 1.0), (2, 3.0), (3, 4.0)], 2)
        {0: 5.0, 2: 2.0, 4: 4.0}
    """
    found: dict[int, list[float]] = {}
    for step, value in values:
        found.setdefault(-(-step // width) * width, []).append(value)
    return {step: sum(each) / len(each) for step, each in found.items()}


def _mean(tables: Floats) -> Floats:
    means: Floats = tables.mean(axis=(1, 2))
    return means
