"""Generation with weights that are laid out once: the same distribution, and never weights of before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_transformers_backend import CHATS, peft_model
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm import packed
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.packed import packed_weights
from codea1_env.agents.llm.transformers_backend import TransformersBackend

pytestmark = pytest.mark.skipif(not packed.can_pack(), reason="this torch cannot lay weights out")
IDS = torch.tensor([[5, 9, 3, 7], [1, 2, 3, 4]])


@pytest.fixture(autouse=True)
def _small_weights_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LEAST", 1)


def logits(model: Any, dtype: str | None = None) -> Any:
    with torch.no_grad(), packed_weights(model, dtype):
        return model(input_ids=IDS).logits.float()


def plain(model: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=IDS).logits


@pytest.mark.parametrize("adapter", ["coder", "tester", None])
def test_the_active_adapter_counts(adapter: str | None) -> None:
    model = peft_model().eval()
    model.set_adapter(adapter or "coder")
    if adapter is None:
        with model.disable_adapter():
            assert torch.allclose(logits(model), plain(model), atol=1e-5)
    else:
        assert torch.allclose(logits(model), plain(model), atol=1e-5)
        assert (logits(model, "bfloat16") - plain(model)).abs().mean() < 0.05
    assert not [part for part in model.modules() if "forward" in vars(part)]


@pytest.mark.parametrize(
    "options", [{"use_dora": True}, {"use_rslora": True}, {"lora_bias": True}], ids=str
)
def test_other_kinds_of_adapters(options: dict[str, Any]) -> None:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", **options)
    model = get_peft_model(tiny_model(), config).eval()
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.3)
    assert torch.allclose(logits(model), plain(model), atol=1e-5)


def add(weight: Any) -> None:
    with torch.no_grad():
        weight.add_(0.5)


def add_to_data(weight: Any) -> None:
    weight.data.add_(0.5)  # leaves no trace in the weight


def replace(weight: Any) -> None:
    weight.data = weight.data + 0.5


@pytest.mark.parametrize(
    ("change", "trained"), [(add, False), (add, True), (add_to_data, True), (replace, False)]
)
def test_a_weight_that_changes_counts_at_once(change: Callable[[Any], None], trained: bool) -> None:
    model = tiny_model().eval().requires_grad_(trained)
    before = logits(model)
    change(model.model.layers[0].mlp.up_proj.weight)
    after = logits(model)
    assert torch.allclose(after, plain(model), atol=1e-5)
    assert not torch.allclose(before, after, atol=1e-3)


def test_layouts_of_frozen_weights_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = peft_model().eval()
    made: list[Any] = []
    pack = packed.pack
    monkeypatch.setattr(packed, "pack", lambda weight: made.append(weight) or pack(weight))
    logits(model)
    number = len(made)
    logits(model)
    assert len(made) == number > 0


def shortfall(model: Any, answer: Any) -> float:
    """By how much a token of a greedy answer misses the likeliest, as transformers computes it."""
    ids = torch.tensor([[*answer.prompt_ids, *answer.completion_ids]])
    with torch.no_grad():
        scores = model(input_ids=ids).logits[0, len(answer.prompt_ids) - 1 : -1]
    chosen = scores.gather(-1, torch.tensor(answer.completion_ids)[:, None])[:, 0]
    return float((scores.max(-1).values - chosen).max())


@pytest.mark.parametrize("compute", [None, "bfloat16"])
def test_likeliest_answers_are_those_of_transformers(compute: Any) -> None:
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    model = peft_model().requires_grad_(False)
    backend = TransformersBackend(model, tiny_tokenizer(), compute_dtype=compute)
    answers = backend.generate(CHATS, sampling, 0, "coder")
    model.set_adapter("coder")
    for answer in answers:
        assert shortfall(model, answer) <= (1e-4 if compute is None else 0.2)


@pytest.mark.parametrize(
    "kind", ["LlamaConfig", "Qwen2Config", "GemmaConfig", "Gemma2Config", "PhiConfig", "Phi3Config"]
)
def test_models_of_other_kinds(kind: str) -> None:
    import transformers

    tokenizer = tiny_tokenizer()
    torch.manual_seed(3)
    config = getattr(transformers, kind)(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = transformers.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    backend = TransformersBackend(model, tokenizer)
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    for answer in backend.generate(CHATS, sampling, 0):
        assert shortfall(model, answer) <= 1e-4


@pytest.mark.parametrize("compute", [None, "bfloat16"])
def test_a_model_that_has_generated_still_learns(compute: Any) -> None:
    model = peft_model()
    model.set_adapter("coder")
    backend = TransformersBackend(model, tiny_tokenizer(), compute_dtype=compute)
    found = []
    for _ in range(2):
        answers = backend.generate(CHATS, SamplingConfig(max_completion_length=8), 0, "coder")
        found.append([answer.completion_ids for answer in answers])
        model.train()
        model(input_ids=IDS, labels=IDS).loss.backward()
        learned = [weight for weight in model.parameters() if weight.grad is not None]
        assert learned
        with torch.no_grad():
            for weight in learned:
                weight -= 100 * weight.grad
                weight.grad = None
    assert found[0] != found[1]
