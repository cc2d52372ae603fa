"""REINFORCE with a leave-one-out baseline, for tabular policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
class RLOO:
    """RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740).

    The plain policy gradient of the whole answer, with the mean reward of the *other* answers of the group
    as the baseline: unbiased, with nothing to tune but the learning rate. Unlike GRPO it does not divide by
    the group's deviation, so groups that differ much teach more than groups that hardly differ.
    """

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """Take one gradient step on the tables that the samples came from."""
        losses = []
        for key, batch in by_table(samples).items():
            advantages = leave_one_out(batch)
            gradient, loss = np.zeros_like(policy.logits[key]), 0.0
            for sample, advantage in zip(batch, advantages, strict=True):
                loss -= advantage * policy.log_probs(key, sample.drawn).sum() / len(batch)
                gradient -= advantage * policy.gradients(key, sample.drawn).sum(axis=0) / len(batch)
            policy.logits[key] -= self.learning_rate * gradient
            losses.append(loss)
        return {"loss": float(np.mean(losses)) if losses else 0.0}


def leave_one_out(samples: Sequence[Sample]) -> Floats:
    """Reward minus the mean reward of the other scorable answers of the group; 0 for a group of one.

    Example:
        >>> group = [Sample("t", (0,), reward, "g") for reward in (1.0, 0.0, None, 0.5)]
        >>> leave_one_out(group).tolist()
        [0.75, -0.75, 0.0, 0.0]
    """
    rewards = rewards_of(samples)
    advantages = np.zeros(len(rewards))
    for members in by_group(samples):
        scored = [index for index in members if not np.isnan(rewards[index])]
        if len(scored) > 1:
            group = rewards[scored]
            advantages[scored] = group - (group.sum() - group) / (len(group) - 1)
    return advantages
