"""What the algorithms of tabular players have in common: advantages of a group, losses, and steps on a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codea1_env.agents.policy import Floats, Sample, SoftmaxPolicy, by_group, rewards_of


def group_advantages(samples: Sequence[Sample], *, scale: bool = True) -> Floats:
    """Reward minus the group's mean, over its deviation (of the sample, plus 1e-4, as in TRL).

    Unscorable answers get 0 and do not count for the others.

    Example:
        >>> rewards = [1.0, 0.0, None, 0.5]
        >>> group = [Sample("t", (0,), reward, "g") for reward in rewards]
        >>> group_advantages(group).round(3).tolist()
        [1.0, -1.0, 0.0, 0.0]
    """
    rewards = rewards_of(samples)
    advantages = np.zeros(len(rewards))
    for members in by_group(samples):
        scored = [index for index in members if not np.isnan(rewards[index])]
        group = rewards[scored]
        if len(group) < 2 or np.all(group == group[0]):
            continue
        centred = group - group.mean()
        advantages[scored] = centred / (group.std(ddof=1) + 1e-4) if scale else centred
    return advantages


def clipped_loss(
    log_ratio: Floats, advantage: Floats | float, epsilon: float, epsilon_high: float
) -> tuple[Floats, Floats, Floats]:
    """Loss of each draw, its derivative by the draw's log-probability, and 1 where clipping stopped it.

    Example:
        >>> ratio = np.array([0.5, 1.0, 1.5])
        >>> loss, slope, stopped = clipped_loss(np.log(ratio), 1.0, 0.2, 0.28)
        >>> print(loss, stopped)
        [-0.5  -1.   -1.28] [0. 0. 1.]
    """
    ratio = np.exp(log_ratio)
    free = ratio * advantage
    bound = np.clip(ratio, 1 - epsilon, 1 + epsilon_high) * advantage
    stopped = bound < free
    return -np.minimum(free, bound), np.where(stopped, 0.0, -free), stopped.astype(np.float64)


def k3(log_ratio: Floats) -> tuple[Floats, Floats]:
    """Schulman's estimate of the KL divergence of each draw, exp(-x) - 1 + x, and its derivative."""
    return np.exp(-log_ratio) - 1 + log_ratio, 1 - np.exp(-log_ratio)


def entropy_gradient(policy: SoftmaxPolicy, key: str) -> Floats:
    """Return the derivative of the entropy of the first draw by the logits."""
    chances = policy.probabilities(key)
    gradient: Floats = -chances * (np.log(np.maximum(chances, 1e-300)) + policy.entropy(key))
    return gradient


def log_probs(
    policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], logits: Floats | None = None
) -> Floats:
    """Log-probabilities of the draws of a batch, one row per answer. `logits` replaces the table."""
    return np.array([policy.log_probs(key, sample.drawn, logits) for sample in batch])


def descend(policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], slopes: Floats) -> None:
    """Change a table against the slopes of a loss by the log-probabilities of its draws."""
    rows = zip(slopes, batch, strict=True)
    policy.logits[key] -= sum(row @ policy.gradients(key, sample.drawn) for row, sample in rows)


def mean(values: Sequence[float]) -> float:
    """Mean of values; 0 if there are none."""
    return float(np.mean(values)) if values else 0.0


def gradient_step(
    policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], weights: Floats, rate: float
) -> float:
    """Take one step of the policy gradient on a table; returns the loss before it."""
    gradient, loss = np.zeros_like(policy.logits[key]), 0.0
    for sample, weight in zip(batch, weights, strict=True):
        loss -= weight * policy.log_probs(key, sample.drawn).sum() / len(batch)
        gradient -= weight * policy.gradients(key, sample.drawn).sum(axis=0) / len(batch)
    policy.logits[key] -= rate * gradient
    return loss
