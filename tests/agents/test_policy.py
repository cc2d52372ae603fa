"""Policies of tables, and of linear players: what is learned of one problem moves others by their overlap."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from codea1_env.agents import GRPO, Experience, Pool
from codea1_env.agents.policy import AlgorithmError, Sample, SoftmaxPolicy, updated
from codea1_env.agents.tabular import LinearAgent, LinearPolicy
from codea1_env.problems import Problem
from codea1_env.spaces import observe


@pytest.fixture
def policy() -> SoftmaxPolicy:
    policy = SoftmaxPolicy({"t": 4}, draws=2)
    policy.logits["t"] = np.array([1.0, 0.0, -1.0, 0.5])
    return policy


def test_log_probs_are_those_of_plackett_and_luce(policy):
    weights = np.exp(policy.logits["t"])
    expected = [weights[2] / weights.sum(), weights[0] / (weights.sum() - weights[2])]
    assert np.exp(policy.log_probs("t", (2, 0))) == pytest.approx(expected)


def test_draws_follow_the_log_probs(policy):
    rng = np.random.default_rng(0)
    number = 3000
    drawn = [policy.draw("t", rng) for _ in range(number)]
    for pair in itertools.permutations(range(4), 2):
        chance = math.exp(policy.log_probs("t", pair).sum())
        error = 4 * math.sqrt(chance * (1 - chance) / number)
        assert drawn.count(pair) / number == pytest.approx(chance, abs=error), pair


def test_gradients_are_derivatives(policy):
    for drawn in [(0, 1), (3, 2), (2, 0)]:
        gradients = policy.gradients("t", drawn)
        for index in range(4):
            step = np.zeros(4)
            step[index] = 1e-6
            ahead = policy.log_probs("t", drawn, policy.logits["t"] + step)
            behind = policy.log_probs("t", drawn, policy.logits["t"] - step)
            assert gradients[:, index] == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)


def test_extreme_logits_stay_finite():
    policy = SoftmaxPolicy({"t": 3}, draws=3)
    policy.logits["t"] = np.array([1000.0, 0.0, -1000.0])
    assert np.isfinite(policy.log_probs("t", (2, 1, 0))).all()
    assert np.isfinite(policy.gradients("t", (0, 1, 2))).all()
    assert policy.entropy("t") == 0.0


class _Breaks:
    learning_rate = 1.0

    def __init__(self, logits: object) -> None:
        self._logits = logits

    def update(self, policy, samples):
        policy.logits["a"] = self._logits
        return {}


@pytest.mark.parametrize(
    ("logits", "what"),
    [
        (np.array([0.0, np.nan, 0.0]), "nan"),
        (np.zeros(2), r"shape \(2,\)"),
    ],
)
def test_an_algorithm_that_breaks_the_policy_is_named(logits, what):
    policy = SoftmaxPolicy({"a": 3})
    with pytest.raises(AlgorithmError, match=f"_Breaks.update to leave finite logits .* {what}"):
        updated(_Breaks(logits), policy, [Sample("a", (0,), 1.0, "g")])


PROBLEMS = [Problem(name, f"def f_{name}():", "f", "def f(): return 1") for name in "pq"]


@pytest.mark.parametrize("overlap", [0.0, 0.25, 1.0])
def test_a_step_moves_other_problems_by_the_overlap(overlap):
    policy = LinearPolicy({"p": [0, 1, 2], "q": [2, 0, 1]}, overlap, 1)
    before = {"p": policy.logits["p"].copy()}
    policy.logits["p"][:] = [1.0, 0.0, -1.0]
    policy.settle(before)
    assert policy.logits["p"].tolist() == [1.0, 0.0, -1.0]
    assert policy.logits["q"].tolist() == [-overlap, overlap, 0.0]


@pytest.mark.parametrize("program", ["", "def f(): return 2"])
def test_a_linear_player_learns(program):
    pools = [Pool(each, ("a", "b", "c")) for each in PROBLEMS]
    one = LinearAgent(pools, GRPO(4.0), np.random.default_rng(0), overlap=0.5)
    seen = observe(PROBLEMS[0], code=program, turn=int(bool(program)))
    for _ in range(20):
        one.learn([Experience(seen, a, float(a == "a"), "g") for a in one.act([seen] * 8)])
    assert one.policy.probabilities("p")[0] > 0.9
