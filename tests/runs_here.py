"""Runs of a benchmark in this process, which has imported everything and has looked what its sandboxes can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from codea1_env.baselines.bench import plots, schedule


def run_jobs_here(
    jobs: Iterable[Any],
    begin: Callable[[Any], Callable[[Callable[[Any], None]], object]],
    hear: Callable[[Any, Any], None],
    *_: Any,
    log: Callable[[Any], Path],
    tick: Callable[[], None],
    **__: Any,
) -> None:
    """Stands for `run_jobs`: one job after another, and what raises is no failed run."""
    for job in jobs:
        work = begin(job)
        with log(job).open("a") as file, redirect_stdout(file), redirect_stderr(file):
            work(lambda found, job=job: hear(job, found))
        tick()


def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, runs of a benchmark have no processes of their own, and no pictures."""
    monkeypatch.setattr(plots, "plot_all", lambda folder, results: [])
    monkeypatch.setattr(schedule, "run_jobs", run_jobs_here)
