"""Linear layers whose weights are laid out once for products with few rows.

torch lays a weight out anew for each product, so that a pass of a few rows reads weights at a third of the memory's
speed. oneDNN, which torch brings, can keep the layout. The same numbers are multiplied; only rounding differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from codea1_env.support.extras import require

_ROWS = 32
"""Rows for which the layout is chosen. Any number can be multiplied."""
_LEAST = 1 << 16
"""Smaller weights stay in the processor's cache as they are."""
_Forward = Callable[[Any], Any]


@lru_cache(maxsize=1)
def can_pack() -> bool:
    """Whether this torch has the operations, which are private."""
    torch: Any = require("torch")
    names = ("_reorder_linear_weight", "_linear_pointwise")
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in names
    )


def pack(weight: Any) -> Any:
    """Lay out a matrix [outputs, inputs] for `product`."""
    torch: Any = require("torch")
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _ROWS)


def product(states: Any, packed: Any, bias: Any = None) -> Any:
    """Multiply states [..., inputs] with a packed matrix; the result is [..., outputs]."""
    torch: Any = require("torch")
    return torch.ops.mkldnn._linear_pointwise(states, packed, bias, "none", [], "")


@contextmanager
def packed_weights(model: Any, dtype: str | None) -> Iterator[set[Any]]:
    """Let a model on a processor generate with packed weights and its active adapter; yield the weights that nobody else reads.

    Products are in `dtype`, or for None in the format of each weight. Layouts of frozen weights are kept as long as these.
    """
    changed: list[Any] = []
    packed: set[Any] = set()
    try:
        if model.device.type == "cpu" and can_pack():
            for layer, forward in _forwards(model, dtype):
                layer.forward = forward
                changed.append(layer)
            layers = (layer for layer in changed if not hasattr(layer, "base_layer"))
            embedded = model.get_input_embeddings()
            packed = {each.weight for each in layers} - {getattr(embedded, "weight", None)}
        yield packed
    finally:
        for layer in changed:
            del layer.forward  # the class's own is behind it


def _forwards(model: Any, dtype: str | None) -> Iterator[tuple[Any, _Forward]]:
    torch: Any = require("torch")
    with_adapter: Any = require("peft.tuners.lora.layer").Linear
    for name, layer in model.named_modules():
        if "forward" in vars(layer) or ".lora_" in name:
            continue
        if type(layer) is torch.nn.Linear and layer.weight.numel() >= _LEAST:
            yield layer, _plain(layer, getattr(torch, dtype) if dtype else layer.weight.dtype)
        elif type(layer) is with_adapter and (adapter := _adapter_of(layer)):
            yield layer, _adapted(layer, adapter)


def _adapter_of(layer: Any) -> str | None:
    """Name of the one adapter that is added to this layer; None if it is another sum."""
    if layer.disable_adapters or layer.merged or len(layer.active_adapters) != 1:
        return None
    name = str(layer.active_adapters[0])
    usual = name in layer.lora_A and name not in layer.lora_variant and not layer.lora_bias[name]
    return name if usual and not layer.fan_in_fan_out else None


def _plain(layer: Any, dtype: Any) -> _Forward:
    layout = _layout(layer.weight, dtype)
    bias = None if layer.bias is None else layer.bias.detach().to(dtype)
    return lambda states: product(states.to(dtype), layout, bias)


def _adapted(layer: Any, name: str) -> _Forward:
    down = layer.lora_A[name].weight.detach().t()
    up = (layer.lora_B[name].weight.detach() * layer.scaling[name]).t()
    cast: dict[Any, tuple[Any, Any]] = {}

    def forward(states: Any) -> Any:
        found = layer.base_layer(states)
        both = cast.get(found.dtype)
        if both is None:
            both = cast[found.dtype] = (down.to(found.dtype), up.to(found.dtype))
        flat = states.reshape(-1, states.shape[-1]).to(found.dtype)
        found.view(-1, found.shape[-1]).addmm_(flat @ both[0], both[1])
        return found

    return forward


class MadeOfWeights:
    """Remembers what was made of weights in a number format, as long as the weights are there and unchanged."""

    def __init__(self) -> None:
        self._made: Any = None

    def of(self, weight: Any, dtype: Any, make: Callable[[Any], Any]) -> Any:
        """Return what `make` makes of the weight in this format."""
        if self._made is None:
            # By identity, as a dictionary of tensors must compare.
            self._made = require("torch.utils.weak").WeakTensorKeyDictionary()
        state = (weight._version, weight.data_ptr(), dtype)
        known = self._made.get(weight)
        if known is None or known[0] != state:
            known = self._made[weight] = (state, make(weight.detach().to(dtype)))
        return known[1]


_LAYOUTS = MadeOfWeights()


def _layout(weight: Any, dtype: Any) -> Any:
    if weight.requires_grad:  # an optimizer may change it without leaving a trace
        return pack(weight.detach().to(dtype))
    return _LAYOUTS.of(weight, dtype, pack)
