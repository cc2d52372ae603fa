"""Passes of one token a row through a `Decoder`.

transformers makes some forty small operations a layer, and looks back at all earlier tokens of each row by itself. Of a
small model's pass that takes half of the time. Here it is fewer operations, and what rows have in common is looked at
once: what all prompts begin with for all rows, and the rest of a prompt for all of its answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.decoder import Decoder, Layer, pair_order
from codea1_env.support.extras import require

if TYPE_CHECKING:
    from torch import Tensor

_PLACES = 32
"""Keys and values get room for so many more tokens at once."""


@dataclass(frozen=True)
class ReadPrompts:
    """What a model has computed of different prompts."""

    cache: Any
    """`transformers.DynamicCache`: keys and values of each layer, [prompts, heads, places, size]."""
    logits: Tensor
    """Logits of the first token of the answers: [prompts, vocabulary]."""
    mask: Tensor
    """Which places count: [prompts, places]. Padding stands before the places that differ."""
    common: int
    """So many first places are the same for all prompts."""
    rows: Tensor
    """Number of the prompt of each answer: [rows]."""


@dataclass
class _KeysValues:
    """Keys and values of one layer. Keys are [.., size, places], and values [.., places, size]."""

    common: tuple[Tensor, Tensor]
    """The beginning that all prompts share: [heads, ..]."""
    prompts: tuple[Tensor, Tensor]
    """The rest of each prompt: [prompts, heads, ..]."""
    own: tuple[Tensor, Tensor]
    """Each answer: [rows, heads, ..]."""


class Decoding:
    """Answers while they grow."""

    def __init__(self, decoder: Decoder, read: ReadPrompts) -> None:
        torch: Any = require("torch")
        self._decoder = decoder
        self.logits = read.logits[read.rows]
        self._positions = read.mask.sum(-1)[read.rows]
        self._common, self._begun = read.common, read.mask.shape[-1]
        self._layers = [self._memory(layer, len(read.rows)) for layer in read.cache.layers]
        seen = read.mask.bool()[read.rows][:, None, None]
        self._mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        self._used = 0
        self._group(read.rows)
        self._make_room()

    def _memory(self, layer: Any, rows: int) -> _KeysValues:
        common, dtype = self._common, self._decoder.dtype
        keys = layer.keys[..., pair_order(self._decoder.size)].transpose(2, 3).to(dtype)
        values = layer.values.to(dtype)
        heads, size = keys.shape[1:3]
        return _KeysValues(
            (keys[0, :, :, :common].contiguous(), values[0, :, :common].contiguous()),
            (keys[..., common:].contiguous(), values[:, :, common:].contiguous()),
            (keys.new_zeros(rows, heads, size, 0), values.new_zeros(rows, heads, 0, size)),
        )

    def _group(self, prompts: Tensor) -> None:
        """Note which rows have the same prompt, given each row's."""
        torch: Any = require("torch")
        order = prompts.argsort(stable=True)
        counts = prompts.bincount()
        first = counts.cumsum(0) - counts
        self._prompt, self._place = prompts, torch.empty_like(prompts)
        self._place[order] = torch.arange(len(prompts)) - first[prompts[order]]
        # Prompts with fewer rows than others have row 0 in the places that are left.
        self._rows = prompts.new_zeros(len(counts), int(counts.max()))
        self._rows[prompts, self._place] = torch.arange(len(prompts))

    def select(self, kept: Tensor) -> None:
        """Keep these rows."""
        used, prompts = self._prompt[kept].unique(return_inverse=True)
        for memory in self._layers:
            memory.own = (memory.own[0][kept], memory.own[1][kept])
            if len(used) < len(self._rows):
                memory.prompts = (memory.prompts[0][used], memory.prompts[1][used])
        self._group(prompts)
        self.logits, self._mask = self.logits[kept], self._mask[kept]
        self._positions = self._positions[kept]

    def _make_room(self) -> None:
        """Have room for a token: places that nobody sees yet, so that whole tensors are multiplied, and never copied."""
        pad = require("torch").nn.functional.pad
        if self._begun + self._used < self._mask.shape[-1]:
            return
        self._mask = pad(self._mask, (0, _PLACES), value=float("-inf"))
        for memory in self._layers:
            keys, values = memory.own
            memory.own = (pad(keys, (0, _PLACES)), pad(values, (0, 0, 0, _PLACES)))

    def step(self, tokens: Tensor) -> None:
        """Append a token to each row, and compute the logits of the next."""
        torch: Any = require("torch")
        model = self._decoder
        self._make_room()
        self._mask[..., self._begun + self._used] = 0
        rotary = model.rotary
        angles = self._positions[:, None, None].float() * rotary.inv_freq.float()
        turn = torch.polar(torch.full_like(angles, rotary.attention_scaling), angles)
        with torch.autocast("cpu", enabled=False):
            states = model.embed(tokens).float()
            for layer, memory in zip(model.layers, self._layers, strict=True):
                normed = layer.attention_norm(states).to(model.dtype)
                looked = self._look(layer, layer.queries_keys_values(normed), memory, turn)
                states = states + layer.attended(looked)
                normed = layer.mlp_norm(states).to(model.dtype)
                gate, up = layer.gate_up(normed).chunk(2, -1)
                states = states + layer.down(torch.nn.functional.silu(gate).mul_(up))
            self.logits = model.head(model.norm(states).to(model.dtype))
        self._positions = self._positions + 1
        self._used += 1

    def _look(self, layer: Layer, made: Tensor, memory: _KeysValues, turn: Tensor) -> Tensor:
        """Attention: [rows, heads * size] of the queries, keys and values made for one token a row."""
        torch: Any = require("torch")
        model = self._decoder
        made = made.view(len(made), -1, model.size)
        turned = made[:, : model.heads + model.kv_heads].float()
        if layer.heads_norm is not None:
            turned = layer.heads_norm(turned)
        pairs = torch.view_as_complex(turned.unflatten(-1, (-1, 2)))
        turned = torch.view_as_real(pairs * turn).flatten(-2).to(model.dtype)
        keys, values = memory.own
        keys[..., self._used] = turned[:, model.heads :]
        values[:, :, self._used] = made[:, model.heads + model.kv_heads :]
        # Heads that share keys stand side by side, as if they were rows of one head.
        queries = turned[:, : model.heads].mul(model.size**-0.5)
        queries = queries.unflatten(1, (model.kv_heads, -1))
        places = [each.shape[-1] for each in (memory.common[0], memory.prompts[0], keys)]
        scores = queries.new_empty(*queries.shape[:3], sum(places), dtype=torch.float32)
        parts = scores.split(places, -1)
        parts[0].copy_(_of_all(queries, memory.common[0]))
        parts[1].copy_(self._of_prompts(queries, memory.prompts[0]))
        parts[2].copy_(queries @ keys)
        parts = scores.add_(self._mask).softmax(-1).to(model.dtype).split(places, -1)
        found = parts[2] @ values
        found += _of_all(parts[0], memory.common[1])
        found += self._of_prompts(parts[1], memory.prompts[1])
        return found.reshape(len(made), -1)

    def _of_prompts(self, states: Tensor, factors: Tensor) -> Tensor:
        """Multiply states [rows, heads, group, n] with their prompts' factors [prompts, heads, n, m]."""
        together = states[self._rows].transpose(1, 2)  # [prompts, heads, rows, group, n]
        found = (together.flatten(2, 3) @ factors).unflatten(2, together.shape[2:4])
        return found[self._prompt, :, self._place]


def _of_all(states: Tensor, factors: Tensor) -> Tensor:
    """Multiply states [rows, heads, group, n] with factors of all rows [heads, n, m]."""
    together = states.transpose(0, 1)
    return (together.flatten(1, 2) @ factors).unflatten(1, together.shape[1:3]).transpose(0, 1)
