"""Scores: each id between random players and the oracle, and the number of a track.

score = (x - random) / (oracle - random)        of each seed, not cut off: who learns the wrong way is negative

The interval beside a score is of that score: Student's t over seeds. The number of a track is the mean over those ids that
separate good algorithms from bad ones; the held-out part has a number of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from codea1_env.evaluation.statistics import Estimate, mean_over_runs
from codea1_env.suite.tasks import SEEDS, TRACKS, SuiteTask, Track, tasks
from codea1_env.support.jobs import read_json

_SHIPPED = Path(__file__).parent / "scores" / "v1"
Values = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Track -> id -> seed -> measure."""
_K = TypeVar("_K")


@functools.cache
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """Return the shipped rows by name, as their files have them."""
    return {path.stem: read_json(path) for path in sorted(_SHIPPED.glob("*.json"))}


@dataclass(frozen=True)
class IdScore:
    """Score of an id."""

    separates: bool
    score: Estimate | None
    """None for fewer than two seeds."""
    values: list[float]
    """Normalised, by seed."""


@dataclass(frozen=True)
class TrackScore:
    """Scores of a track."""

    track: Track
    number: Estimate | None
    """Mean over the ids that separate; None if one of them or a seed is missing."""
    held_out: Estimate | None
    missing: int
    """Records that the track lacks."""
    ids: Mapping[str, IdScore]


def normalised(task: SuiteTask, track: Track, values: Mapping[str, float]) -> dict[str, float]:
    """Return the measures of an id between random players (0) and the oracle (1), by seed."""
    rows = (shipped()[name]["values"][track][task.id] for name in ("random", "oracle"))
    random, oracle = (row.values() for row in rows)
    return between(values, [*random], [*oracle])


def between(
    values: Mapping[_K, float], random: Sequence[float], oracle: Sequence[float]
) -> dict[_K, float]:
    """Return values between the means of random players (0) and the oracle (1), not cut off.

    Example:
        >>> between({"a": 0.5, "b": 0.0}, [0.0, 0.5], [0.75])
        {'a': 0.5, 'b': -0.5}
    """
    low, high = float(np.mean(random)), float(np.mean(oracle))
    return {name: (value - low) / (high - low) for name, value in values.items()}


def score_tracks(values: Values) -> list[TrackScore]:
    """Score all tracks of which there is a record."""
    return [_score_track(track, values[track]) for track in TRACKS if values.get(track)]


def _score_track(track: Track, values: Mapping[str, Mapping[str, float]]) -> TrackScore:
    wanted = [task for task in tasks().values() if track in task.tracks]
    found = {task.id: normalised(task, track, values.get(task.id, {})) for task in wanted}
    seeds = [str(seed) for seed in SEEDS]

    def number(part: str) -> Estimate | None:
        own = [found[t.id] for t in wanted if t.part == part and t.separates]
        if not all(set(seeds) <= set(each) for each in own):
            return None
        return mean_over_runs([np.mean([each[seed] for each in own]) for seed in seeds])

    ids = {
        task.id: IdScore(task.separates, _estimate(own), own)
        for task in wanted
        if (own := [*found[task.id].values()])
    }
    missing = sum(seed not in found[task.id] for task in wanted for seed in seeds)
    return TrackScore(track, number("score"), number("held-out"), missing, ids)


def _estimate(values: Sequence[float]) -> Estimate | None:
    return mean_over_runs(values) if len(values) > 1 else None


def signed(estimate: Estimate | None) -> str:
    """Return a score or a difference with its interval, as a cell; "-" for none."""
    if estimate is None:
        return "-"
    return f"{estimate.value:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def paired(
    task: SuiteTask, track: Track, mine: Mapping[str, float], other: Mapping[str, float]
) -> Estimate | None:
    """Return how much more one row scores than another, paired by seed; None for fewer than two common seeds."""
    one, two = normalised(task, track, mine), normalised(task, track, other)
    return _estimate([one[seed] - two[seed] for seed in one if seed in two])
