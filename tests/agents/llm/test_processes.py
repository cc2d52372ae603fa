"""Two processes on one machine learn what one process learns, and play on together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_update import LOSSES, learn
from tiny import save_tiny

from codea1_env.cli.app import run
from codea1_env.support.logs import read_rows
from codea1_env.training.run_folder import METRICS

SCRIPT = str(Path(__file__).parent / "one_update.py")
# `accelerate launch` starts several processes on GPUs only; this is what it calls.
TWO = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d"]
TWO += ["--rdzv_endpoint", "127.0.0.1:0"]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_and_go_on_with_its_run(tmp_path: Path) -> None:
    sampling = "sampling = {max_prompt_length = 1000, max_completion_length = 8}"
    player = f'player = "llm"\nlearning_rate = 1e-3\n{sampling}\n'
    sizes = dict.fromkeys(("num_generations", "num_suites", "lora_rank"), 2)
    sizes |= dict.fromkeys(("problems_per_step", "max_problems"), 2)
    sizes |= dict.fromkeys(("num_tests", "max_steps", "eval_samples", "save_steps"), 1)
    lines = [f"{name} = {number}\n" for name, number in (sizes | {"eval_steps": 3}).items()]
    (tmp_path / "run.toml").write_text(
        f'model = "{save_tiny(tmp_path / "model")}"\n{"".join(lines)}'
        f"[coder]\n{player}[tester]\n{player}"
    )
    folder = tmp_path / "run"
    assert run(["train", "--config", f"{tmp_path}/run.toml", "--output-dir", str(folder)]) == 0
    resume = ["train", "--resume", "--output-dir", str(folder), "--max-steps", "2"]
    done = subprocess.run(
        [sys.executable, *TWO, SCRIPT, *resume],
        capture_output=True,
        text=True,
        timeout=500,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [each for each in done.stdout.splitlines() if each[:6] == '{"dapo']
    together = json.loads(line)
    for loss in LOSSES:
        alone = learn(loss)
        assert (alone["processes"], together[loss]["processes"]) == (1, 2)
        for name in ("loss", "grad_norm", "weights"):
            assert together[loss][name] == pytest.approx(alone[name], rel=1e-3, abs=1e-4)
    rows = list(read_rows(folder / METRICS))
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert {"coder/loss", "tester/loss"} <= rows[2].keys()
