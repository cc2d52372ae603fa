"""What the co-evolution is compared with: settings of the training loop, not copies of it."""

from codea1_env.baselines.registry import BASELINES, Baseline

__all__ = ["BASELINES", "Baseline"]
