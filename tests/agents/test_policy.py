from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from codea1_env.agents.policy import AlgorithmError, Sample, SoftmaxPolicy, updated


@pytest.fixture
def policy() -> SoftmaxPolicy:
    policy = SoftmaxPolicy({"t": 4}, draws=2)
    policy.logits["t"] = np.array([1.0, 0.0, -1.0, 0.5])
    return policy


def test_log_probs_are_those_of_plackett_and_luce(policy):
    weights = np.exp(policy.logits["t"])
    expected = [weights[2] / weights.sum(), weights[0] / (weights.sum() - weights[2])]
    assert np.exp(policy.log_probs("t", (2, 0))) == pytest.approx(expected)


def test_all_answers_together_have_probability_one(policy):
    pairs = itertools.permutations(range(4), 2)
    assert sum(math.exp(policy.log_probs("t", pair).sum()) for pair in pairs) == pytest.approx(1)


def test_draws_follow_the_log_probs(policy):
    rng = np.random.default_rng(0)
    number = 6000
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
        (np.array([0.0, np.nan, 0.0]), "NaN or infinite"),
        (np.zeros(2), r"shape \(2,\)"),
        (None, "no array"),
    ],
)
def test_an_algorithm_that_breaks_the_policy_is_named(logits, what):
    policy = SoftmaxPolicy({"a": 3})
    with pytest.raises(
        AlgorithmError, match=f"_Breaks.update to leave finite logits of shape .* {what}"
    ):
        updated(_Breaks(logits), policy, [Sample("a", (0,), 1.0, "g")])
