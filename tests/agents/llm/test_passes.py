"""What is faster and computes the same: passes over answers that grow, and prompts that are computed together."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_transformers_backend import CHATS, peft_model
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.passes import weights_to_write
from codea1_env.agents.llm.shared_prompts import shared_prompts
from codea1_env.agents.llm.transformers_backend import TransformersBackend

IDS = torch.tensor([[5, 9, 3, 7], [1, 2, 3, 4], [5, 9, 8, 2], [5, 9, 3, 11]])


def test_modes_and_active_adapters_stay() -> None:
    model = peft_model().eval()
    model.base_model.model.model.layers[0].train()
    model.base_model.set_adapter(["coder", "tester"])
    before = [module.training for module in model.modules()]
    TransformersBackend(model, tiny_tokenizer()).generate(
        CHATS, SamplingConfig(max_completion_length=2), 0, "tester"
    )
    assert [module.training for module in model.modules()] == before
    assert model.active_adapters == ["coder", "tester"]


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
    "options",
    [
        {}, {"use_rslora": True}, {"alpha_pattern": {"up_proj": 9}}, {"target_modules": ["q_proj", "up_proj"]},
        {"use_dora": True}, {"lora_bias": True},
    ],
    ids=str,
)  # fmt: skip
def test_adapters_of_all_kinds(options: dict[str, Any]) -> None:
    """Those that are sums are merged while answers are written, others are not; weights come back to the bit."""
    from peft import LoraConfig, get_peft_model

    usual = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    model = get_peft_model(tiny_model(), LoraConfig(**(usual | options)))
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.3, generator=generator)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with torch.no_grad(), weights_to_write(model, None):
        layer = model.base_model.model.model.layers[0].self_attn.q_proj
        assert layer.disable_adapters == ("use_dora" not in options and "lora_bias" not in options)
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    for answer in TransformersBackend(model, tiny_tokenizer()).generate(
        CHATS, sampling, 0, "default"
    ):
        assert shortfall(model, answer) <= 1e-4
    after = model.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


KINDS: dict[str, dict[str, Any]] = {
    "LlamaConfig": {"attention_bias": True},
    "MistralConfig": {"sliding_window": 6},
    "Qwen2Config": {},
    "Qwen3Config": {},
    "Gemma2Config": {},
    "Phi3Config": {},
    "GPT2Config": {"n_head": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_other_kinds(kind: str) -> None:
    import transformers

    tokenizer = tiny_tokenizer()
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
        **KINDS[kind],
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for weight in model.parameters():  # biases and norms, too
            weight.data += 0.2 * torch.randn_like(weight)
    model = model.eval().requires_grad_(False)
    backend = TransformersBackend(model, tokenizer)
    sampling = SamplingConfig(temperature=0, max_completion_length=70)
    for answer in backend.generate(CHATS, sampling, 0):
        assert shortfall(model, answer) <= 1e-3


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        {"rope_type": "dynamic", "factor": 4.0},
    ],
    ids=lambda rope: rope["rope_type"],
)
def test_kinds_of_rotations(rope: dict[str, Any]) -> None:
    model = tiny_model(rope_parameters={"rope_theta": 10000.0, **rope}).eval()
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    for answer in TransformersBackend(model, tiny_tokenizer()).generate(CHATS, sampling, 0):
        assert shortfall(model, answer) <= 1e-4


def test_a_model_that_has_generated_still_learns() -> None:
    model = peft_model()
    model.set_adapter("coder")
    backend = TransformersBackend(model, tiny_tokenizer(), compute_dtype="bfloat16")
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


GROUPS = [[5, 9, 12, 40, 8, 8, 7, 30] * 3, [5, 9, 12, 99, 3] * 5]


def batch(rows: list[list[int]], left: int = 2, right: int = 3) -> tuple[Any, Any]:
    """Rows with padding on both sides, as a trainer makes them."""
    longest = max(map(len, rows))
    ids = [[0] * left + row + [0] * (longest - len(row) + right) for row in rows]
    mask = [[0] * left + [1] * len(row) + [0] * (longest - len(row) + right) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


def states(model: Any, rows: list[list[int]], packed: bool) -> tuple[list[Any], int]:
    """Hidden states of each row, and how many tokens were computed."""
    seen = []
    hook = model.model.embed_tokens.register_forward_hook(lambda _, args, __: seen.append(args[0]))
    ids, mask = batch(rows)
    with shared_prompts(model) if packed else nullcontext():
        output = model.model(input_ids=ids, attention_mask=mask)
    hook.remove()
    shown = zip(output.last_hidden_state, mask, strict=True)
    return [state[where.bool()] for state, where in shown], seen[0].numel()


def grouped(size: int) -> list[list[int]]:
    return [[*prompt, 20 + i, *range(50, 50 + 2 * i)] for prompt in GROUPS for i in range(size)]


def test_values_and_gradients_are_those_of_single_rows() -> None:
    model = tiny_model()
    rows = grouped(4)
    plain, tokens = states(model, rows, packed=False)
    weights = [
        torch.randn(each.shape, generator=torch.Generator().manual_seed(1)) for each in plain
    ]
    sum((each * weight).sum() for each, weight in zip(plain, weights, strict=True)).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    packed, fewer = states(model, rows, packed=True)
    assert fewer < tokens / 2
    for one, other in zip(plain, packed, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    sum((each * weight).sum() for each, weight in zip(packed, weights, strict=True)).backward()
    for name, gradient in expected.items():
        torch.testing.assert_close(
            dict(model.named_parameters())[name].grad, gradient, atol=1e-4, rtol=1e-3
        )


TAIL = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 25), TAIL), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_any_rows(parts: list[tuple[int, int, list[int]]]) -> None:
    prompts = [GROUPS[0], GROUPS[1], [7] * 30]
    rows = [prompts[which][:length] + tail for which, length, tail in parts]
    model = tiny_model()
    with torch.no_grad():
        plain, _ = states(model, rows, packed=False)
        packed, _ = states(model, rows, packed=True)
    for one, other in zip(plain, packed, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("use_cache", [False, True])
def test_calls_of_the_whole_model(use_cache: bool) -> None:
    model = tiny_model()
    ids, mask = batch(grouped(4))
    with torch.no_grad():
        plain = model(input_ids=ids, attention_mask=mask).logits
        with shared_prompts(model):
            packed = model(input_ids=ids, attention_mask=mask, use_cache=use_cache).logits
    torch.testing.assert_close(plain[mask.bool()], packed[mask.bool()], atol=1e-4, rtol=1e-3)
