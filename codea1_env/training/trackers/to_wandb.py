"""Writes a run for Weights & Biases, online or (WANDB_MODE=offline) into the run's folder."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.support.extras import require
from codea1_env.training.trackers.protocol import TrackedRun
from codea1_env.training.trackers.step_report import REWARD_EDGES, StepReport

_HEADER, _BLOCK = 7, 32768
_CHUNK = struct.Struct("<IHB")
"""Checksum, length and kind of a chunk."""
_WHOLE, _LAST = 1, 4
"""Kinds of chunks that end a record."""


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
        # An offline run does not know what was written before, and what was given just before a process was killed
        # need not have been.
        offline = bool(self._run.offline)
        self.last = _last_written(run) if offline else int(self._run.step) - 1

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


def _last_written(run: TrackedRun) -> int:
    """The last step in the files of a run that was offline; -1 if there is none."""
    last = -1
    for path in (run.folder / "wandb").glob(f"offline-run-*-{run.id}/*.wandb"):
        for record in _records(path):
            if record.WhichOneof("record_type") == "history":
                last = max(last, record.history.step.num)
    return last


def _records(path: Path) -> Iterator[Any]:
    """What a file of an offline run holds: LevelDB's log format, behind a header of 7 bytes."""
    proto = require("wandb.proto.wandb_internal_pb2", "wandb")
    data, place, part = path.read_bytes(), _HEADER, b""
    while place + _CHUNK.size <= len(data):
        if (left := _BLOCK - place % _BLOCK) < _CHUNK.size:
            place += left
            continue
        _, length, kind = _CHUNK.unpack_from(data, place)
        place += _CHUNK.size + length
        if place > len(data):
            return  # cut off when its process was killed
        part += data[place - length : place]
        if kind in (_WHOLE, _LAST):
            yield proto.Record.FromString(part)
            part = b""
