from __future__ import annotations

import numpy as np
import pytest

from codea1_env.agents import ALGORITHMS, make_algorithm
from codea1_env.agents.grpo import GRPO, clipped_loss, group_advantages, k3
from codea1_env.agents.policy import Sample, SoftmaxPolicy
from codea1_env.agents.rloo import RLOO, leave_one_out


def samples(rewards, drawn=None, group="g", key="t"):
    drawn = drawn or [(index,) for index in range(len(rewards))]
    return [Sample(key, d, reward, group) for d, reward in zip(drawn, rewards, strict=True)]


def test_group_advantages_by_hand():
    # mean 2, deviations -1, 0, 1, standard deviation of the sample 1
    assert group_advantages(samples([1.0, 2.0, 3.0])) == pytest.approx([-1 / 1.0001, 0, 1 / 1.0001])
    assert group_advantages(samples([1.0, 2.0, 3.0]), scale=False) == pytest.approx([-1, 0, 1])


def test_groups_are_normalised_apart():
    batch = samples([0.0, 1.0], group="a") + samples([10.0, 30.0], group="b")
    advantages = group_advantages(batch, scale=False)
    assert advantages == pytest.approx([-0.5, 0.5, -10, 10])


def test_an_unscorable_answer_is_left_out_of_its_group():
    assert group_advantages(samples([1.0, None, 3.0]), scale=False) == pytest.approx([-1, 0, 1])
    assert leave_one_out(samples([1.0, None, 3.0])) == pytest.approx([-2, 0, 2])


@pytest.mark.parametrize("rewards", [[None, None], [0.3, 0.3, 0.3], [None, 1.0]])
def test_groups_that_teach_nothing(rewards):
    assert not group_advantages(samples(rewards)).any()


def test_rounding_is_not_blown_up():
    assert abs(group_advantages(samples([0.1 + 0.2, 0.3]))).max() < 1e-9


def test_leave_one_out_by_hand():
    # 1 - mean(2, 6), 2 - mean(1, 6), 6 - mean(1, 2)
    assert leave_one_out(samples([1.0, 2.0, 6.0])) == pytest.approx([-3.0, -1.5, 4.5])


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "stopped"),
    [
        (1.0, 2.0, -2.0, -2.0, 0),
        (1.5, 1.0, -1.28, 0.0, 1),  # enough of a good thing
        (1.5, -1.0, 1.5, 1.5, 0),  # a bad answer that became likelier is pushed back
        (0.5, 1.0, -0.5, -0.5, 0),
        (0.5, -1.0, 0.8, 0.0, 1),
        (1.25, 1.0, -1.25, -1.25, 0),  # between 1 + epsilon and 1 + epsilon_high
    ],
)
def test_clipped_loss_by_hand(ratio, advantage, loss, slope, stopped):
    values = clipped_loss(np.log([ratio]), advantage, 0.2, 0.28)
    assert [float(value[0]) for value in values] == pytest.approx([loss, slope, stopped])


def test_k3_by_hand():
    kl, slope = k3(np.log([1.0, 2.0]))
    assert kl == pytest.approx([0.0, 0.5 - 1 + np.log(2)])
    assert slope == pytest.approx([0.0, 0.5])


def test_grpo_step_by_hand():
    policy = SoftmaxPolicy({"t": 3})
    metrics = GRPO(learning_rate=1.0).update(policy, samples([1.0, 0.0]))
    # advantages +-a with a = 0.5 / (sqrt(0.5) + 1e-4); gradient = mean of -a (1[0] - p) and a (1[1] - p)
    a = 0.5 / (np.sqrt(0.5) + 1e-4)
    assert policy.logits["t"] == pytest.approx([a / 2, -a / 2, 0.0])
    assert metrics == {"loss": pytest.approx(0.0), "clip_ratio": 0.0}


def test_rloo_step_by_hand():
    policy = SoftmaxPolicy({"t": 3})
    metrics = RLOO(learning_rate=1.0).update(policy, samples([1.0, 0.0]))
    assert policy.logits["t"] == pytest.approx([0.5, -0.5, 0.0])  # advantages 1 and -1, mean of two
    assert metrics["loss"] == pytest.approx(0.0)


def test_rloo_weighs_the_whole_answer():
    # Two draws from three items: (0, 1) earns 1, (2, 1) earns 0.
    policy = SoftmaxPolicy({"t": 3}, draws=2)
    RLOO(learning_rate=1.0).update(policy, samples([1.0, 0.0], drawn=[(0, 1), (2, 1)]))
    # d/d logits of log p(0, 1) = (1 - 1/3, 1 - 1/3 - 1/2, -1/3 - 1/2), of log p(2, 1) the mirror image
    first, last = np.array([4, 1, -5]) / 6, np.array([-5, 1, 4]) / 6
    assert policy.logits["t"] == pytest.approx(0.5 * first - 0.5 * last)


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_grpo_follows_the_gradient_of_its_loss(loss_type):
    """The second of two passes, with clipping and KL, against a numerical derivative."""
    rng = np.random.default_rng(0)
    policy = SoftmaxPolicy({"t": 6}, draws=3)
    policy.logits["t"] = rng.normal(size=6)
    batch = samples(rng.normal(size=8).tolist(), drawn=[policy.draw("t", rng) for _ in range(8)])
    start = policy.logits["t"].copy()
    advantages = group_advantages(batch, scale=loss_type != "dr_grpo")

    def loss(logits):
        total = 0.0
        for sample, advantage in zip(batch, advantages, strict=True):
            new = policy.log_probs("t", sample.drawn, logits)
            ratio = np.exp(new - policy.log_probs("t", sample.drawn, start))
            total -= np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.28) * advantage).sum()
            x = new - policy.log_probs("t", sample.drawn, np.zeros(6))
            total += 0.1 * (np.exp(-x) - 1 + x).sum()
        return total / (8 * 3)

    grpo = GRPO(learning_rate=3.0, beta=0.1, loss_type=loss_type, num_iterations=1)
    grpo.update(policy, batch)
    middle = policy.logits["t"].copy()
    policy.logits["t"] = start.copy()
    metrics = GRPO(3.0, beta=0.1, loss_type=loss_type, num_iterations=2).update(policy, batch)

    tiny = 1e-6 * np.eye(6)
    numerical = [(loss(middle + step) - loss(middle - step)) / 2e-6 for step in tiny]
    assert policy.logits["t"] == pytest.approx(middle - 3.0 * np.array(numerical), abs=1e-6)
    assert metrics["clip_ratio"] > 0, "the test should reach the clipped part"
    assert metrics["loss"] == pytest.approx((loss(start) + loss(middle)) / 2)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("rewards", [[None, None, None], [0.5, 0.5, 0.5], [None, 0.5, None]])
def test_nothing_to_learn_changes_nothing(name, rewards):
    policy = SoftmaxPolicy({"t": 3})
    policy.logits["t"] = np.array([0.3, -0.2, 0.1])
    make_algorithm(name, {"learning_rate": 1.0}).update(policy, samples(rewards))
    assert policy.logits["t"].tolist() == [0.3, -0.2, 0.1]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_only_tables_that_were_played_change(name):
    policy = SoftmaxPolicy({"t": 3, "other": 3})
    make_algorithm(name, {"learning_rate": 1.0}).update(policy, samples([1.0, 0.0, 0.5]))
    assert policy.logits["t"].any()
    assert not policy.logits["other"].any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_learns_the_best_items(name):
    rng = np.random.default_rng(1)
    policy = SoftmaxPolicy({"t": 8}, draws=2)
    algorithm = make_algorithm(name, {"learning_rate": 1.0})
    worth = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.2])

    def mean_reward():
        return np.mean([worth[list(policy.draw("t", rng))].sum() for _ in range(300)])

    assert mean_reward() < 0.8
    for _ in range(60):
        drawn = [policy.draw("t", rng) for _ in range(8)]
        rewards = [float(worth[list(indices)].sum()) for indices in drawn]
        algorithm.update(policy, samples(rewards, drawn=drawn))
    assert mean_reward() > 1.8


def test_unknown_algorithm():
    with pytest.raises(
        ValueError, match=r"one of grpo, rloo, module:Class or FILE\.py:Class, actually: 'ppo'"
    ):
        make_algorithm("ppo", {})


def test_an_algorithm_that_needs_what_is_no_setting_is_named(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "class Own:\n    def __init__(self, learning_rate, gamma): pass\n    def update(self, policy, samples): return {}\n"
    )
    with pytest.raises(ValueError, match=r"settings of the run .*actually it needs: gamma"):
        make_algorithm(f"{path}:Own", {"learning_rate": 1.0})
