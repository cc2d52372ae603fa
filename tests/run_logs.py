"""Folders of runs as `codea1 train` writes them, with rows of a test's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codea1_env.training import TrainConfig
from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS, RunFolder


def episode(step: int, task: str = "own/one", **changes: Any) -> dict[str, Any]:
    """An episode whose program a new test breaks, and one of two replayed ones."""
    tests = [
        {"test": "assert one() == 1", "status": "kept", "outcome": "fail"},
        {"test": "assert one(", "status": "invalid", "reason": "is no Python"},
    ]
    history = [
        {"test": "assert one(2) == 2", "status": "kept", "outcome": "pass"},
        {"test": "assert one(3) == 3", "status": "kept", "outcome": "timeout"},
    ]
    suite = {"answer": "assert one() == 1", "reward": 0.375, "validity": 0.25, "adversarial": 0.5, "invalid": 3}  # fmt: skip
    return {
        "step": step, "task_id": task, "program": 0, "problem": "def one(n=1): ...", "answer": "return 2",
        "code": f"def one(n=1):\n    return {step}", "executes": True, "reward": 0.25, "history": history,
        "suites": [{**suite, "tests": tests}], **changes,
    }  # fmt: skip


def write_run(
    folder: Path, episodes: Sequence[dict[str, Any]], *, steps: int = 3, **settings: Any
) -> Path:
    """Write a run of three steps."""
    config = TrainConfig(output_dir=folder, **{"max_steps": 3, **settings})
    run = RunFolder.create(config)
    for step in range(steps + 1):
        held_out = {
            "held_out/pass_rate": 0.5 + step / 10 + config.seed / 100, "held_out/kill_rate": 0.4 + step / 10,
            "held_out/copier_kill_rate": 0.6, "held_out/new_kill_rate": 0.1,
        }  # fmt: skip
        learned = {
            "reward/coder/mean": step / 10,
            "tester/invalid/wrong_value": 1.5,
            "book/size": step,
        }
        run.append(METRICS, [{"step": step, **held_out, **(learned if step else {})}])
        if step:
            run.append(TIMINGS, [{"step": step, "seconds/coder": 1.0, "seconds/judge": 3.0}])
    run.append(EPISODES, episodes)
    run.close()
    return folder
