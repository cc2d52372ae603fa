"""`examples/sft_tester.py`: what it trains writes golden tests with a higher probability, and loads elsewhere."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import log_probs, save_tiny

from codea1_env.agents.llm.completions import encode_chat
from codea1_env.agents.llm.prompts import DEFAULT, in_block
from codea1_env.agents.models import load_model, load_tokenizer
from codea1_env.evaluation import train_tests
from codea1_env.problems import load_problems
from codea1_env.spaces import observe

EXAMPLE = Path(__file__).parents[3] / "examples" / "sft_tester.py"


def loss_of_golden_tests(model: Any, tokenizer: Any) -> float:
    """Mean cross entropy of whole answers, to the prompts of a tester."""
    found = []
    for problem in load_problems("starter", "train")[:6]:
        prompt = encode_chat(tokenizer, DEFAULT(observe(problem, code=problem.reference, turn=1)))
        text = in_block("\n".join(train_tests(problem)[:4])) + tokenizer.eos_token
        with torch.no_grad():
            found.append(-log_probs(model, prompt, tokenizer(text)["input_ids"]).mean())
    return float(torch.stack(found).mean())


def test_a_trained_adapter_finds_golden_tests_likelier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft import PeftModel

    monkeypatch.chdir(tmp_path)
    model, folder = save_tiny(tmp_path / "model"), str(tmp_path / "adapter")
    runpy.run_path(str(EXAMPLE))["main"](model, to=folder, max_steps=3)
    base, tokenizer = load_model(Path(model), dtype="float32"), load_tokenizer(Path(model))
    before = loss_of_golden_tests(base, tokenizer)
    after = loss_of_golden_tests(PeftModel.from_pretrained(base, folder), tokenizer)
    assert after < before - 1e-3
