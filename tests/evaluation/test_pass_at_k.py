from __future__ import annotations

import itertools

import numpy as np
import pytest

from codea1_env.evaluation.statistics import Count, mean_over_problems, pass_at_k


@pytest.mark.parametrize("samples", range(1, 8))
def test_it_is_the_share_of_all_choices_of_k_programs_that_hold_a_right_one(samples):
    for correct, k in itertools.product(range(samples + 1), range(1, samples + 1)):
        right = [True] * correct + [False] * (samples - correct)
        choices = list(itertools.combinations(right, k))
        share = sum(map(any, choices)) / len(choices)
        assert pass_at_k(Count(samples, correct), k) == pytest.approx(share, abs=1e-12)


def test_large_numbers_do_not_overflow():
    assert pass_at_k(Count(100_000, 1), 50_000) == pytest.approx(0.5)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_k_must_be_possible(k):
    with pytest.raises(ValueError, match="Expect k between 1 and 4"):
        pass_at_k(Count(4, 1), k)


def test_the_mean_counts_every_problem_once():
    counts = [Count(2, 2), Count(8, 0), Count(4, 1)]
    estimate = mean_over_problems([pass_at_k(count, 2) for count in counts])
    assert estimate.value == pytest.approx((1 + 0 + 0.5) / 3)
    assert 0 <= estimate.low < estimate.value < estimate.high <= 1


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        estimate = mean_over_problems([float(x) for x in rng.random(60) < 0.3])
        covered += estimate.low <= 0.3 <= estimate.high
    assert 0.89 <= covered / 200 <= 0.99
