"""Gives all trackers of a run what happens in it. None of them can stop the run, or change what it does."""

from __future__ import annotations

import importlib.util
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codea1_env.support.logs import write_whole
from codea1_env.training.config import RunError, TrackerName
from codea1_env.training.trackers.step_report import StepReport, TrackedRun, Tracker, numbers
from codea1_env.training.trackers.writers import TensorboardTracker, TrackioTracker, WandbTracker

TRACKING = "tracking.json"
"""File of a run's folder: the run's id for trackers, and the last step that each was given."""
MAKERS: dict[TrackerName, Callable[[TrackedRun], Tracker]] = {
    "trackio": TrackioTracker,
    "tensorboard": TensorboardTracker,
    "wandb": WandbTracker,
}


def check_installed(names: Iterable[TrackerName]) -> None:
    """Check that the packages of trackers are there, without importing them.

    Raises:
        RunError: One is not. The message names the extra.
    """
    for name in names:
        found = importlib.util.find_spec(name)
        # wandb and others leave folders of their own names behind, which can be imported as empty packages.
        if found is None or found.origin is None:
            raise RunError(
                f"Expect the package {name} to be installed for --tracker {name}, actually: it is not. "
                f"Run: pip install 'codea1-env[{name}]'"
            )


class Tracking:
    """Context manager around the steps of a run.

    A tracker that fails is named once, and not used any more: the run's files have everything.

    Args:
        names: The trackers.
        folder: Folder of the run.
        settings: The run's settings, by name.
        say: Tells the user something.
    """

    def __init__(
        self,
        names: Sequence[TrackerName],
        folder: Path,
        settings: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self._path = folder / TRACKING
        self._say = say
        self._trackers: dict[str, Tracker] = {}
        self._state: dict[str, Any] = {}
        if not names:
            return
        self._state = {"id": secrets.token_hex(4), "handed": {}} | _read(self._path)
        self._write()
        plain = json.loads(json.dumps(settings, default=str))  # paths are text
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
        """Give trackers the steps that they lack: those from before they were asked for, or lost when a process was killed.

        Args:
            metrics: The rows of metrics.jsonl.
            timings: The rows of timings.jsonl.
        """
        if not self._trackers:
            return
        seconds = {row["step"]: row for row in timings}
        for row in metrics:
            self.log(StepReport(row["step"], numbers(row, seconds.get(row["step"], {}))))

    def log(self, report: StepReport) -> None:
        """Give a step to each tracker that does not have it."""
        for name, tracker in list(self._trackers.items()):
            if report.step > tracker.last:
                with self._safely(name):
                    tracker.log(report)
                    tracker.last = self._state["handed"][name] = report.step
        if self._trackers:
            self._write()

    @property
    def active(self) -> bool:
        """Whether anything is shown."""
        return bool(self._trackers)

    @contextmanager
    def _safely(self, name: str) -> Iterator[None]:
        """Do something with a tracker, which is given up if it fails: whatever it is, the run does not need it."""
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
    """Return what the file says; nothing if it is not there, or is not one."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return {"id": str(state["id"]), "handed": dict(state["handed"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
