"""Group relative policy optimisation as in TRL, for tabular policies, and its variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from codea1_env.agents.policy import (
    Floats,
    Sample,
    SoftmaxPolicy,
    by_group,
    by_table,
    rewards_of,
)


@dataclass(frozen=True)
class GRPO:
    """GRPO (Shao et al. 2024, arXiv 2402.03300) with the asymmetric clipping of DAPO (2503.14476).

    A game has no value function that could serve as the baseline: how much a program earns depends on an
    opponent who learns at the same time. Answers to one question, attacked by the same opponent at the same
    moment, are each other's baseline instead. Clipping keeps several passes over one batch
    (`num_iterations`) near the policy that wrote it; a higher upper bound lets rare answers grow.

    An unscorable answer (reward None) is left out. A group in which all rewards are equal teaches nothing.
    """

    trainer: ClassVar[Mapping[str, Any]] = {}
    """Language models learn with what the run says of `epsilon`, `epsilon_high` and `loss_type`."""

    learning_rate: float = 1.0
    epsilon: float = 0.2
    epsilon_high: float = 0.28
    beta: float = 0.0
    """Weight of the KL divergence from the uniform policy that training began with."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    """"grpo" and "dapo" differ in how they average answers of different length; those to one problem are
    equally long here, so both are the mean over all draws. "dr_grpo" (2503.20783) does not divide
    advantages by the group's deviation."""
    num_iterations: int = 1

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """Take `num_iterations` gradient steps on the tables that the samples came from."""
        losses: list[float] = []
        clipped: list[float] = []
        for key, batch in by_table(samples).items():
            advantages = group_advantages(batch, scale=self.loss_type != "dr_grpo")
            if not advantages.any():
                continue
            uniform = np.zeros_like(policy.logits[key])
            drawn = [sample.drawn for sample in batch]
            old = np.array([policy.log_probs(key, indices) for indices in drawn])
            reference = np.array([policy.log_probs(key, indices, uniform) for indices in drawn])
            for _ in range(self.num_iterations):
                new = np.array([policy.log_probs(key, indices) for indices in drawn])
                loss, slopes, stopped = clipped_loss(
                    new - old, advantages[:, None], self.epsilon, self.epsilon_high
                )
                kl, kl_slopes = k3(new - reference)
                slopes = (slopes + self.beta * kl_slopes) / new.size
                gradient = sum(
                    row @ policy.gradients(key, indices)
                    for row, indices in zip(slopes, drawn, strict=True)
                )
                policy.logits[key] -= self.learning_rate * gradient
                losses.append(float((loss + self.beta * kl).mean()))
                clipped.append(float(stopped.mean()))
        return {"loss": _mean(losses), "clip_ratio": _mean(clipped)}


@dataclass(frozen=True)
class DAPO(GRPO):
    """DAPO (Yu et al. 2025, arXiv 2503.14476): asymmetric clipping, the mean over tokens, and dynamic sampling.

    Groups whose rewards are all equal are replaced by groups of other problems. Of a language model, answers that were cut
    off are left out of the loss (the paper's overlong filtering; its penalty on long answers is one of rewards, and not here).
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
    }
    extra_rounds: ClassVar[int] = 3


@dataclass(frozen=True)
class DrGRPO(GRPO):
    """Dr. GRPO (Liu et al. 2025, arXiv 2503.20783): advantages are not divided by the group's deviation, nor losses by length."""

    trainer: ClassVar[Mapping[str, Any]] = {"loss_type": "dr_grpo", "scale_rewards": "none"}


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


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
