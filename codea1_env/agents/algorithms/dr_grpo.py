"""Dr. GRPO (Liu et al. 2025, arXiv 2503.20783): A_i = r_i - mean(r), and the loss is not divided by an answer's length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from codea1_env.agents.algorithms.grpo import GRPO


@dataclass(frozen=True)
class DrGRPO(GRPO):
    """Dr. GRPO (Liu et al. 2025, arXiv 2503.20783): advantages are not divided by the group's deviation, nor losses by length."""

    trainer: ClassVar[Mapping[str, Any]] = {"loss_type": "dr_grpo", "scale_rewards": "none"}
