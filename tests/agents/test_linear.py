"""Linear players: what is learned of one problem moves others by the share of features that they have in common."""

from __future__ import annotations

import numpy as np
import pytest

from codea1_env.agents import GRPO, Experience, Pool
from codea1_env.agents.linear import LinearAgent, LinearPolicy
from codea1_env.problems import Problem
from codea1_env.spaces import observe

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


def test_pools_of_several_sizes():
    pools = [Pool(PROBLEMS[0], ("a", "b")), Pool(PROBLEMS[1], ("a", "b", "c"))]
    with pytest.raises(ValueError, match=r"pools of one size .* \[2, 3\]"):
        LinearAgent(pools, GRPO(4.0), np.random.default_rng(0))
