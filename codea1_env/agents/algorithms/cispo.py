"""CISPO (MiniMax-M1, arXiv 2506.13585): loss = -stop_gradient(min(rho, epsilon_high)) A log pi(y), of each token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CISPO:
    """Clipped importance sampling (MiniMax-M1, arXiv 2506.13585; the bound of ScaleRL, 2510.13786).

    Ratios are weights, clipped from above; no token's gradient is cut off.
    """

    trainer: Mapping[str, Any] = {"loss_type": "cispo", "epsilon_high": 5.0}
