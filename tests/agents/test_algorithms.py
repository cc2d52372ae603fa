from __future__ import annotations

import numpy as np
import pytest

from codea1_env.agents import ALGORITHMS, Experience, Pool, TabularAgent, make_algorithm
from codea1_env.agents.algorithms import GRPO, PPO, RLOO, Reinforce, ReinforcePlusPlus, teaches
from codea1_env.agents.policy import (
    AlgorithmError,
    Sample,
    SoftmaxPolicy,
    clipped_loss,
    entropy_gradient,
    group_advantages,
    in_groups,
    k3,
    updated,
)
from codea1_env.problems import Problem
from codea1_env.spaces import observe

TABULAR = [name for name, kind in ALGORITHMS.items() if teaches(kind, "tabular")]


def samples(rewards, drawn=None, group="g", key="t"):
    drawn = drawn or [(index,) for index in range(len(rewards))]
    return [Sample(key, d, reward, group) for d, reward in zip(drawn, rewards, strict=True)]


def test_group_advantages_by_hand():
    # mean 2, deviations -1, 0, 1, standard deviation of the sample 1
    assert group_advantages(samples([1.0, 2.0, 3.0])) == pytest.approx([-1 / 1.0001, 0, 1 / 1.0001])
    # An unscorable answer is left out of its group.
    assert group_advantages(samples([1.0, None, 3.0]), scale=False) == pytest.approx([-1, 0, 1])


@pytest.mark.parametrize("rewards", [[None, None], [0.1 + 0.2, 0.3, 0.3], [None, 1.0]])
def test_groups_that_teach_nothing(rewards):
    assert group_advantages(samples(rewards)) == pytest.approx(0)  # rounding is not blown up
    for algorithm in (RLOO(), ReinforcePlusPlus()):
        assert in_groups(samples(rewards), algorithm.advantages) == pytest.approx(0)


def test_leave_one_out_by_hand():
    # 1 - mean(2, 6), 2 - mean(1, 6), 6 - mean(1, 2)
    found = in_groups(samples([1.0, 2.0, None, 6.0]), RLOO().advantages)
    assert found == pytest.approx([-3.0, -1.5, 0.0, 4.5])


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


def test_the_baseline_of_reinforce_plus_plus_is_the_batch():
    batch = samples([0.0, 1.0], group="a") + samples([2.0, None], group="b", key="other")
    found = in_groups(batch, ReinforcePlusPlus().advantages)
    assert found == pytest.approx([-1 / 1.0001, 0, 1 / 1.0001, 0])
    policy = SoftmaxPolicy({"t": 2, "other": 2})
    updated(ReinforcePlusPlus(), policy, batch)
    # One answer of two of its table, and the only one of the other: its advantage times (1[0] - p).
    assert policy.logits["t"] == pytest.approx([-0.25 / 1.0001, 0.25 / 1.0001])
    assert policy.logits["other"] == pytest.approx([0.5 / 1.0001, -0.5 / 1.0001])


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda rewards: rewards[0], r"shape \(2, 2\), actually: float64 of shape \(2,\)"),
        (lambda rewards: rewards / 0.0, "actually: NaN or infinite"),
        (lambda rewards: rewards.astype(str), "actually: <U"),
    ],
)
def test_advantages_that_are_none(wrong, what):
    batch = samples([0.0, 1.0], group="a") + samples([2.0, None], group="b")
    with np.errstate(all="ignore"), pytest.raises(AlgorithmError, match=what):
        in_groups(batch, wrong)


def test_grpo_step_by_hand():
    policy = SoftmaxPolicy({"t": 3})
    metrics = GRPO(learning_rate=1.0).update(policy, samples([1.0, 0.0]))
    # advantages +-a with a = 0.5 / (sqrt(0.5) + 1e-4); gradient = mean of -a (1[0] - p) and a (1[1] - p)
    a = 0.5 / (np.sqrt(0.5) + 1e-4)
    assert policy.logits["t"] == pytest.approx([a / 2, -a / 2, 0.0])
    assert metrics == {"loss": pytest.approx(0.0), "clip_ratio": 0.0}


def test_rloo_weighs_the_whole_answer():
    # Two draws from three items: (0, 1) earns 1, (2, 1) earns 0.
    policy = SoftmaxPolicy({"t": 3}, draws=2)
    RLOO(learning_rate=1.0).update(policy, samples([1.0, 0.0], drawn=[(0, 1), (2, 1)]))
    # d/d logits of log p(0, 1) = (1 - 1/3, 1 - 1/3 - 1/2, -1/3 - 1/2), of log p(2, 1) the mirror image
    first, last = np.array([4, 1, -5]) / 6, np.array([-5, 1, 4]) / 6
    assert policy.logits["t"] == pytest.approx(0.5 * first - 0.5 * last)


@pytest.mark.parametrize("loss_type", ["dapo", "dr_grpo"])
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


@pytest.mark.parametrize("name", [each for each in TABULAR if each != "reinforce"])
def test_nothing_to_learn_changes_nothing(name):
    for rewards in ([None, None, None], [0.5, 0.5, 0.5], [None, 0.5, None]):
        policy = SoftmaxPolicy({"t": 3})
        policy.logits["t"] = np.array([0.3, -0.2, 0.1])
        updated(make_algorithm(name, {"learning_rate": 1.0}), policy, samples(rewards))
        assert policy.logits["t"].tolist() == [0.3, -0.2, 0.1]


def test_algorithms_that_cannot_be_made(tmp_path):
    path = tmp_path / "own.py"
    update = "    def update(self, policy, samples): return {}\n"
    needy = "class Needy:\n    def __init__(self, learning_rate, gamma): pass\n"
    path.write_text(f"class Own:\n{update}{needy}{update}")
    for name, player, own, message in (
        ("gspo", "tabular", {}, r"for tabular players: grpo, dapo, .* with update or advantages; actually: 'gspo'"),
        (f"{path}:Own", "llm", {}, r"for language models: .*cispo.* with trainer or advantages or loss"),
        (f"{path}:Needy", "tabular", {}, "actually it needs: gamma"),
        ("ppo", "tabular", {"entrpy": 0.02}, r"hyperparameters of ppo .*'entrpy'. Did you mean entropy\?"),
        ("rloo", "tabular", {"epsilon": 0.1}, r"of rloo \(learning_rate\), actually: 'epsilon'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            make_algorithm(name, {"learning_rate": 1.0}, player, own)


def test_reinforce_step_by_hand():
    policy = SoftmaxPolicy({"t": 3})
    Reinforce().update(policy, samples([1.0, 0.5]))
    # The mean of 1 * (1[0] - p) and 0.5 * (1[1] - p): without a baseline the worse answer becomes likelier, too.
    assert policy.logits["t"] == pytest.approx([0.25, 0.0, -0.25])


def test_the_baseline_of_ppo_is_what_a_state_was_worth_before():
    ppo, policy = PPO(num_iterations=1, value_rate=0.5), SoftmaxPolicy({"t": 2, "u": 2})
    ppo.update(policy, samples([1.0, 0.0]))
    assert ppo.state_dict() == {"t": 0.25}  # half the way from 0 to 0.5
    ppo.update(policy, samples([1.0, 1.0], key="u"))
    assert ppo.state_dict()["u"] == pytest.approx(0.625)  # from 0.25, the mean of those known
    before = policy.logits["u"].copy()
    batch = samples([1.0, None], key="u") + samples([0.25, None], key="t")
    ppo.update(policy, batch)
    # Advantages 0.375 and 0: one answer of a state teaches without others beside it.
    assert policy.logits["u"][0] > before[0]


def test_entropy_keeps_a_policy_open():
    ends = []
    for entropy in (0.0, 1.0):
        policy, rng = SoftmaxPolicy({"t": 4}), np.random.default_rng(0)
        ppo = PPO(entropy=entropy)
        for _ in range(50):
            drawn = [policy.draw("t", rng) for _ in range(8)]
            ppo.update(policy, samples([float(d == (2,)) for d in drawn], drawn=drawn))
        ends.append(policy.entropy("t"))
    assert ends[0] < 0.3 < ends[1]


def test_the_entropy_gradient_is_that_of_the_entropy():
    policy = SoftmaxPolicy({"t": 4})
    policy.logits["t"] = np.array([0.5, -1.0, 2.0, 0.0])
    found, numerical = entropy_gradient(policy, "t"), []
    for step in 1e-6 * np.eye(4):
        low, high = SoftmaxPolicy({"t": 4}), SoftmaxPolicy({"t": 4})
        low.logits["t"], high.logits["t"] = policy.logits["t"] - step, policy.logits["t"] + step
        numerical.append((high.entropy("t") - low.entropy("t")) / 2e-6)
    assert found == pytest.approx(numerical, abs=1e-6)


OWN = """
class Own:
    def __init__(self, learning_rate, alpha=7, beta=3, seed=5, decay=0.9, **more):
        self.got = (learning_rate, alpha, beta, seed, decay, more)
    def update(self, policy, samples): return {}
"""


def test_hyperparameters_of_a_class_are_its_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    settings = {"learning_rate": 2.0, "alpha": 0.5, "beta": 0.0, "seed": 0, "decay": "per-step"}
    name = f"{tmp_path}/own.py:Own"
    assert make_algorithm(name, settings).got == (2.0, 7, 3, 5, 0.9, {})
    made = make_algorithm(name, settings, own={"alpha": 1, "other": 2})
    assert made.got == (2.0, 1, 3, 5, 0.9, {"other": 2})
    assert make_algorithm("grpo", settings | {"epsilon": 0.1}).epsilon == 0.1


def test_the_state_of_an_algorithm_is_saved_with_its_player(tmp_path):
    def step(player):
        answers = player.act([SEEN] * 4)
        player.learn([Experience(SEEN, a, float(a == "1"), "g") for a in answers])

    first, second = (make_player(PPO()) for _ in range(2))
    for _ in range(3):
        step(first)
    first.save(tmp_path)
    second.load(tmp_path)
    assert second.algorithm.state_dict() == first.algorithm.state_dict() != {}
    step(first)
    step(second)
    assert second.policy.state_dict() == first.policy.state_dict()


def loads_badly(self, state):
    float(state["baseline"])


@pytest.mark.parametrize(
    ("state", "loads", "message"),
    [
        ({"a": {1, 2}}, print, "Remembers.state_dict to return numbers.* actually: .*set"),
        ({1: 0.5}, print, "Remembers.state_dict .* actually: a key of type int"),
        ({}, None, "Remembers to have load_state_dict beside state_dict"),
        (None, print, "Remembers.state_dict to return .* actually: None"),
        ([0.5], loads_badly, "Remembers.load_state_dict to return, actually it raised TypeError"),
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_kept_is_an_error_at_the_start(state, loads, message, monkeypatch):
    methods = {"state_dict": lambda self: state} | ({"load_state_dict": loads} if loads else {})
    monkeypatch.setitem(ALGORITHMS, "remembers", type("Remembers", (RLOO,), methods))
    for player in ("tabular", "llm"):
        with pytest.raises(ValueError, match=message):
            make_algorithm("remembers", {}, player)


PROBLEM = Problem("p", "def f():", "f", "def f(): return 1")
SEEN = observe(PROBLEM)


def make_player(algorithm):
    return TabularAgent([Pool(PROBLEM, ("0", "1", "2"))], algorithm, np.random.default_rng(0))
