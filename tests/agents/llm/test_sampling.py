"""Drawing answers: from the right distribution, with the right probabilities, whatever the batch."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import log_probs, tiny_model

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.computing import Computing, choose_computing, fastest_format
from codea1_env.agents.llm.passes import grouped_attention, weights_to_write
from codea1_env.agents.llm.sampling import draw_noise, log_probabilities, sample
from codea1_env.support.machine import usable_cores
from codea1_env.support.start import spin_briefly

PROMPTS = [[5, 9, 12, 40], [7, 8], [5, 9, 12, 40], [33, 21, 60, 70, 80, 90, 100]]
LENGTH = 12


def draw(
    prompts: list[list[int]],
    seed: int = 0,
    model: Any = None,
    end_ids: tuple[int, ...] = (),
    stopped: Any = lambda ids: False,
    grouped: bool = True,
    **changes: Any,
) -> list[Any]:
    sampling = SamplingConfig(max_completion_length=LENGTH, **changes)
    noise = draw_noise(len(prompts), LENGTH, seed)
    model = tiny_model().eval() if model is None else model
    with torch.no_grad(), grouped_attention(model) if grouped else nullcontext():
        return sample(model, prompts, sampling, noise, end_ids=end_ids, stopped=stopped)


@pytest.mark.parametrize("grouped", [False, True])
def test_probabilities_are_those_of_the_whole_text(grouped: bool) -> None:
    model = tiny_model().eval()
    answers = draw(PROMPTS, model=model, temperature=0.7, grouped=grouped)
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        assert len(answer.ids) == LENGTH
        expected = log_probs(model, prompt, answer.ids, 0.7).detach()
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-4, rtol=0)


def test_tokens_come_as_often_as_their_probability_says() -> None:
    model = tiny_model().eval()
    with torch.no_grad():
        model.lm_head.weight *= 40  # a distribution that is far from uniform
        expected = model(input_ids=torch.tensor([PROMPTS[1]])).logits[0, -1].softmax(-1)
    rows = 4000
    answers = draw([PROMPTS[1]] * rows, 3, model, stopped=lambda ids: True)
    counts = torch.bincount(torch.tensor([answer.ids[0] for answer in answers]), minlength=261)
    assert expected.max() > 0.05
    error = (counts / rows - expected).abs()
    assert error.max() < 5 * (expected.max() / rows) ** 0.5


def test_same_seed_same_answers_and_another_seed_others() -> None:
    state = torch.get_rng_state()
    first, again, other = draw(PROMPTS, seed=1), draw(PROMPTS, seed=1), draw(PROMPTS, seed=2)
    assert [answer.ids for answer in first] == [answer.ids for answer in again]
    assert [answer.ids for answer in first] != [answer.ids for answer in other]
    assert first[0].ids != first[2].ids  # equal prompts are answered independently
    assert torch.equal(state, torch.get_rng_state())


def test_rows_that_end_do_not_change_the_others() -> None:
    whole = draw(PROMPTS)
    ends = {whole[0].ids[2], whole[1].ids[5]}
    for complete, answer in zip(whole, draw(PROMPTS, end_ids=tuple(ends)), strict=True):
        places = [i for i, token in enumerate(complete.ids) if token in ends]
        length = places[0] + 1 if places else LENGTH
        assert answer.ids == complete.ids[:length]
        assert answer.ended == bool(places)


def test_temperature_zero_takes_the_likeliest() -> None:
    model = tiny_model().eval()
    (answer,) = draw([PROMPTS[0]], model=model, temperature=0)
    ids = list(PROMPTS[0])
    for token in answer.ids:
        with torch.no_grad():
            assert token == int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(token)
    assert answer.logprobs == [0.0] * LENGTH


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"top_k": 2}, [0, 1]),
        ({"top_k": 100}, [0, 1, 2, 3]),
        ({"top_p": 0.6}, [0, 1]),
        ({"top_p": 0.01}, [0]),
        ({"top_k": 3, "top_p": 0.99}, [0, 1, 2]),
    ],
)
def test_truncated_distributions_keep_the_likeliest(changes, kept) -> None:
    probabilities = torch.tensor([0.5, 0.25, 0.15, 0.1])
    logprobs = log_probabilities(probabilities.log()[None], SamplingConfig(**changes))[0]
    assert [i for i in range(4) if logprobs[i] > -torch.inf] == kept
    torch.testing.assert_close(
        logprobs[kept].exp(), probabilities[kept] / probabilities[kept].sum()
    )


@pytest.mark.parametrize(
    ("window", "grouped"), [(None, False), (None, True), (6, False), (6, True)]
)
def test_prompts_with_a_common_beginning(window: int | None, grouped: bool) -> None:
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=261,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=window,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MistralForCausalLM(config).eval()
    prompts = [[5, 9, 12], [5, 9, 12, 40, 41, 42, 43, 44, 45], [5, 9, 12, 7], [5, 9, 12]]
    for prompt, answer in zip(prompts, draw(prompts, model=model, grouped=grouped), strict=True):
        expected = log_probs(model, prompt, answer.ids).detach()
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-3, rtol=0)


SOME = st.lists(st.integers(2, 9), min_size=1, max_size=6)


@given(st.lists(SOME, min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_grouped_attention_draws_what_torch_s_draws(
    prompts: list[list[int]], times: int, seed: int
) -> None:
    ends = tuple(range(0, 261, 9))  # rows end here and there
    one, other = (
        draw(prompts * times, seed, end_ids=ends, grouped=grouped, temperature=0.9)
        for grouped in (False, True)
    )
    assert [each.ids for each in one] == [each.ids for each in other]
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left.logprobs, right.logprobs, atol=1e-4, rtol=0)


CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("flags : fpu avx2 avx512f avx512_bf16 sse", "bfloat16"),
        ("flags : fpu avx2 amx_tile amx_bf16", "bfloat16"),
        ("Features : fp asimd bf16 i8mm", "bfloat16"),
        ("flags : fpu avx2 avx512f avx512vl", "float32"),
        ("flags : fpu no_bf16", "float32"),
        (None, "float32"),
    ],
)
def test_the_format_follows_from_the_flags(tmp_path: Path, flags: str | None, dtype: str) -> None:
    file = tmp_path / "cpuinfo"
    if flags is not None:
        file.write_text(flags)
    assert fastest_format(file) == dtype


def test_what_is_asked_for_is_taken() -> None:
    assert choose_computing("cpu", dtype="bfloat16", threads=1) == Computing("bfloat16", 1)
    assert choose_computing("cpu").threads == usable_cores()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dtype": "float16"}, "float32 or bfloat16 on a processor.*float16"),
        ({"dtype": "int8"}, "one of auto"),
        ({"threads": CORES + 1}, f"from 1 to {CORES}"),
    ],
)
def test_what_this_machine_does_not_have(asked: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_computing("cpu", **asked)


def test_weights_change_their_format_and_come_back() -> None:
    model = tiny_model()
    model.lm_head.weight.requires_grad_(False)
    before = {name: weight.data_ptr() for name, weight in model.named_parameters()}
    with weights_to_write(model, "bfloat16"):
        assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert {n: w.data_ptr() for n, w in model.named_parameters()} == before
    with pytest.raises(RuntimeError, match="no"), weights_to_write(model, "bfloat16"):
        raise RuntimeError("no")
    assert {n: w.data_ptr() for n, w in model.named_parameters()} == before
    with weights_to_write(model, None):
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("said", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY", None])
def test_threads_wait_briefly_unless_the_user_has_said_how(monkeypatch, said) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "7")  # which is undone at the end, whatever happens
        if name != said:
            monkeypatch.delenv(name)
    spin_briefly()
    assert os.environ.get("GOMP_SPINCOUNT") == {"GOMP_SPINCOUNT": "7", None: "1000"}.get(said)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "max 100000\n"}, CORES),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, CORES),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "nonsense"}, CORES),
        ({}, CORES),
    ],
)
def test_a_container_has_processor_time_for_so_many_cores(tmp_path, files, cores) -> None:
    (tmp_path / "cpu").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert usable_cores(tmp_path) == cores
