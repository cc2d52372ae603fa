"""What a tracker must offer, and what it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from codea1_env.training.trackers.step_report import StepReport


@dataclass(frozen=True)
class TrackedRun:
    """The run that a tracker shows."""

    id: str
    """The same for all of the run, however often it is resumed; no other run has it."""
    folder: Path
    settings: Mapping[str, Any]
    """All settings by name: plain data."""
    handed: int
    """The last step that the tracker was given before the run was resumed; -1 if none. It need not have kept it."""

    @property
    def name(self) -> str:
        """Name for people: that of the folder, and the id."""
        return f"{self.folder.resolve().name}-{self.id}"


class Tracker(Protocol):
    """An open run of a tracker."""

    last: int
    """The last step that it has; those up to it need not be given again. -1 if none."""

    def log(self, report: StepReport) -> None:
        """Write what happened in a step. Steps come in order."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...
