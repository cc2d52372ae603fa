"""Writes a run for trackio, TensorBoard, and Weights & Biases."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.support.extras import require
from codea1_env.training.settings import inline_table
from codea1_env.training.trackers.step_report import (
    COLUMNS,
    REWARD_EDGES,
    StepReport,
    TrackedRun,
)


class TrackioTracker:
    """A run of trackio, in the project "codea1". `trackio show --project codea1` shows it.

    Args:
        run: What is shown.
    """

    def __init__(self, run: TrackedRun) -> None:
        self._trackio = require("trackio", "trackio")
        _check_folder(Path(self._trackio.utils.TRACKIO_DIR))
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
        self._run.log(_values(self._trackio, report), step=report.step)

    def close(self) -> None:
        """Write what is left."""
        with redirect_stdout(io.StringIO()):
            self._trackio.finish()


class TensorboardTracker:
    """Event files. `tensorboard --logdir runs` shows those of all runs.

    Args:
        run: What is shown.
    """

    def __init__(self, run: TrackedRun) -> None:
        writers = _part("summary.writer.event_file_writer")
        self._events = _part("compat.proto.event_pb2")
        self._summaries = _part("compat.proto.summary_pb2")
        self._tensors = _part("util.tensor_util")
        self._text = _part("plugins.text.metadata")
        self._histogram = _part("plugins.histogram.metadata")
        folder = run.folder / "tensorboard"
        _check_folder(folder)
        begun = any(folder.glob("events.out.tfevents.*"))
        self._writer = writers.EventFileWriter(str(folder))
        self.last = run.handed if begun else -1  # what it is given is in the file at once
        if begun:
            # Says that what comes replaces what earlier files have of the same and of later steps.
            log = self._events.SessionLog(status=self._events.SessionLog.START)
            self._add(self.last + 1, session_log=log)
        lines = [f"    {inline_table({name: value})}" for name, value in run.settings.items()]
        self._add_summary(max(self.last, 0), [self._texts("settings", "\n".join(lines))])

    def log(self, report: StepReport) -> None:
        """Write what happened in a step."""
        value = self._summaries.Summary.Value
        values = [value(tag=name, simple_value=each) for name, each in report.values.items()]
        for name, counts in report.rewards.items():
            bins = np.array(list(zip(REWARD_EDGES[:-1], REWARD_EDGES[1:], counts, strict=True)))
            about = self._histogram.create_summary_metadata(None, None)
            tensor = self._tensors.make_tensor_proto(bins, dtype=np.float64)
            values.append(value(tag=f"{name}/histogram", metadata=about, tensor=tensor))
        if report.samples:
            values.append(self._texts("episodes", _markdown(report.samples)))
        self._add_summary(report.step, values)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def _texts(self, tag: str, text: str) -> Any:
        """Return a text in Markdown."""
        about = self._text.create_summary_metadata(display_name=None, description=None)
        tensor = self._tensors.make_tensor_proto(text.encode(), dtype=np.object_)
        return self._summaries.Summary.Value(tag=tag, metadata=about, tensor=tensor)

    def _add_summary(self, step: int, values: list[Any]) -> None:
        self._add(step, summary=self._summaries.Summary(value=values))

    def _add(self, step: int, **what: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **what))


def _check_folder(folder: Path) -> None:
    """Make a folder and write into it: what cannot be written is lost without a word otherwise.

    Raises:
        OSError: It cannot be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _part(name: str) -> Any:
    return require(f"tensorboard.{name}", "tensorboard")


def _markdown(samples: Sequence[tuple[Any, ...]]) -> str:
    """Return the table in Markdown; nothing in a cell ends it."""
    lines = [" | ".join(COLUMNS), " | ".join("---" for _ in COLUMNS)]
    for row in samples:
        cells = [str(cell).replace("|", "&#124;").replace("<", "&lt;") for cell in row]
        lines.append(" | ".join("<br>".join(cell.splitlines()) for cell in cells))
    return "\n".join(lines)


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
        # An offline run does not know what was written before.
        self.last = run.handed if self._run.offline else int(self._run.step) - 1

    def log(self, report: StepReport) -> None:
        """Write what happened in a step."""
        values = _values(self._wandb, report, allow_mixed_types=True)
        self._run.log(values, step=report.step)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()


def _values(package: Any, report: StepReport, **of_table: Any) -> dict[str, Any]:
    """Return a step in the words that trackio and wandb have in common."""
    edges = np.array(REWARD_EDGES)
    values: dict[str, Any] = dict(report.values)
    for name, counts in report.rewards.items():
        values[f"{name}/histogram"] = package.Histogram(np_histogram=(np.array(counts), edges))
    if report.samples:
        rows = list(map(list, report.samples))
        values["episodes"] = package.Table(columns=list(COLUMNS), data=rows, **of_table)
    return values
