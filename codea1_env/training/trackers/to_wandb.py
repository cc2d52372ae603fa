"""Writes a run for Weights & Biases, online or (WANDB_MODE=offline) into the run's folder."""

from __future__ import annotations

import os

import numpy as np

from codea1_env.support.extras import require
from codea1_env.training.trackers.protocol import TrackedRun
from codea1_env.training.trackers.step_report import REWARD_EDGES, StepReport


class WandbTracker:
    """A run of Weights & Biases, in the project "codea1" or the one that WANDB_PROJECT names.

    Args:
        run: What is shown.
    """

    def __init__(self, run: TrackedRun) -> None:
        self._wandb = require("wandb", "wandb")
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "codea1"),
            id=run.id,
            name=run.name,
            dir=run.folder,
            config=dict(run.settings),
            resume="allow",
            # Neither the screen nor the code around the run is its business.
            settings=self._wandb.Settings(
                console="off", disable_code=True, disable_git=True, quiet=True
            ),
        )
        self.last = run.handed  # an offline run does not know what was written before

    def log(self, report: StepReport) -> None:
        """Write what happened in a step."""
        edges = np.array(REWARD_EDGES)
        values = dict(report.values) | {
            f"{name}/histogram": self._wandb.Histogram(np_histogram=(np.array(counts), edges))
            for name, counts in report.rewards.items()
        }
        if report.samples.rows:
            values["episodes"] = self._wandb.Table(
                columns=list(report.samples.columns),
                data=list(map(list, report.samples.rows)),
                allow_mixed_types=True,
            )
        self._run.log(values, step=report.step)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()
