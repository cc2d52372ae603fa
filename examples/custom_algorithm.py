"""A new algorithm, for tables and for language models: the policy gradient of ranks instead of rewards.

codea1 bench algorithms --algorithms grpo rloo examples/custom_algorithm.py:RankGradient --seeds 3
codea1 train --preset smollm2-cpu --algorithm examples/custom_algorithm.py:RankGradient
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codea1_env.agents import Sample, SoftmaxPolicy
from codea1_env.agents.policy import Floats, by_table, in_groups


class RankGradient:
    """An answer's advantage: the share of its group that it beats less the share that beats it, however clearly."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def advantages(self, rewards: Floats) -> Floats:
        """Rank the answers of each row; NaN stands for one that could not be scored."""
        better = np.sign(rewards[:, :, None] - rewards[:, None, :])
        return np.asarray(np.nansum(better, axis=2) / rewards.shape[1])

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> Mapping[str, float]:
        """Raise the logits of the better half of each group, lower those of the worse half (of tables)."""
        for key, batch in by_table(samples).items():
            slopes = [policy.gradients(key, sample.drawn).mean(axis=0) for sample in batch]
            gradient = in_groups(batch, self.advantages) @ np.array(slopes) / len(batch)
            policy.logits[key] += self.learning_rate * gradient
        return {}

    def loss(self, log_probs: Any, old_log_probs: Any, advantages: Any, mask: Any) -> Any:
        """Do the same with the tokens of a language model: tensors of shape (answers, tokens)."""
        return -(advantages * log_probs * mask).sum() / mask.sum().clamp(min=1)
