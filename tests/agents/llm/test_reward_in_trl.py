"""The reward functions that README and docs/integrations.md show, in a trainer of TRL's, with a tiny model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tiny import save_tiny

ROOT = Path(__file__).parents[3]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"


def shown(page: str) -> str:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )
    [block] = [each for each in blocks if "def reward(" in each]
    return str(block)


@pytest.mark.parametrize("page", ["README.md", "docs/integrations.md"])
def test_a_reward_function_of_ten_lines(page: str) -> None:
    function = re.search(r"^def reward.*?\n\n*(?=\S|\Z)", shown(page), re.DOTALL | re.MULTILINE)
    assert function is not None
    assert len(function[0].strip().splitlines()) <= 10
    names: dict[str, Any] = {}
    exec("import codea1_env\n" + function[0], names)
    tests = ["assert is_even(2) == True", "assert is_even(3) == False"]
    answers = [
        "```python\ndef is_even(n):\n    return n % 2 == 0\n```",
        "def is_even(n): return True",
        "",
    ]
    chats = [[{"role": "assistant", "content": each}] for each in answers]
    paid = names["reward"](chats, ["starter/is_even"] * 3, [tests] * 3, prompts=None)
    assert paid == [1.0, 0.5, 0.0]


@pytest.mark.slow
def test_a_trainer_learns_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = shown("docs/integrations.md")
    assert MODEL in text
    text = text.replace(MODEL, save_tiny(tmp_path / "tiny"))
    text = text.replace("max_steps=3", "max_steps=2, max_completion_length=8, report_to='none'")
    names: dict[str, Any] = {}
    exec(text, names)
    names["trainer"].train()
    rewards = [each["reward"] for each in names["trainer"].state.log_history if "reward" in each]
    assert names["trainer"].state.global_step == 2
    assert rewards == [0.0] * len(rewards)  # bytes at random are no programs
