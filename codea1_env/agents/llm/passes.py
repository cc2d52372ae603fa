"""Passes of a transformers model over prompts, and over answers that grow.

Equal prompts are computed once, and so is what all of them begin with. On a processor keys and values have places for
the whole answer, and queries that share keys are multiplied together: transformers copies keys and values for each token.
With these SmolLM2 writes 62 and 150 tokens/s (8 and 32 answers), `generate` 33 and 27 (benchmarks/generation.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.shared_prompts import (
    GROUPED,
    common_beginning,
    pack,
    suits,
    without_adapter,
)
from codea1_env.support.extras import Lazy, require

if TYPE_CHECKING:
    from torch import Tensor

torch: Any = Lazy("torch")
transformers: Any = Lazy("transformers")


class Growing:
    """Answers to prompts while they grow, a row for each, by at most `length` tokens.

    `logits` are those of the next token: [rows, vocabulary].
    """

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]], length: int) -> None:
        self._model, self._placed = model, suits(model)
        places = {prompt: i for i, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        ids, mask = _padded(list(places), model)
        self._cache, self.logits = _read(model, ids, mask)
        self._used = ids.shape[1]
        self._whole = self._used + length
        self._mask = torch.nn.functional.pad(mask, (0, length))
        self._positions = mask.sum(-1)
        rows = [places[tuple(prompt)] for prompt in prompts]
        self.select(torch.tensor(rows, device=model.device))

    def select(self, kept: Tensor) -> None:
        """Keep these rows; a row may be taken several times."""
        self.logits, self._mask = self.logits[kept], self._mask[kept]
        self._positions = self._positions[kept]
        if not self._placed:
            self._cache.batch_select_indices(kept)
            return
        new = transformers.StaticCache(self._model.config, max_cache_len=self._whole)
        for number, layer in enumerate(self._cache.layers):
            known = (each[kept, :, : self._used] for each in (layer.keys, layer.values))
            new.update(*known, number)
        self._cache = new

    def step(self, tokens: Tensor) -> None:
        """Append a token to each row, and compute the logits of the next."""
        self._mask[:, self._used] = 1
        self._used += 1
        self.logits = self._model(
            input_ids=tokens[:, None],
            attention_mask=self._mask if self._placed else self._mask[:, : self._used],
            position_ids=self._positions[:, None],
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        self._positions = self._positions + 1


def _padded(prompts: Sequence[tuple[int, ...]], model: Any) -> tuple[Tensor, Tensor]:
    """Tokens and mask of prompts, with padding before the rest of each, so that all answers begin at the same place."""
    longest, common = max(map(len, prompts)), 0
    if suits(model):  # padding stands behind what all begin with
        # The first and the last in alphabetical order differ earliest. Every prompt keeps a token of its own.
        common = common_beginning(min(prompts), max(prompts))
        common = min(common, min(map(len, prompts)) - 1)
    rows = [[*each[:common], *[-1] * (longest - len(each)), *each[common:]] for each in prompts]
    ids = torch.tensor(rows).to(model.device)
    return ids.clamp(min=0), (ids >= 0).long()


def _read(model: Any, ids: Tensor, mask: Tensor) -> tuple[Any, Tensor]:
    """Keys and values of rows of tokens, and logits behind the last; on a processor equal beginnings are computed once."""
    packed = pack(ids, mask, model) if suits(model) else None
    if packed is None:
        positions, sees = (mask.cumsum(-1) - 1).clamp(min=0), mask
        # An index. For 1 transformers takes a slice, for which torch copies the head once for each row.
        last = torch.tensor([ids.shape[1] - 1], device=model.device)
    else:
        ids, sees, positions = packed.ids, packed.sees, packed.positions
        ends = packed.places[:, -1]
        last, place = (ends % ids.shape[1]).unique(return_inverse=True)
    output = model(
        input_ids=ids,
        attention_mask=sees,
        position_ids=positions,
        use_cache=True,
        logits_to_keep=last,
    )
    cache = getattr(output, "past_key_values", None)
    if cache is None:
        raise BackendError(
            f"Expect a decoder, which keeps keys and values of what it has read, actually: {type(model).__name__}. Choose "
            "another model."
        )
    if packed is None:
        return cache, output.logits[:, -1]
    for layer in cache.layers:
        layer.keys, layer.values = (
            each.transpose(1, 2).flatten(0, 1)[packed.places].transpose(1, 2)
            for each in (layer.keys, layer.values)
        )
    return cache, output.logits[ends // ids.shape[1], place]


@contextmanager
def grouped_attention(model: Any) -> Iterator[None]:
    """Let a model on a processor that has torch's attention multiply queries of one token in groups."""
    config = without_adapter(model).config
    if model.device.type != "cpu" or config._attn_implementation != "sdpa":
        yield
        return
    transformers.AttentionInterface.register(GROUPED, _attend)
    mask = require("transformers.masking_utils").sdpa_mask
    transformers.AttentionMaskInterface.register(GROUPED, mask)
    config._attn_implementation = GROUPED
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **more: Any
) -> tuple[Tensor, None]:
    """Attention of queries [rows, heads, tokens, size], with keys and values [rows, fewer heads, places, size]."""
    scaling = more.get("scaling")
    if query.shape[2] > 1 or scaling is None or more.get("position_bias") is not None:
        sdpa = require("transformers.integrations.sdpa_attention").sdpa_attention_forward
        return sdpa(module, query, key, value, attention_mask, **more)[0], None
    grouped = query[:, :, 0].mul(scaling).unflatten(1, (key.shape[1], -1))
    scores = (grouped @ key.transpose(-1, -2)).float()
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, float("-inf"))
    found = scores.softmax(-1).to(value.dtype) @ value
    return found.flatten(1, 2)[:, None], None


@contextmanager
def weights_to_write(model: Any, dtype: str | None) -> Iterator[None]:
    """Have all weights in one format inside (None: their own), and on a processor with the active LoRA adapter in them.

    So nothing is converted for each token, and half of the products are spared. The sum is computed in float32.
    """
    wanted = None if dtype is None else getattr(torch, dtype)
    own: list[tuple[Any, Any]] = []
    for layer in _sums(model):
        weight, names = layer.get_base_layer().weight, layer.active_adapters
        added = [layer.get_delta_weight(name).float() for name in names if name in layer.lora_A]
        if added:
            own.append((weight, weight.data))
            weight.data = (weight.data.float() + sum(added)).to(wanted or weight.dtype)
    without = model.disable_adapter() if own else nullcontext()
    for weight in model.parameters():
        if wanted is not None and weight.is_floating_point() and weight.dtype != wanted:
            own.append((weight, weight.data))
            weight.data = weight.data.to(wanted)
    try:
        with without:
            yield
    finally:
        for weight, data in own:
            weight.data = data


def _sums(model: Any) -> list[Any]:
    """Layers of an adapter, on a processor, if each only adds a matrix to its weight now: others stay apart."""
    if model.device.type != "cpu" or not hasattr(model, "disable_adapter"):
        return []
    plain = require("peft.tuners.lora.layer").Linear
    layers = [each for each in model.modules() if hasattr(each, "lora_A")]
    for each in layers:
        more = each.lora_variant or any(each.lora_bias.values())
        if type(each) is not plain or more or each.merged or each.disable_adapters:
            return []
    return layers
