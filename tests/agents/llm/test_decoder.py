"""What is faster and computes the same: passes of the decoder, and prompts that are computed together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_transformers_backend import CHATS, peft_model
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm import packed
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.decoder import Decoder, suits
from codea1_env.agents.llm.decoding import Decoding
from codea1_env.agents.llm.sampling import read_prompts
from codea1_env.agents.llm.shared_prompts import shared_prompts
from codea1_env.agents.llm.transformers_backend import TransformersBackend

IDS = torch.tensor([[5, 9, 3, 7], [1, 2, 3, 4], [5, 9, 8, 2], [5, 9, 3, 11]])


def logits(model: Any, dtype: str | None = None) -> Any:
    """Of the last token, by a pass of the decoder behind the others."""
    with torch.no_grad():
        assert suits(model)
        decoder = Decoder(model, dtype and getattr(torch, dtype))
        decoding = Decoding(decoder, read_prompts(model, IDS[:, :-1].tolist()))
        decoding.step(IDS[:, -1])
        return decoding.logits.float()


def plain(model: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=IDS).logits[:, -1]


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


@pytest.mark.parametrize("options", [{"use_rslora": True}, {"alpha_pattern": {"up_proj": 9}}])
def test_other_scales_of_adapters(options: dict[str, Any]) -> None:
    assert torch.allclose(logits(other_adapter(options)), plain(other_adapter(options)), atol=1e-5)


def test_an_adapter_of_some_layers() -> None:
    model = other_adapter({"target_modules": ["q_proj", "v_proj", "up_proj", "lm_head"]})
    assert torch.allclose(logits(model), plain(model), atol=1e-5)


def other_adapter(options: dict[str, Any]) -> Any:
    from peft import LoraConfig, get_peft_model

    usual = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    model = get_peft_model(tiny_model(), LoraConfig(**usual | options)).eval()
    generator = torch.Generator().manual_seed(2)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data.normal_(std=0.3, generator=generator)
    return model


@pytest.mark.parametrize("options", [{"use_dora": True}, {"lora_bias": True}], ids=str)
def test_adapters_that_are_more_than_two_products(options: dict[str, Any]) -> None:
    model = other_adapter(options)
    assert not suits(model)
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    for answer in TransformersBackend(model, tiny_tokenizer()).generate(
        CHATS, sampling, 0, "default"
    ):
        assert shortfall(model, answer) <= 1e-4


@pytest.mark.parametrize("exact", [True, False])
def test_matrices_that_float16_has_are_kept_so(exact: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(40, 64, generator=generator)
    weight = weight.bfloat16().float() if exact else weight
    bias, states = torch.randn(40, generator=generator), torch.randn(3, 64, generator=generator)
    assert packed._fits_half(weight) == exact
    assert not packed._fits_half(weight * 1e6)
    expected = torch.nn.functional.linear(states, weight, bias)
    for lasting in (False, True):
        found = packed.laid_out(weight, bias, lasting=lasting)(states)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_layouts_in_float16() -> None:
    model = peft_model(base=tiny_model().bfloat16().float()).eval().requires_grad_(False)
    with torch.no_grad():
        decoding = Decoding(Decoder(model, lasting=True), read_prompts(model, IDS[:, :-1].tolist()))
        decoding.step(IDS[:, -1])
        assert torch.allclose(decoding.logits, plain(model), atol=1e-5)
    assert torch.allclose(logits(model), plain(model), atol=1e-5)


def add(weight: Any) -> None:
    with torch.no_grad():
        weight.add_(0.5)


def add_to_data(weight: Any) -> None:
    weight.data.add_(0.5)  # leaves no trace in the weight


def replace(weight: Any) -> None:
    weight.data = weight.data + 0.5


@pytest.mark.parametrize(
    ("change", "trained"), [(add, False), (add_to_data, True), (replace, False)]
)
def test_a_weight_that_changes_counts_at_once(change: Callable[[Any], None], trained: bool) -> None:
    model = tiny_model().eval().requires_grad_(trained)
    before = logits(model)
    change(model.model.layers[0].mlp.up_proj.weight)
    after = logits(model)
    assert torch.allclose(after, plain(model), atol=1e-5)
    assert not torch.allclose(before, after, atol=1e-3)


def train(model: Any, **options: Any) -> None:
    """One step that leaves no trace in the weights' versions."""
    model.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True, **options)
    model(input_ids=IDS, labels=IDS).loss.backward()
    optimizer.step()
    model.requires_grad_(False)


def change_bias(model: Any) -> None:
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.bias.add_(1.0)


@pytest.mark.parametrize("change", [train, change_bias])
def test_changes_of_frozen_weights_count(change: Callable[[Any], None]) -> None:
    model = tiny_model(attention_bias=True).eval().requires_grad_(False)
    logits(model)
    change(model)
    assert torch.allclose(logits(model), plain(model), atol=1e-4)


def test_a_merged_adapter_counts() -> None:
    model = peft_model().eval()
    backend = TransformersBackend(model, tiny_tokenizer())
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    backend.generate(CHATS, sampling, 0, "coder")
    whole = model.merge_and_unload(adapter_names=["coder"]).requires_grad_(False)
    assert torch.allclose(logits(whole), plain(whole), atol=1e-4)


def hook(model: Any) -> None:
    model.model.layers[0].register_forward_hook(lambda _, __, output: output + 1)


def own_forward(model: Any) -> None:
    usual = model.lm_head.forward
    model.lm_head.forward = lambda states: usual(states) * 0.3


def other_scale(model: Any) -> None:
    model.model.layers[1].self_attn.scaling *= 3


def other_norm(model: Any) -> None:
    model.model.norm = torch.nn.LayerNorm(32)


@pytest.mark.parametrize("change", [hook, own_forward, other_scale, other_norm])
def test_models_with_parts_of_their_own(change: Callable[[Any], None]) -> None:
    model = tiny_model().eval()
    change(model)
    assert not suits(model)
    sampling = SamplingConfig(temperature=0, max_completion_length=8)
    for answer in TransformersBackend(model, tiny_tokenizer()).generate(CHATS, sampling, 0):
        assert shortfall(model, answer) <= 1e-4


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


KINDS = {
    "LlamaConfig": {"attention_bias": True},
    "MistralConfig": {"sliding_window": None},
    "Qwen2Config": {},
    "Qwen3Config": {},
    "Gemma2Config": None,
    "Phi3Config": None,
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
        **KINDS[kind] or {},
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for weight in model.parameters():  # biases and norms, too
            weight.data += 0.2 * torch.randn_like(weight)
    model = model.eval().requires_grad_(False)
    assert suits(model) == (KINDS[kind] is not None)
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
    assert suits(model) == (rope["rope_type"] != "dynamic")
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
