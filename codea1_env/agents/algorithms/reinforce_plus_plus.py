"""REINFORCE++ (Hu 2025, arXiv 2501.03262): A_i = (r_i - mean(r)) / (std(r) + 1e-4) over the whole batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codea1_env.agents.policy import Floats


@dataclass(frozen=True)
class ReinforcePlusPlus:
    """REINFORCE++ (Hu 2025, arXiv 2501.03262), which needs no group: the baseline and the scale are those of the batch.

    The gradient is noisier than with a group's baseline.
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.2,
    }

    learning_rate: float = 1.0

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
