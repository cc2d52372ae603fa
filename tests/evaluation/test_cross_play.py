"""Cross-play and ratings: who is better is known beforehand."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from in_one_process import Says

from codea1_env.agents import BoundaryTester, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.evaluation.cross_play import (
    CrossPlayEvaluation,
    Opponents,
    bradley_terry,
    rating_intervals,
    write_cross_play,
)
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun
from codea1_env.problems import load_problems

PROBLEMS = load_problems("starter", "train")[20:24]


@pytest.fixture(scope="module")
def played(sandbox, tmp_path_factory):
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
    own = CrossPlayEvaluation(coders=tuple(coders), testers=tuple(testers))
    own.load(PROBLEMS)
    own.begin(sandbox)
    with ResultFolder(tmp_path_factory.mktemp("play"), {}, resume=False) as folder:
        plan = EvaluationPlan(num_samples=3, batch_size=3 * len(PROBLEMS), seed=0)
        EvaluationRun(own, folder).judge_agent(lambda _: Opponents(coders, testers), plan, own.add)
    return own.played()


def test_matrix(played):
    assert (played.passed == played.tests)[:, 0].all(), "the reference passes every right test"
    assert played.right_tests[0, 0] > 3
    assert (played.right_tests[:, 2] == 0).all()
    assert played.games.sum() == 3 * 3 * 4 * 3
    assert played.win_rates[0].tolist() == [1.0, 1.0, 1.0]
    assert played.win_rates[1, 2] == 1.0, "nobody is broken by silence"
    assert played.win_rates[2].tolist() == [0.0, 0.0, 0.0], "a program that does not run loses"


def test_ratings_order_the_players(played):
    coders, testers = played.ratings(np.random.default_rng(0))
    assert coders["reference"].low > coders["mutant"].high > coders["broken"].high
    assert testers["golden"].value > testers["silent"].value


def test_files(played, tmp_path):
    written = write_cross_play(tmp_path / "new", played)
    assert [path.name for path in written] == ["CROSSPLAY.md", "crossplay.json"]
    text = written[0].read_text()
    assert text.count("| coder \\ tester") == 1, "one measure, that of the ratings"
    assert re.search(
        r"\| mutant( \| [01]\.\d{3} \([1-9]\d*\.\d\)){2} \| 1\.000 \(0\.0\) \|", text
    ), text
    assert json.loads(written[1].read_text())["coders"] == ["reference", "mutant", "broken"]


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
