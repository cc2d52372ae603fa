"""Statistics over few runs, against values worked out by hand and against each other."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from codea1_env.evaluation.ratings import rating_intervals
from codea1_env.evaluation.statistics import (
    bootstrap,
    interquartile_mean,
    interval_of_iqm,
    probability_of_improvement,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_iqm_drops_the_lowest_and_the_highest_quarter():
    assert interquartile_mean([[9.0, 1.0], [2.0, 4.0]]) == 3.0
    assert interquartile_mean([1.0, 2.0, 6.0]) == 3.0, "too few to drop any"


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    draws, held = rng(1), 0
    for _ in range(200):
        scores = draws.normal(0.5, 0.1, size=(8, 10))
        estimate = interval_of_iqm(scores, draws, confidence=0.9, repetitions=200)
        held += estimate.low <= 0.5 <= estimate.high
    assert 0.78 < held / 200 < 0.96


def test_more_runs_give_narrower_intervals():
    scores = rng(2).normal(size=(40, 5))
    few, many = (interval_of_iqm(scores[:n], rng()) for n in (4, 40))
    assert many.high - many.low < few.high - few.low


def test_tasks_keep_their_weight():
    # Between tasks these differ much, within a task not at all: nothing is uncertain.
    estimate = bootstrap([[0.0, 1.0]] * 3, lambda tables: tables.mean(axis=(1, 2)), rng())
    assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)


def test_probability_of_improvement():
    better, worse = [[0.9, 0.8], [0.7, 0.6]], [[0.1, 0.2], [0.3, 0.4]]
    assert probability_of_improvement(better, worse, rng()).value == 1.0
    assert probability_of_improvement(worse, better, rng()).value == 0.0
    assert probability_of_improvement(better, better, rng()).value == 0.5
    # By hand: task 1: 1 of 2 pairs won; task 2: both tied.
    assert probability_of_improvement([[2.0, 1.0]], [[1.0, 1.0], [3.0, 1.0]], rng()).value == 0.5


def test_the_same_seed_gives_the_same_interval():
    scores = rng(3).normal(size=(5, 7))
    assert interval_of_iqm(scores, rng()) == interval_of_iqm(scores, rng())


@pytest.mark.parametrize("scores", [[], [1.0], [[]], [[[1.0]]]])
def test_wrong_shapes(scores):
    with pytest.raises(ValueError, match=r"Expect scores of shape \(runs, tasks\)"):
        interval_of_iqm(scores, rng())


def test_unknown_scores_and_other_tasks():
    with pytest.raises(ValueError, match="Expect finite scores"):
        interval_of_iqm([[float("nan")]], rng())
    with pytest.raises(
        ValueError, match="Expect finite scores, actually 1 of 4 are not, such as nan"
    ):
        interquartile_mean([float("nan"), 1, 2, 3])
    with pytest.raises(ValueError, match="such as inf"):
        interquartile_mean([[1, 2], [3, float("inf")]])
    with pytest.raises(ValueError, match="the same tasks, actually: 1 tasks and 2 tasks"):
        probability_of_improvement([[1.0]], [[1.0, 2.0]], rng())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scores", [[], [[]], np.empty((0, 3))])
def test_the_middle_of_nothing(scores):
    with pytest.raises(ValueError, match="Expect at least one score, actually: none"):
        interquartile_mean(scores)


@pytest.mark.parametrize("confidence", [95, 1, 0, -0.5, float("nan")])
def test_confidence_is_a_share(confidence: float):
    message = f"confidence to be between 0 and 1, actually: {confidence}. For 95% it is 0.95"
    for estimate in _intervals(confidence=confidence):
        with pytest.raises(ValueError, match=re.escape(message)):
            estimate()


@pytest.mark.parametrize("repetitions", [0, -1])
def test_an_interval_needs_samples(repetitions: int):
    for estimate in _intervals(repetitions=repetitions):
        with pytest.raises(
            ValueError, match=f"repetitions to be at least 1, actually: {repetitions}"
        ):
            estimate()


def _intervals(**settings: float) -> list[Callable[[], object]]:
    """All that make intervals."""
    scores, games = [[0.0, 1.0], [1.0, 1.0]], np.ones((2, 1, 1))
    return [
        lambda: interval_of_iqm(scores, rng(), **settings),
        lambda: probability_of_improvement(scores, scores, rng(), **settings),
        lambda: bootstrap(scores, lambda tables: tables.mean(axis=(1, 2)), rng(), **settings),
        lambda: rating_intervals(games, games, rng(), **settings),
    ]
