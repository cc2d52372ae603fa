"""Shows a run while it goes on, in trackio, TensorBoard or Weights & Biases.

No tracker can stop a run, or change what it does: the files of the run depend on none.
"""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.support.extras import require
from codea1_env.support.logs import write_whole
from codea1_env.training.config import RunError, TrackerName
from codea1_env.training.settings import inline_table

TRACKING = "tracking.json"
"""File of a run's folder: the run's id for trackers, and the last step that each was given."""


@dataclass(frozen=True)
class TrackedRun:
    """The run that a tracker shows."""

    id: str
    """The same for all of the run, however often it is resumed; no other run has it."""
    folder: Path
    settings: Mapping[str, Any]
    handed: int
    """The last step that the tracker was given before the run was resumed; -1 if none."""

    @property
    def name(self) -> str:
        """Name for people: that of the folder, and the id."""
        return f"{self.folder.resolve().name}-{self.id}"


def numbers_of(*rows: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers in rows of a step, without what is unknown."""
    return {
        name: value
        for row in rows
        for name, value in row.items()
        if name != "step" and isinstance(value, (int, float)) and math.isfinite(value)
    }


class WandbTracker:
    """A run of Weights & Biases, or of trackio, which has the same functions.

    It is in the project "codea1", in W&B also in the one that WANDB_PROJECT names.
    """

    def __init__(self, run: TrackedRun, name: str = "wandb") -> None:
        self._package = package = require(name, name)
        config = dict(run.settings)
        if name == "trackio":
            _check_folder(Path(package.utils.TRACKIO_DIR))
            options: dict[str, Any] = {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
            with redirect_stdout(io.StringIO()):  # its output would spoil `--json`
                self._run = package.init(
                    "codea1", name=run.name, config=config, resume="allow", **options
                )
            # A step that it was given just before a kill may not be in the database.
            self.last = int(self._run._next_step) - 1
            return
        quiet = package.Settings(console="off", disable_code=True, disable_git=True, quiet=True)
        project = os.environ.get("WANDB_PROJECT", "codea1")
        options = {"id": run.id, "dir": run.folder, "settings": quiet, "resume": "allow"}
        self._run = package.init(project=project, name=run.name, config=config, **options)
        # An offline run does not know what was written before.
        self.last = run.handed if self._run.offline else int(self._run.step) - 1

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write a step."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Write what is left."""
        with redirect_stdout(io.StringIO()):
            self._package.finish()


class TensorboardTracker:
    """Event files in the run's folder: numbers and settings. `tensorboard --logdir runs` shows those of all runs."""

    def __init__(self, run: TrackedRun) -> None:
        self._events, summaries = _part("compat.proto.event_pb2"), _part("compat.proto.summary_pb2")
        self._summary = summaries.Summary
        folder = run.folder / "tensorboard"
        _check_folder(folder)
        begun = any(folder.glob("events.out.tfevents.*"))
        self._writer = _part("summary.writer.event_file_writer").EventFileWriter(str(folder))
        self.last = run.handed if begun else -1  # it writes each step at once
        if begun:  # what comes replaces what earlier files have of the same and of later steps
            log = self._events.SessionLog(status=self._events.SessionLog.START)
            self._add(self.last + 1, session_log=log)
        lines = [f"    {inline_table({name: value})}" for name, value in run.settings.items()]
        about = _part("plugins.text.metadata").create_summary_metadata(None, None)
        text = _part("util.tensor_util").make_tensor_proto(
            "\n".join(lines).encode(), dtype=np.object_
        )
        value = self._summary.Value(tag="settings", metadata=about, tensor=text)
        self._add(max(self.last, 0), summary=self._summary(value=[value]))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write a step."""
        value = self._summary.Value
        found = [value(tag=name, simple_value=each) for name, each in values.items()]
        self._add(step, summary=self._summary(value=found))
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def _add(self, step: int, **what: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **what))


def _part(name: str) -> Any:
    return require(f"tensorboard.{name}", "tensorboard")


def _check_folder(folder: Path) -> None:
    """Make a folder and write into it: trackers lose in silence what they cannot write."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


Tracker = WandbTracker | TensorboardTracker
"""An open run of a tracker, and the last step that it has; -1 if none. Steps come in order."""
MAKERS: dict[TrackerName, Callable[[TrackedRun], Tracker]] = {
    "trackio": partial(WandbTracker, name="trackio"),
    "tensorboard": TensorboardTracker,
    "wandb": WandbTracker,
}


def check_installed(names: Iterable[TrackerName]) -> None:
    """Raise a RunError for a tracker whose package is missing. Nothing is imported."""
    for name in names:
        found = importlib.util.find_spec(name)
        # wandb leaves a folder of its own name behind, which can be imported as an empty package.
        if found is None or found.origin is None:
            raise RunError(
                f"Expect the package {name} to be installed for --tracker {name}, actually: it is not. "
                f"Run: pip install 'codea1-env[{name}]'"
            )


class Tracking:
    """Context manager around the steps of a run. It names a tracker that fails once, and goes on without it."""

    def __init__(
        self,
        names: Sequence[TrackerName],
        folder: Path,
        settings: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self._path, self._say = folder / TRACKING, say
        self._trackers: dict[str, Tracker] = {}
        self._state: dict[str, Any] = {}
        if not names:
            return
        self._state = {"id": secrets.token_hex(4), "handed": {}} | _read(self._path)
        self._write()
        plain = json.loads(json.dumps(settings, default=str))  # paths become text
        for name in dict.fromkeys(names):
            handed = int(self._state["handed"].get(name, -1))
            run = TrackedRun(self._state["id"], folder, plain, handed)
            with self._safely(name):
                self._trackers[name] = MAKERS[name](run)

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, *_: object) -> None:
        for name, tracker in list(self._trackers.items()):
            with self._safely(name):
                tracker.close()

    def catch_up(
        self, metrics: Iterable[Mapping[str, Any]], timings: Iterable[Mapping[str, Any]]
    ) -> None:
        """Give trackers the steps that they lack, from the rows of metrics.jsonl and timings.jsonl."""
        if self._trackers:
            seconds = {row["step"]: row for row in timings}
            for row in metrics:
                self.log(row["step"], row, seconds.get(row["step"], {}))

    def log(self, step: int, *rows: Mapping[str, Any]) -> None:
        """Give the numbers of a step's rows to each tracker that does not have them."""
        for name, tracker in list(self._trackers.items()):
            if step > tracker.last:
                with self._safely(name):
                    tracker.log(step, numbers_of(*rows))
                    tracker.last = self._state["handed"][name] = step
        if self._trackers:
            self._write()

    @contextmanager
    def _safely(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._trackers.pop(name, None)
            reason = str(error).strip().partition("\n")[0]
            self._say(
                f"The tracker {name} failed, and is not used any more; the run goes on without it. "
                f"{type(error).__name__}: {reason:.300}"
            )

    def _write(self) -> None:
        write_whole(self._path, json.dumps(self._state) + "\n")


def forget(folder: Path) -> None:
    """Remove from a run's folder what trackers wrote: the run comes to nothing."""
    (folder / TRACKING).unlink(missing_ok=True)
    for name in ("tensorboard", "wandb"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    """State in the file; empty if it is missing or damaged."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return {"id": str(state["id"]), "handed": dict(state["handed"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
