"""A run that is killed again and again ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS

KILLS = 4
PROGRAM = """
import io, sys
from pathlib import Path
from rich.console import Console
from codea1_env.training import TrainConfig, train

folder = Path(sys.argv[1])
config = TrainConfig(
    output_dir=folder, max_problems=4, problems_per_step=2, num_generations=4, num_suites=2,
    max_steps=24, eval_steps=9, eval_samples=1, save_steps=3, seed=5, workers=1,
)
resume = (folder / "config.toml").exists()
train(config, resume=resume, console=Console(file=io.StringIO()))
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)])


def finish(folder: Path) -> None:
    assert start(folder).wait(timeout=120) == 0


def steps_done(folder: Path) -> int:
    path = folder / METRICS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (TIMINGS, ".lock")
    }


@pytest.mark.slow
def test_kills_leave_no_trace(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(whole)
    moments = random.Random(0)
    for kill in range(KILLS):
        before = steps_done(killed)
        process = start(killed)
        if kill == 2:
            time.sleep(moments.uniform(0.0, 1.5))  # while it starts
        else:  # after some steps, at any moment of the next one or of a checkpoint
            target = before + moments.randrange(1, 5)
            deadline = time.monotonic() + 60
            while steps_done(killed) < target and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL, "it was too quick: raise max_steps"
    finish(killed)
    assert contents(killed) == contents(whole)
    assert {METRICS, EPISODES, "checkpoints/step_24/book.sqlite"} <= contents(whole).keys()
