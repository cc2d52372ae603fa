"""Measuring players: on what training holds back, and on problem sets (`codea1 eval`)."""

from codea1_env.evaluation.asking import find_evaluation, own_evaluation
from codea1_env.evaluation.held_out import (
    HeldOut,
    PassRates,
    copied_share,
    hold_out,
    kill_rate,
    kills,
    kills_beside,
    pass_rate,
    pass_rates,
    train_cases,
    train_tests,
    youden_j,
)

__all__ = [
    "HeldOut",
    "PassRates",
    "copied_share",
    "find_evaluation",
    "hold_out",
    "kill_rate",
    "kills",
    "kills_beside",
    "own_evaluation",
    "pass_rate",
    "pass_rates",
    "train_cases",
    "train_tests",
    "youden_j",
]
