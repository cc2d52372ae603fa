"""GSPO (Zheng et al. 2025, arXiv 2507.18071): GRPO with one ratio an answer, rho = (pi(y) / pi_old(y)) ** (1 / length)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class GSPO:
    """Group sequence policy optimisation (Zheng et al. 2025, arXiv 2507.18071).

    One probability ratio for an answer, the geometric mean of its tokens', and so much narrower bounds.
    """

    trainer: Mapping[str, Any] = {
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
    }
