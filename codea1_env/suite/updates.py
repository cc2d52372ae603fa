"""One step of an algorithm on many tables at once.

An algorithm with `advantages` takes a step of the policy gradient. GRPO and its kin, REINFORCE and PPO do here what their
`update` does, on arrays. Any other algorithm is given a `SoftmaxPolicy` and samples, as in the training loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codea1_env.agents.algorithms import GRPO, PPO, RLOO, Reinforce
from codea1_env.agents.policy import Sample, SoftmaxPolicy, checked_advantages, updated
from codea1_env.suite.worlds import Floats, Ints


def draw(logits: Floats, number: int, rng: np.random.Generator) -> Ints:
    """Draw items without replacement by the softmax of each row: the first of a race of exponential times.

    Example:
        >>> draw(np.array([[0.0, 99.0, 50.0]]), 2, np.random.default_rng(0)).tolist()
        [[1, 2]]
    """
    noisy = logits - np.log(rng.standard_exponential(logits.shape, dtype=np.float32) + 1e-30)
    drawn = np.empty((len(logits), number), np.int64)
    rows = np.arange(len(logits))
    for place in range(number):
        drawn[:, place] = noisy.argmax(axis=1)
        noisy[rows, drawn[:, place]] = -np.inf
    return drawn


def step(
    algorithm: Any, logits: Floats, keys: Ints, which: Ints, drawn: Ints, rewards: Floats
) -> Floats:
    """Return the logits of tables, shape (tables, items), after a step of an algorithm.

    Args:
        algorithm: An algorithm of `codea1_env.agents.algorithms`, or of yours.
        logits: Before the step.
        keys: Numbers of the tables.
        which: Table of each answer, groups in a row.
        drawn: Items of each answer, shape (answers, K).
        rewards: Shape (groups, size of a group).
    """
    update = getattr(type(algorithm), "update", None)
    if update is PPO.update:
        return _ppo(algorithm, logits, keys, which, drawn, rewards.ravel())
    if update is GRPO.update and algorithm.num_iterations == 1 and not algorithm.beta:
        advantages = rewards - rewards.mean(axis=1, keepdims=True)
        advantages[np.ptp(rewards, axis=1) == 0] = 0.0
        if algorithm.loss_type != "dr_grpo":
            advantages /= rewards.std(axis=1, ddof=1, keepdims=True) + 1e-4
    elif update is Reinforce.update:
        advantages = rewards
    elif update in (None, RLOO.update):
        advantages = checked_advantages(algorithm.advantages, rewards)
    else:
        return in_the_loop(algorithm, logits, keys, which, drawn, rewards)
    weights = np.ravel(advantages) / np.bincount(which)[which]
    if update is not RLOO.update:  # the mean over the draws of an answer
        weights = weights / drawn.shape[1]
    after: Floats = logits + algorithm.learning_rate * _rise(logits, which, drawn, weights[:, None])
    if update is Reinforce.update and algorithm.entropy:
        after += algorithm.learning_rate * algorithm.entropy * _entropy_rise(logits)
    return after


def _softmax(logits: Floats) -> Floats:
    risen = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(risen / risen.sum(axis=1, keepdims=True))


def _rise(logits: Floats, which: Ints, drawn: Ints, weights: Floats) -> Floats:
    """Return the gradient of the log-probabilities of draws by the logits, with weights of draws or answers."""
    weights = np.broadcast_to(weights, drawn.shape)
    used = np.flatnonzero(weights.any(axis=1))
    rise = np.zeros_like(logits)
    rows, left = np.arange(len(used)), logits[which[used]]
    own = np.zeros_like(left)
    for place in range(drawn.shape[1]):
        items, weight = drawn[used, place], weights[used, place]
        own -= weight[:, None] * _softmax(left)
        own[rows, items] += weight
        left[rows, items] = -np.inf
    np.add.at(rise, which[used], own)
    return rise


def _log_probs(logits: Floats, which: Ints, drawn: Ints) -> Floats:
    rows, left = np.arange(len(which)), logits[which]
    found = np.empty(drawn.shape)
    for place in range(drawn.shape[1]):
        top = left.max(axis=1, keepdims=True)
        total = top[:, 0] + np.log(np.exp(left - top).sum(axis=1))
        found[:, place] = left[rows, drawn[:, place]] - total
        left[rows, drawn[:, place]] = -np.inf
    return found


def _entropy_rise(logits: Floats) -> Floats:
    chances = _softmax(logits)
    logs = np.log(np.maximum(chances, 1e-300))
    return np.asarray(-chances * (logs - (chances * logs).sum(axis=1, keepdims=True)))


def _ppo(ppo: PPO, logits: Floats, keys: Ints, which: Ints, drawn: Ints, rewards: Floats) -> Floats:
    """Do what `PPO.update` does."""
    values = ppo._values
    total = vars(ppo).get("_total", 0.0)  # of all values: there may be thousands
    new = total / len(values) if values else 0.0
    names = list(map(str, keys.tolist()))
    known = np.array([values.get(name, new) for name in names])
    raw = rewards - known[which]
    count = np.bincount(which)
    moved = known + ppo.value_rate * np.bincount(which, raw) / count
    before = sum(values.get(name, 0.0) for name in names)
    values.update(zip(names, moved.tolist(), strict=True))
    vars(ppo)["_total"] = total + float(moved.sum()) - before
    if np.all(raw == raw[0]):
        return logits
    advantages = ((raw - raw.mean()) / (raw.std(ddof=1) + 1e-4))[:, None]
    old, after = _log_probs(logits, which, drawn), logits.copy()
    size = (count * drawn.shape[1])[which][:, None]
    for _ in range(ppo.num_iterations):
        ratio = np.exp(_log_probs(after, which, drawn) - old)
        bound = np.clip(ratio, 1 - ppo.epsilon, 1 + ppo.epsilon) * advantages
        free = np.where(bound < ratio * advantages, 0.0, ratio * advantages)
        step = _rise(after, which, drawn, free / size)
        if ppo.entropy:
            step += ppo.entropy * _entropy_rise(after)
        after += ppo.learning_rate * step
    return after


def in_the_loop(
    algorithm: Any, logits: Floats, keys: Ints, which: Ints, drawn: Ints, rewards: Floats
) -> Floats:
    """Do what `step` does as the training loop would: the algorithm changes a policy by samples."""
    names = list(map(str, keys.tolist()))
    policy = SoftmaxPolicy({}, drawn.shape[1])
    policy.logits = dict(zip(names, logits.copy(), strict=True))
    groups = np.repeat(np.arange(len(rewards)), rewards.shape[1]).tolist()
    answers = zip(which.tolist(), drawn.tolist(), rewards.ravel().tolist(), groups, strict=True)
    samples = [Sample(names[key], tuple(own), reward, str(g)) for key, own, reward, g in answers]
    updated(algorithm, policy, samples)
    return np.array([policy.logits[name] for name in names])
