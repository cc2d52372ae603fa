"""What lets a model on a processor learn faster, with the same results but for rounding.

A group of answers has one prompt, and prompts are longer than answers. Here the rows that begin alike become one
sequence: the common beginning and then each row's own end, in which a token sees the beginning and its own row only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codea1_env.support.extras import Lazy

if TYPE_CHECKING:
    from torch import Tensor

torch: Any = Lazy("torch")
GROUPED = "codea1_env-grouped"
"""Name of our attention among those of transformers: torch's own but for single tokens, see `passes`."""
_WORTH = 0.9
"""Rows are packed if that leaves less than this share of their tokens."""


@dataclass
class _Pack:
    """Rows that begin alike."""

    shared: int
    """Length of the common beginning."""
    rows: list[int] = field(default_factory=list)
    length: int = 0
    """The beginning once, and the end of every row."""


def without_adapter(model: Any) -> Any:
    """Return the model of transformers in a model of peft, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def shared_prompts(model: Any) -> Iterator[None]:
    """Let a model of transformers on a CPU compute like this, if it has full attention of torch's own, without dropout."""
    plain = without_adapter(model)
    if not suits(model):
        yield
        return
    backbone = plain.base_model
    whole = backbone.forward

    def forward(input_ids: Any = None, attention_mask: Any = None, **more: Any) -> Any:
        rows = None
        # Whoever brings a cache or positions has another order in mind.
        free = more.get("past_key_values") is None and more.get("position_ids") is None
        known = input_ids is not None and attention_mask is not None and attention_mask.dim() == 2
        if known and free and not more.get("use_cache"):
            rows = pack(input_ids, attention_mask, plain)
        if rows is None:
            return whole(input_ids=input_ids, attention_mask=attention_mask, **more)
        more.pop("position_ids", None)
        output = whole(
            input_ids=rows.ids, attention_mask=rows.sees, position_ids=rows.positions, **more
        )
        states = output.last_hidden_state
        output.last_hidden_state = states.reshape(-1, states.shape[-1])[rows.places]
        return output

    backbone.forward = forward
    try:
        yield
    finally:
        del backbone.forward  # the class's own is behind it


def suits(model: Any) -> bool:
    """Whether rows of a model may be packed: on a processor, with full attention of torch's own, without dropout."""
    model = without_adapter(model)
    config = model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    drops = any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in model.modules())
    others = ("alibi", "sliding_window", "attention_dropout")
    return (
        model.device.type == "cpu"
        and config._attn_implementation in ("sdpa", GROUPED)
        and kinds == {"full_attention"}
        and hasattr(config, "rope_parameters")  # positions are given, not counted from the mask
        and not any(getattr(config, name, None) for name in others)
        and not drops
        and "forward" not in vars(model.base_model)
    )


@dataclass(frozen=True)
class Packed:
    """Rows of a batch as fewer and longer sequences."""

    ids: Tensor
    """Tokens: [packs, length]."""
    sees: Tensor
    """Who sees whom: [packs, 1, length, length]."""
    positions: Tensor
    """[packs, length]."""
    places: Tensor
    """Place of each token of the rows among all tokens of the packs: [rows, tokens]; 0 for padding."""


def pack(input_ids: Tensor, attention_mask: Tensor, model: Any) -> Packed | None:
    """Pack the rows of a batch, [rows, tokens]; None if that saves nothing."""
    present = attention_mask.bool()
    tokens = [ids[seen].tolist() for ids, seen in zip(input_ids, present, strict=True)]
    packs = _packs(tokens, model.config.hidden_size)
    longest = max(pack.length for pack in packs)
    if len(packs) * longest > _WORTH * input_ids.numel():
        return None
    ids = torch.zeros(len(packs), longest, dtype=input_ids.dtype)
    positions = torch.zeros(len(packs), longest, dtype=torch.long)
    owner = torch.full((len(packs), longest), -1)  # 0: all rows of the pack
    places = torch.zeros(input_ids.shape, dtype=torch.long)
    for number, pack in enumerate(packs):
        shared, end = pack.shared, pack.shared
        ids[number, :shared] = torch.tensor(tokens[pack.rows[0]][:shared], dtype=ids.dtype)
        positions[number, :shared] = torch.arange(shared)
        owner[number, :shared] = 0
        for count, row in enumerate(pack.rows, 1):
            own = tokens[row][shared:]
            start, end = end, end + len(own)
            ids[number, start:end] = torch.tensor(own, dtype=ids.dtype)
            positions[number, start:end] = torch.arange(shared, shared + len(own))
            owner[number, start:end] = count
            found = torch.cat([torch.arange(shared), torch.arange(start, end)])
            places[row, present[row]] = number * longest + found
    sees = (owner[:, None, :] == 0) | (owner[:, None, :] == owner[:, :, None])
    sees = (sees & (owner[:, None, :] >= 0)).tril()
    sees |= torch.eye(longest, dtype=torch.bool)  # padding that sees nothing would give NaN
    return Packed(ids, sees[:, None], positions, places)


def _packs(tokens: Sequence[list[int]], hidden_size: int) -> list[_Pack]:
    """Rows that are cheaper together than apart, found among neighbours in alphabetical order."""
    packs: list[_Pack] = []
    for row in sorted(range(len(tokens)), key=lambda row: tuple(tokens[row])):
        ids, known = tokens[row], packs[-1] if packs else None
        if known is not None:
            shared = min(known.shared, common_beginning(tokens[known.rows[-1]], ids))
            length = known.length + (known.shared - shared) * (len(known.rows) - 1)
            length += len(ids) - shared
            apart = _cost(known.length, hidden_size) + _cost(len(ids), hidden_size)
            if _cost(length, hidden_size) < apart:
                known.shared, known.length = shared, length
                known.rows.append(row)
                continue
        packs.append(_Pack(len(ids), [row], len(ids)))
    return packs


def _cost(length: int, hidden_size: int) -> float:
    """Time of a sequence in units of a token's layers: about 12 h^2 weights a layer, and 2 h per token looked at."""
    return length + length**2 / (6 * hidden_size)


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning."""
    both = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], both))
