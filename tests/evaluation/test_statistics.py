"""Statistics over few runs, against values worked out by hand and against each other."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from in_one_process import Says

from codea1_env.agents import BoundaryTester, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.evaluation.cross_play import bradley_terry, cross_play, rating_intervals
from codea1_env.evaluation.statistics import (
    Estimate,
    mean_over_problems,
    mean_over_runs,
    pass_at_k,
)
from codea1_env.problems import load_problems
from codea1_env.referee import Referee


@pytest.mark.parametrize("runs", [2, 5])
def test_intervals_over_few_runs_hold_the_truth_as_often_as_they_say(runs: int):
    # A run passes each of 24 problems at its own rate, in 16 trials, and has an ability of its own.
    draws, held, repetitions = np.random.default_rng(1), 0, 2000
    rates = draws.uniform(0.3, 0.9, size=24)
    for _ in range(repetitions):
        ability = draws.normal(0, 0.05, size=(runs, 1))
        scores = draws.binomial(16, np.clip(rates + ability, 0, 1)) / 16
        estimate = mean_over_runs(scores.mean(axis=1))
        held += estimate.low <= rates.mean() <= estimate.high
    assert 0.93 < held / repetitions < 0.97


def test_equal_rows_are_told_apart_one_time_in_twenty():
    draws, told, repetitions = np.random.default_rng(2), 0, 2000
    for _ in range(repetitions):
        ours, theirs = draws.binomial(16, 0.6, size=(2, 5, 24)) / 16
        difference = mean_over_runs((ours - theirs).mean(axis=1))
        told += not difference.low <= 0 <= difference.high
    assert 0.03 < told / repetitions < 0.07


@pytest.mark.parametrize("means", [[], [0.5]])
def test_one_run_has_no_interval(means: list[float]):
    with pytest.raises(ValueError, match=f"of at least two runs, actually: {len(means)}"):
        mean_over_runs(means)


def test_equal_figures_look_not_certain():
    for shown in (mean_over_runs([0.1] * 5), mean_over_problems([0.3] * 5)):
        assert str(shown) == f"{shown.value:.3f} (all equal)"
    assert str(Estimate(0.0, 0.0, 0.434)) == "0.000 [0.000, 0.434]", (
        "a share of 0 is an interval's end"
    )


@pytest.mark.parametrize("samples", range(1, 8))
def test_it_is_the_share_of_all_choices_of_k_programs_that_hold_a_right_one(samples):
    for correct, k in itertools.product(range(samples + 1), range(1, samples + 1)):
        right = [True] * correct + [False] * (samples - correct)
        choices = list(itertools.combinations(right, k))
        share = sum(map(any, choices)) / len(choices)
        assert pass_at_k(samples, correct, k) == pytest.approx(share, abs=1e-12)


def test_large_numbers_do_not_overflow():
    assert pass_at_k(100_000, 1, 50_000) == pytest.approx(0.5)


@pytest.mark.parametrize("k", [0, -1, 5])
def test_k_must_be_possible(k):
    with pytest.raises(ValueError, match="Expect k between 1 and 4"):
        pass_at_k(4, 1, k)


def test_the_mean_counts_every_problem_once():
    values = [pass_at_k(samples, right, 2) for samples, right in ((2, 2), (8, 0), (4, 1))]
    estimate = mean_over_problems(values)
    assert estimate == mean_over_problems(values), "the same seed"
    assert estimate.value == pytest.approx((1 + 0 + 0.5) / 3)
    assert 0 <= estimate.low < estimate.value < estimate.high <= 1


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        estimate = mean_over_problems([float(x) for x in rng.random(60) < 0.3])
        covered += estimate.low <= 0.3 <= estimate.high
    assert 0.89 <= covered / 200 <= 0.99


PROBLEMS = load_problems("starter", "train")[20:24]


@pytest.fixture(scope="module")
def played(sandbox):
    coders = {
        "reference": ReferenceCoder(PROBLEMS),
        "mutant": MutantCoder(PROBLEMS, sandbox),
        "broken": Says("def ("),
    }
    testers = {
        "golden": GoldenTester(PROBLEMS, None),
        "boundary": BoundaryTester(PROBLEMS, sandbox),
        "silent": Says(""),
    }
    told: list[int] = []
    found = cross_play(coders, testers, PROBLEMS, Referee(sandbox), 3, told.append)
    assert told == [1, 2, 3]
    return found


def test_matrix(played):
    assert played.right_tests[0, 0] > 3
    assert (played.right_tests[:, 2] == 0).all()
    assert played.games.sum() == 3 * 3 * 4 * 3
    assert played.win_rates[0].tolist() == [1.0, 1.0, 1.0]
    assert played.win_rates[1, 2] == 1.0, "nobody is broken by silence"
    assert played.win_rates[2].tolist() == [0.0, 0.0, 0.0], "a program that does not run loses"


def test_ratings_order_the_players(played):
    coders, testers = played.ratings()
    assert coders["reference"].low > coders["mutant"].high > coders["broken"].high
    assert testers["golden"].value > testers["silent"].value


def test_as_json(played):
    found = json.loads(json.dumps(played.to_dict(), allow_nan=False))
    assert (found["coders"], found["testers"]) == (["reference", "mutant", "broken"], ["golden", "boundary", "silent"])  # fmt: skip
    assert found["games"] == [[12.0] * 3] * 3
    assert found["win_rates"] == played.win_rates.tolist()
    coders, _ = played.ratings()
    assert found["ratings"]["coders"]["mutant"]["low"] == coders["mutant"].low


def test_ratings_find_the_strengths_that_made_the_games():
    rng = np.random.default_rng(1)
    coders, testers = np.array([300.0, 0.0, -200.0]), np.array([100.0, -200.0])
    coders, testers = (each - np.mean([*coders, *testers]) for each in (coders, testers))
    chances = 1 / (1 + 10 ** ((testers[None] - coders[:, None]) / 400))
    games = np.full((3, 2), 20_000.0)
    found = bradley_terry(rng.binomial(20_000, chances), games)
    assert np.abs(found[0] - coders).max() < 10
    assert np.abs(found[1] - testers).max() < 10


def test_who_never_lost_has_a_finite_rating():
    coders, testers = bradley_terry([[10.0]], [[10.0]])
    assert 0 < coders[0] < 1000
    assert coders[0] == pytest.approx(-testers[0])


def test_intervals_of_ratings_come_from_the_problems():
    same = np.full((6, 1, 1), 2.0)
    (coder,), _ = rating_intervals(same, same * 2, np.random.default_rng(0))
    assert coder.low == coder.value == coder.high
    mixed = same * np.array([0, 2, 0, 2, 0, 2])[:, None, None]
    (coder,), _ = rating_intervals(mixed, same * 2, np.random.default_rng(0))
    assert coder.low < coder.value < coder.high
