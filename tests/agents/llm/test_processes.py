"""Two processes on one machine learn what one process learns, and play a whole run together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny import save_tiny

from codea1_env.support.logs import read_rows
from codea1_env.training.run_folder import METRICS

HERE = Path(__file__).parent
# `accelerate launch` starts several processes on GPUs only; this is what it calls.
TWO = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d"]
TWO += ["--rdzv_endpoint", "127.0.0.1:0"]


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
    )


def python(*arguments: str) -> str:
    done = started(*arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def last_json(output: str) -> dict[str, Any]:
    (line,) = [line for line in output.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(line)
    return found


LOSSES = ["dapo", "grpo", "nll", "own"]


@pytest.fixture(scope="module")
def learned() -> tuple[dict[str, Any], dict[str, Any]]:
    """What one process learns with each loss, and what two learn: loading takes them longer than learning."""
    script = str(HERE / "one_update.py")
    return last_json(python(script, *LOSSES)), last_json(python(*TWO, script, *LOSSES))


@pytest.mark.parametrize("loss_type", LOSSES)
def test_two_processes_learn_what_one_learns(
    learned: tuple[dict[str, Any], dict[str, Any]], loss_type: str
) -> None:
    alone, together = (each[loss_type] for each in learned)
    assert (alone["processes"], together["processes"]) == (1, 2)
    for name in ("loss", "grad_norm", "weights"):
        assert together[name] == pytest.approx(alone[name], rel=1e-3, abs=1e-4), name


def test_a_run_of_two_processes(tmp_path: Path) -> None:
    model = save_tiny(tmp_path / "model")
    (tmp_path / "run.toml").write_text(
        f"""
        model = "{model}"
        max_problems = 3
        problems_per_step = 2
        num_generations = 2
        num_suites = 2
        num_tests = 1
        lora_rank = 2
        max_steps = 1
        eval_steps = 3
        eval_samples = 1
        save_steps = 1
        [coder]
        player = "llm"
        learning_rate = 1e-3
        [coder.sampling]
        max_prompt_length = 1000
        max_completion_length = 8
        [tester]
        player = "llm"
        learning_rate = 1e-3
        [tester.sampling]
        max_prompt_length = 1000
        max_completion_length = 8
        """
    )
    train = [*TWO, "-m", "codea1_env.cli", "train"]
    folder = tmp_path / "run"
    python(*train, "--config", str(tmp_path / "run.toml"), "--output-dir", str(folder))
    rows = list(read_rows(folder / METRICS))
    assert [row["step"] for row in rows] == [0, 1]
    assert {"coder/loss", "tester/loss"} <= rows[1].keys()
    python(*train, "--resume", "--output-dir", str(folder), "--max-steps", "2")
    assert [row["step"] for row in read_rows(folder / METRICS)] == [0, 1, 2]
