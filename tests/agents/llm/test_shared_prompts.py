"""Rows that begin alike are computed together: same values, same gradients, fewer tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_model

from codea1_env.agents.llm.fast_on_cpu import _packs, shared_prompts

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
    try:
        if packed:
            with shared_prompts(model):
                output = model.model(input_ids=ids, attention_mask=mask)
        else:
            output = model.model(input_ids=ids, attention_mask=mask)
    finally:
        hook.remove()
    found = [
        state[seen_.bool()] for state, seen_ in zip(output.last_hidden_state, mask, strict=True)
    ]
    return found, seen[0].numel()


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


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 25),
            st.lists(st.integers(1, 9), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_rows(parts: list[tuple[int, int, list[int]]]) -> None:
    prompts = [GROUPS[0], GROUPS[1], [7] * 30]
    rows = [prompts[which][:length] + tail for which, length, tail in parts]
    model = tiny_model()
    with torch.no_grad():
        plain, _ = states(model, rows, packed=False)
        packed, _ = states(model, rows, packed=True)
    for one, other in zip(plain, packed, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_rows_that_have_nothing_in_common_are_left_alone() -> None:
    assert [pack.rows for pack in _packs([[i] * 20 for i in range(5)], 32)] == [
        [i] for i in range(5)
    ]


def test_groups_that_share_an_example_stay_groups() -> None:
    example = list(range(100, 200))
    rows = [example + [group] * 60 + [i] * 20 for group in (1, 2) for i in range(3, 7)]
    packs = _packs(rows, hidden_size=32)
    assert sorted(sorted(pack.rows) for pack in packs) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [pack.length for pack in packs] == [160 + 4 * 20] * 2


@pytest.mark.parametrize("changes", [{"attention_dropout": 0.1}, {"attn_implementation": "eager"}])
def test_other_models_are_left_as_they_are(changes: dict[str, Any]) -> None:
    implementation = changes.pop("attn_implementation", None)
    model = tiny_model(**changes)
    if implementation:
        model.set_attn_implementation(implementation)
    with shared_prompts(model):
        assert "forward" not in vars(model.model)


@pytest.mark.parametrize("use_cache", [False, True])
def test_calls_of_the_whole_model(use_cache: bool) -> None:
    model = tiny_model()
    ids, mask = batch(grouped(4))
    with torch.no_grad():
        plain = model(input_ids=ids, attention_mask=mask).logits
        with shared_prompts(model):
            packed = model(input_ids=ids, attention_mask=mask, use_cache=use_cache).logits
    torch.testing.assert_close(plain[mask.bool()], packed[mask.bool()], atol=1e-4, rtol=1e-3)
