"""Writes a run for TensorBoard, without torch: into the folder tensorboard/ of the run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from codea1_env.support.extras import require
from codea1_env.training.settings import inline_table
from codea1_env.training.trackers.protocol import TrackedRun
from codea1_env.training.trackers.step_report import REWARD_EDGES, SampleEpisodes, StepReport


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
            edges = REWARD_EDGES
            bins = np.array(list(zip(edges[:-1], edges[1:], counts, strict=True)))
            about = self._histogram.create_summary_metadata(None, None)
            tensor = self._tensors.make_tensor_proto(bins, dtype=np.float64)
            values.append(value(tag=f"{name}/histogram", metadata=about, tensor=tensor))
        if report.samples.rows:
            values.append(self._texts("episodes", _markdown(report.samples)))
        self._add_summary(report.step, values)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def _texts(self, tag: str, text: str) -> Any:
        """A text in Markdown."""
        about = self._text.create_summary_metadata(display_name=None, description=None)
        tensor = self._tensors.make_tensor_proto(text.encode(), dtype=np.object_)
        return self._summaries.Summary.Value(tag=tag, metadata=about, tensor=tensor)

    def _add_summary(self, step: int, values: list[Any]) -> None:
        self._add(step, summary=self._summaries.Summary(value=values))

    def _add(self, step: int, **what: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **what))


def _part(name: str) -> Any:
    return require(f"tensorboard.{name}", "tensorboard")


def _markdown(samples: SampleEpisodes) -> str:
    """The table in Markdown; nothing in a cell ends it."""
    lines = [" | ".join(samples.columns), " | ".join("---" for _ in samples.columns)]
    for row in samples.rows:
        cells = [str(cell).replace("|", "&#124;").replace("<", "&lt;") for cell in row]
        lines.append(" | ".join("<br>".join(cell.splitlines()) for cell in cells))
    return "\n".join(lines)
