"""Training: the co-evolution loop, its configuration, run folders and checkpoints."""

from codea1_env.training.config import (
    PlayerConfig,
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
)
from codea1_env.training.loop import train
from codea1_env.training.summary import TrainResult, summary_table

__all__ = [
    "PlayerConfig",
    "PlayerError",
    "RunError",
    "TesterConfig",
    "TrainConfig",
    "TrainResult",
    "summary_table",
    "train",
]
