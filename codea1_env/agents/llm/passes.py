"""Passes of a transformers model over prompts, and over answers that grow.

Equal prompts are computed once, and so is what all of them begin with. On a processor keys and values have places for
the whole answer, and queries that share keys are multiplied together: transformers copies keys and values for each token.
With these SmolLM2 writes 62 and 150 tokens/s (8 and 32 answers), `generate` 33 and 27 (benchmarks/generation.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.shared_prompts import (
    GROUPED,
    Packed,
    common_beginning,
    pack,
    suits,
    without_adapter,
)
from codea1_env.support.extras import require

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ReadPrompts:
    """What a model has computed of different prompts."""

    cache: Any
    """Keys and values, as transformers keeps them."""
    logits: Tensor
    """Of the next token: [prompts, vocabulary]."""
    mask: Tensor
    """1 for tokens, 0 for padding: [prompts, tokens]."""
    rows: Tensor
    """Prompt of each answer: [answers]."""


class Growing:
    """Answers while they grow, a row for each.

    Args:
        model: A causal language model of transformers, in evaluation mode.
        read: What it has computed of the prompts.
        length: Tokens of an answer at most.

    Attributes:
        logits: Of the next token: [rows, vocabulary].
    """

    def __init__(self, model: Any, read: ReadPrompts, length: int) -> None:
        self._model = model
        self._placed = model.device.type == "cpu" and looks_back_at_all(model)
        self._used = read.mask.shape[-1]
        self._whole = self._used + length
        self._mask = require("torch").nn.functional.pad(read.mask, (0, length))
        self._cache, self.logits = read.cache, read.logits
        self._positions = read.mask.sum(-1)
        self.select(read.rows)

    def select(self, kept: Tensor) -> None:
        """Keep these rows; a row may be taken several times."""
        self.logits, self._mask = self.logits[kept], self._mask[kept]
        self._positions = self._positions[kept]
        if not self._placed:
            self._cache.batch_select_indices(kept)
            return
        transformers: Any = require("transformers")
        old, self._cache = (
            self._cache,
            transformers.StaticCache(self._model.config, max_cache_len=self._whole),
        )
        for number, layer in enumerate(old.layers):
            known = (each[kept, :, : self._used] for each in (layer.keys, layer.values))
            self._cache.update(*known, number)

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


def looks_back_at_all(model: Any) -> bool:
    """Whether each layer looks back at all tokens, and no layer only at the last ones."""
    transformers: Any = require("transformers")
    cache_utils: Any = require("transformers.cache_utils")
    cache = transformers.DynamicCache(config=model.config)
    return all(type(layer) is cache_utils.DynamicLayer for layer in cache.layers)


@contextmanager
def grouped_attention(model: Any) -> Iterator[None]:
    """Let a model on a processor that has torch's attention multiply queries of one token in groups."""
    config = without_adapter(model).config
    if model.device.type != "cpu" or config._attn_implementation != "sdpa":
        yield
        return
    transformers: Any = require("transformers")
    masks: Any = require("transformers.masking_utils")
    transformers.AttentionInterface.register(GROUPED, _attend)
    transformers.AttentionMaskInterface.register(GROUPED, masks.sdpa_mask)
    config._attn_implementation = GROUPED
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **more: Any
) -> tuple[Tensor, None]:
    """Attention of queries [rows, heads, tokens, size], with keys and values [rows, fewer heads, places, size]."""
    sdpa: Any = require("transformers.integrations.sdpa_attention")
    scaling = more.get("scaling")
    if query.shape[2] > 1 or scaling is None or more.get("position_bias") is not None:
        found, _ = sdpa.sdpa_attention_forward(module, query, key, value, attention_mask, **more)
        return found, None
    grouped = query[:, :, 0].mul(scaling).unflatten(1, (key.shape[1], -1))
    scores = (grouped @ key.transpose(-1, -2)).float()
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, float("-inf"))
    found = scores.softmax(-1).to(value.dtype) @ value
    return found.flatten(1, 2)[:, None], None


@contextmanager
def weights_in(model: Any, dtype: str | None) -> Iterator[None]:
    """Have all weights in another format inside, so that nothing is converted for each token; None changes nothing."""
    wanted = None if dtype is None else getattr(require("torch"), dtype)
    own: list[tuple[Any, Any]] = []
    for weight in model.parameters():
        if wanted is not None and weight.is_floating_point() and weight.dtype != wanted:
            own.append((weight, weight.data))
            weight.data = weight.data.to(wanted)
    try:
        yield
    finally:
        for weight, data in own:
            weight.data = data


@contextmanager
def merged_adapter(model: Any, dtype: str | None) -> Iterator[None]:
    """Have the active LoRA adapter of a model on a processor in its weights inside, which spares half of the products.

    The sum is computed in float32 and rounded to the weights' format. Adapters that are more than two products stay apart.
    """
    if model.device.type != "cpu" or not hasattr(model, "disable_adapter"):
        yield
        return
    linear = require("peft.tuners.lora.layer").Linear
    layers = [each for each in model.modules() if hasattr(each, "lora_A")]
    if any(type(each) is not linear or not _is_sum(each) for each in layers):
        yield
        return
    own: list[tuple[Any, Any]] = []
    for layer in layers:
        weight, names = layer.get_base_layer().weight, layer.active_adapters
        added = sum(layer.get_delta_weight(name) for name in names if name in layer.lora_A)
        if isinstance(added, int):
            continue
        format_ = weight.dtype if dtype is None else getattr(require("torch"), dtype)
        own.append((weight, weight.data))
        weight.data = (weight.data.float() + added.float()).to(format_)
    try:
        with model.disable_adapter() if own else nullcontext():
            yield
    finally:
        for weight, data in own:
            weight.data = data


def _is_sum(layer: Any) -> bool:
    """Whether what the adapters of a layer do is to add a matrix to its weight, and they do it now."""
    return not (
        layer.merged
        or layer.disable_adapters
        or any(layer.lora_bias.values())
        or layer.lora_variant
    )


def read_prompts(model: Any, prompts: Sequence[Sequence[int]]) -> ReadPrompts:
    """Compute each different prompt once, and what prompts begin with only once where that is less work."""
    torch: Any = require("torch")
    different = {tuple(prompt): None for prompt in prompts}
    places = {prompt: i for i, prompt in enumerate(different)}
    longest = max(map(len, different))
    common = longest if len(different) == 1 else 0
    # Without positions as numbers, or with a window of attention, the padding behind what is common would count.
    if len(different) > 1 and hasattr(model.config, "rope_parameters") and looks_back_at_all(model):
        # The first and the last in alphabetical order differ earliest. Every prompt keeps a token of its own.
        common = common_beginning(min(different), max(different))
        common = min(common, min(map(len, different)) - 1)
    # Padding stands behind what is common and before the rest, so that all answers begin at the same place.
    gaps = [[0] * (longest - len(prompt)) for prompt in different]
    both = list(zip(different, gaps, strict=True))
    ids = torch.tensor([[*each[:common], *gap, *each[common:]] for each, gap in both])
    mask = torch.tensor([[1] * common + gap + [1] * (len(each) - common) for each, gap in both])
    ids, mask = ids.to(model.device), mask.to(model.device)
    packed = pack(ids, mask, model) if suits(model) else None
    cache, logits = _read(model, ids, mask) if packed is None else _read_packed(model, packed)
    rows = torch.tensor([places[tuple(prompt)] for prompt in prompts], device=model.device)
    return ReadPrompts(cache, logits, mask, rows)


def _read(model: Any, ids: Tensor, mask: Tensor) -> tuple[Any, Tensor]:
    """Keys and values of rows of tokens, and logits behind the last."""
    torch: Any = require("torch")
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        use_cache=True,
        # An index. For 1 transformers takes a slice, for which torch copies the head once for each row.
        logits_to_keep=torch.tensor([ids.shape[1] - 1], device=model.device),
    )
    if getattr(output, "past_key_values", None) is None:
        raise BackendError(
            f"Expect a decoder, which keeps keys and values of what it has read, actually: {type(model).__name__}. Choose "
            "another model."
        )
    return output.past_key_values, output.logits[:, -1]


def _read_packed(model: Any, packed: Packed) -> tuple[Any, Tensor]:
    last = packed.places[:, -1]
    kept, where = (last % packed.ids.shape[1]).unique(return_inverse=True)
    output = model(
        input_ids=packed.ids,
        attention_mask=packed.sees,
        position_ids=packed.positions,
        use_cache=True,
        logits_to_keep=kept,
    )
    for layer in output.past_key_values.layers:
        for name in ("keys", "values"):
            found = getattr(layer, name).transpose(1, 2).flatten(0, 1)[packed.places]
            setattr(layer, name, found.transpose(1, 2))
    return output.past_key_values, output.logits[last // packed.ids.shape[1], where]
