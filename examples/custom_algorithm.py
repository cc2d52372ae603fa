"""A new algorithm for tabular players: the policy gradient of ranks instead of rewards.

codea1 bench algorithms --algorithms grpo rloo examples/custom_algorithm.py:RankGradient --seeds 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codea1_env.agents import Sample, SoftmaxPolicy
from codea1_env.agents.policy import by_group, by_table, rewards_of


class RankGradient:
    """An answer's advantage is its place in its group, from -1 to 1, however large the differences are."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> Mapping[str, float]:
        """Raise the logits of the better half of each group, lower those of the worse half."""
        for key, batch in by_table(samples).items():
            gradient = np.zeros_like(policy.logits[key])
            for group in by_group(batch):
                rewards = rewards_of(batch)[group]
                ranks = np.sign(rewards[:, None] - rewards[None]).mean(axis=1)
                for index, rank in zip(group, ranks, strict=True):
                    gradient += rank * policy.gradients(key, batch[index].drawn).mean(axis=0)
            policy.logits[key] += self.learning_rate * gradient / len(batch)
        return {}
