"""REINFORCE with a baseline: the mean of the group's other answers, or that of the whole batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codea1_env.agents.policy import Floats, Sample, SoftmaxPolicy, by_table, in_groups


@dataclass(frozen=True)
class RLOO:
    """RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740).

    The plain policy gradient of the whole answer, with the mean reward of the *other* answers of the group
    as the baseline: unbiased, with nothing to tune but the learning rate. Unlike GRPO it does not divide by
    the group's deviation, so groups that differ much teach more than groups that hardly differ.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        # The length of an answer times its mean log-ratio: the slope is that of the answer's log-probability.
        "loss_type": "luspo",
        "importance_sampling_level": "sequence",
    }

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """Take one gradient step on the tables that the samples came from."""
        losses = [
            _step(policy, key, batch, in_groups(batch, self.advantages), self.learning_rate)
            for key, batch in by_table(samples).items()
        ]
        return {"loss": float(np.mean(losses)) if losses else 0.0}

    def advantages(self, rewards: Floats) -> Floats:
        """Reward minus the mean reward of the group's other answers; 0 for a group of one.

        Example:
            >>> RLOO().advantages(np.array([[1.0, 0.0, np.nan, 0.5], [np.nan, np.nan, np.nan, 1.0]])).tolist()
            [[0.75, -0.75, nan, 0.0], [nan, nan, nan, 0.0]]
        """
        number = np.sum(~np.isnan(rewards), axis=1, keepdims=True)
        others = np.nansum(rewards, axis=1, keepdims=True) - rewards
        return np.where(number < 2, 0.0 * rewards, rewards - others / np.maximum(number - 1, 1))


@dataclass(frozen=True)
class ReinforcePlusPlus:
    """REINFORCE++ (Hu 2025, arXiv 2501.03262), which needs no group: the baseline and the scale are those of the batch.

    An answer to a hard problem is worse than one to an easy problem, whatever else was tried; so the gradient is
    noisier than with a group's own baseline, and its scale does not depend on how much a group differs.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.2,
    }

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """Take one gradient step on the tables that the samples came from; the batch is that of all of them."""
        scored = [sample for sample in samples if sample.reward is not None]
        # As GRPO: the mean over the draws of an answer.
        weights = in_groups(scored, self.advantages) / [len(sample.drawn) for sample in scored]
        losses = []
        for key, batch in by_table(scored).items():
            own = weights[[sample.key == key for sample in scored]]
            losses.append(_step(policy, key, batch, own, self.learning_rate))
        return {"loss": float(np.mean(losses)) if losses else 0.0}

    def advantages(self, rewards: Floats) -> Floats:
        """Reward minus the mean of the batch, over the deviation of the batch (of the sample, plus 1e-4, as in TRL).

        Example:
            >>> ReinforcePlusPlus().advantages(np.array([[1.0, 0.0], [np.nan, 0.5]])).round(2).tolist()
            [[1.0, -1.0], [nan, 0.0]]
        """
        scored = rewards[~np.isnan(rewards)]
        if len(scored) < 2 or np.all(scored == scored[0]):
            return 0.0 * rewards
        advantages: Floats = (rewards - scored.mean()) / (scored.std(ddof=1) + 1e-4)
        return advantages


def _step(
    policy: SoftmaxPolicy, key: str, batch: Sequence[Sample], weights: Floats, rate: float
) -> float:
    """Take one step of the policy gradient on a table; returns the loss before it."""
    gradient, loss = np.zeros_like(policy.logits[key]), 0.0
    for sample, weight in zip(batch, weights, strict=True):
        loss -= weight * policy.log_probs(key, sample.drawn).sum() / len(batch)
        gradient -= weight * policy.gradients(key, sample.drawn).sum(axis=0) / len(batch)
    policy.logits[key] -= rate * gradient
    return loss
