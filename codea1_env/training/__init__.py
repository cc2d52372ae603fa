"""Training: the co-evolution loop, its configuration, run folders and checkpoints."""

from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import PlayerError, RunError
from codea1_env.training.loop import train
from codea1_env.training.summary import TrainResult, summary_table

__all__ = ["PlayerError", "RunError", "TrainConfig", "TrainResult", "summary_table", "train"]
