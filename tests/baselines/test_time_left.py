"""Estimates of what the rest of a diagnosis takes."""

from __future__ import annotations

from codea1_env.baselines.diagnose.experiments import EXPERIMENTS
from codea1_env.baselines.diagnose.running import RowRun, WorldJob, _Left


def test_first_runs_of_worlds_take_longer(monkeypatch):
    cycling = EXPERIMENTS["cycling"]
    jobs = [WorldJob(cycling, "0", seed, ("code-a1", "no-book")) for seed in (0, 1)]
    now = iter([0.0, 11.0])
    monkeypatch.setattr(
        "codea1_env.baselines.diagnose.running.time.perf_counter", lambda: next(now)
    )
    left = _Left(jobs)
    runs = [RowRun("cycling", "0", row, seed, 0, seconds, {}) for row, seed, seconds in (("code-a1", 0, 10.0), ("no-book", 0, 1.0))]  # fmt: skip
    assert left.after(runs[0]) == (3, None)
    # One first run and one other.
    assert left.after(runs[1]) == (2, 11.0)
