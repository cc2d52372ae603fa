"""RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740): loss = -A_i log pi(y_i), A_i = r_i - mean of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codea1_env.agents.policy import Floats, Sample, SoftmaxPolicy, policy_gradient


@dataclass(frozen=True)
class RLOO:
    """RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv 2402.14740).

    The plain policy gradient of the whole answer, with the mean reward of the group's *other* answers as the baseline.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        # The length of an answer times its mean log-ratio: the slope is that of the answer's log-probability.
        "loss_type": "luspo",
        "importance_sampling_level": "sequence",
    }

    learning_rate: float = 1.0

    def update(self, policy: SoftmaxPolicy, samples: Sequence[Sample]) -> dict[str, float]:
        """See `Algorithm.update`."""
        return policy_gradient(policy, samples, self.advantages, self.learning_rate, per_draw=False)

    def advantages(self, rewards: Floats) -> Floats:
        """Reward minus the mean reward of the group's other answers; 0 for a group of one.

        Example:
            >>> RLOO().advantages(np.array([[1.0, 0.0, np.nan, 0.5], [np.nan, np.nan, np.nan, 1.0]])).tolist()
            [[0.75, -0.75, nan, 0.0], [nan, nan, nan, 0.0]]
        """
        number = np.sum(~np.isnan(rewards), axis=1, keepdims=True)
        others = np.nansum(rewards, axis=1, keepdims=True) - rewards
        return np.where(number < 2, 0.0 * rewards, rewards - others / np.maximum(number - 1, 1))
