"""Runs of a benchmark in this process, which has imported everything and has looked what its sandboxes can do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from codea1_env.baselines.bench import plots, schedule, worker


class ProcessHere:
    """Stands for a process of `schedule.run_all`: it is over when it has begun."""

    def __init__(self, command: Sequence[str], stdout: IO[bytes], **_: Any) -> None:
        with open(stdout.name, "a") as log, redirect_stdout(log), redirect_stderr(log):
            self.returncode = worker.main(Path(command[-1]))

    def poll(self) -> int:
        return self.returncode


def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, runs of a benchmark have no processes of their own, and no pictures."""
    monkeypatch.setattr(plots, "plot_all", lambda folder, results: [])
    monkeypatch.setattr(worker, "_end_with_parent", lambda parent: None)
    processes = SimpleNamespace(Popen=ProcessHere, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(schedule, "subprocess", processes)
