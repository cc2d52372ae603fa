"""What memory a model takes, by its shape alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import save_tiny

from codea1_env.agents.llm.memory import KNOWN, Numbers, learning, resident, shape_of, writing
from codea1_env.agents.models import load_model

QWEN = KNOWN["Qwen/Qwen2.5-Coder-1.5B-Instruct"]
WHOLE = Numbers("bfloat16", "bfloat16", lora_rank=0)
ADAPTERS = Numbers("bfloat16", "bfloat16", lora_rank=64)
UPDATE = {"rows": 4, "length": 1000, "tokens": 4000, "answers": 2000}


@pytest.mark.parametrize(
    ("model", "billions"),
    [("SmolLM2-135M", 0.1345), ("1.5B", 1.5437), ("3B", 3.0859), ("7B", 7.6156)],
)
def test_published_numbers_of_parameters(model: str, billions: float) -> None:
    (shape,) = [shape for name, shape in KNOWN.items() if model in name]
    assert round(shape.parameters / 1e9, 4) == billions


def test_a_shape_counts_the_weights_of_a_model_and_its_adapter(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    folder = Path(save_tiny(tmp_path))
    shape = shape_of(folder)
    assert shape is not None
    model = load_model(folder, dtype="float32", device="cpu")
    assert shape.parameters == sum(weight.numel() for weight in model.parameters())
    adapted = get_peft_model(
        model, LoraConfig(r=3, target_modules="all-linear", task_type="CAUSAL_LM")
    )
    trained = sum(each.numel() for each in adapted.parameters() if each.requires_grad)
    assert shape.adapter(3) == trained
    assert shape_of(tmp_path / "nothing") is None


def test_what_two_whole_players_hold() -> None:
    count = QWEN.parameters
    assert resident(QWEN, WHOLE, 2, 2, references=2) == {
        "weights": 8 * count,
        "optimizer (two moments)": 16 * count,
        "reference model": 8 * count,
    }
    several = Numbers("bfloat16", "bfloat16", 0, processes=2)
    assert resident(QWEN, several, 2, 2, references=0)["exchange of gradients"] == 8 * count


def test_adapters_share_a_model_that_is_its_own_reference() -> None:
    held = resident(QWEN, ADAPTERS, 2, 2, references=2)
    trained = QWEN.adapter(64)
    assert held == {
        "weights": 2 * QWEN.parameters + 8 * trained,
        "optimizer (two moments)": 16 * trained,
    }
    both = Numbers("float32", "bfloat16", 64)
    assert resident(QWEN, both, 2, 2, references=0)["weights"] > 6 * QWEN.parameters


def test_what_makes_an_update_smaller() -> None:
    def total(numbers: Numbers = WHOLE, checkpointing: bool = True, **changes: int) -> float:
        sizes = {**UPDATE, **changes}
        return sum(learning(QWEN, numbers, **sizes, checkpointing=checkpointing).values())

    assert total(rows=2, tokens=2000, answers=1000) < total()
    assert total(ADAPTERS) < total()
    assert total(checkpointing=False) > 1.5 * total()


def test_the_cache_of_keys_and_values() -> None:
    parts = writing(QWEN, ADAPTERS, rows=8, prompts=1, prompt=100, answer=50)
    # keys and values, of two heads with 128 numbers of 2 bytes, in 28 layers
    assert parts["KV cache"] == 8 * 150 * 2 * 2 * 128 * 2 * 28
