"""DAPO (Yu et al. 2025, arXiv 2503.14476): GRPO with dynamic sampling, the mean over tokens, and overlong filtering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from codea1_env.agents.algorithms.grpo import GRPO


@dataclass(frozen=True)
class DAPO(GRPO):
    """DAPO (Yu et al. 2025, arXiv 2503.14476): asymmetric clipping, the mean over tokens, and dynamic sampling.

    Groups whose rewards are all equal are replaced by groups of other problems. A language model's answers that were cut
    off are left out of the loss (overlong filtering).
    """

    trainer: ClassVar[Mapping[str, Any]] = {
        "loss_type": "dapo",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "mask_truncated_completions": True,
    }
    extra_rounds: ClassVar[int] = 3
