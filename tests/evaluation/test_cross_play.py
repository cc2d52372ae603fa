"""Cross-play and ratings: who is better is known beforehand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from in_one_process import Says

from codea1_env.agents import BoundaryTester, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.evaluation.cross_play import bradley_terry, cross_play, rating_intervals
from codea1_env.problems import load_problems
from codea1_env.referee import Referee

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
