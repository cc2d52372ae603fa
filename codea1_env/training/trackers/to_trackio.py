"""Writes a run for trackio: into its database on this machine, or where its environment variables say."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import numpy as np

from codea1_env.support.extras import require
from codea1_env.training.trackers.protocol import TrackedRun
from codea1_env.training.trackers.step_report import REWARD_EDGES, StepReport


class TrackioTracker:
    """A run of trackio, in the project "codea1". `trackio show --project codea1` shows it.

    Args:
        run: What is shown.
    """

    def __init__(self, run: TrackedRun) -> None:
        self._trackio = require("trackio", "trackio")
        with redirect_stdout(io.StringIO()):  # what it says there would spoil `--json`
            self._run = self._trackio.init(
                "codea1",
                name=run.name,
                config=dict(run.settings),
                resume="allow",
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )
        # What it was given just before a process was killed need not have reached the database.
        self.last = int(self._run._next_step) - 1

    def log(self, report: StepReport) -> None:
        """Write what happened in a step."""
        edges = np.array(REWARD_EDGES)
        values = dict(report.values) | {
            f"{name}/histogram": self._trackio.Histogram(np_histogram=(np.array(counts), edges))
            for name, counts in report.rewards.items()
        }
        if report.samples.rows:
            table = self._trackio.Table(
                columns=list(report.samples.columns), data=list(map(list, report.samples.rows))
            )
            values["episodes"] = table
        self._run.log(values, step=report.step)

    def close(self) -> None:
        """Write what is left."""
        with redirect_stdout(io.StringIO()):
            self._trackio.finish()
