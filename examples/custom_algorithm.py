"""A new algorithm, for tables and for language models: the policy gradient of ranks instead of rewards.

codea1 bench algorithms --algorithms grpo rloo examples/custom_algorithm.py:RankGradient --seeds 3
codea1 train --preset smollm2-cpu --algorithm examples/custom_algorithm.py:RankGradient
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codea1_env.agents.policy import Floats


class RankGradient:
    """An answer's advantage: the share of its group that it beats less the share that beats it, however clearly."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def advantages(self, rewards: Floats) -> Floats:
        """Rank the answers of each row; NaN stands for one that could not be scored."""
        better = np.sign(rewards[:, :, None] - rewards[:, None, :])
        return np.asarray(np.nansum(better, axis=2) / rewards.shape[1])

    def loss(self, log_probs: Any, old_log_probs: Any, advantages: Any, mask: Any) -> Any:
        """The loss of a language model: tensors of shape (answers, tokens). Without this method it is that of TRL."""
        return -(advantages * log_probs * mask).sum() / mask.sum().clamp(min=1)
