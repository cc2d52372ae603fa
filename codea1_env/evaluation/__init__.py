"""Measuring players: on what training holds back, and on problem sets (`codea1 eval`)."""

from codea1_env.evaluation.held_out import (
    HeldOut,
    PassRates,
    hold_out,
    kill_rate,
    kills,
    kills_beside,
    pass_rate,
    pass_rates,
)

__all__ = [
    "HeldOut",
    "PassRates",
    "hold_out",
    "kill_rate",
    "kills",
    "kills_beside",
    "pass_rate",
    "pass_rates",
]
