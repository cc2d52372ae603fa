"""Matrices that are laid out once for products with few rows.

torch lays a matrix out anew for each product, so that a pass of a few rows reads weights at a third of the memory's
speed. oneDNN, which torch brings, can keep the layout. FBGEMM, which it brings for x86, keeps numbers in float16 and
multiplies in float32: half the memory to read. Only matrices whose numbers float16 has are kept so. The same numbers are
multiplied in any case; only rounding differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from codea1_env.support.extras import require

_ROWS = 32
"""Rows for which the layout is chosen. Any number can be multiplied."""
_NEAR = 2.0**-14
"""As far as a number may be from its float16, beside the mean of its row: float16 has long steps near zero."""
Multiply = Callable[[Any], Any]
"""Takes states [rows, inputs], and returns [rows, outputs]."""


@lru_cache
def can_pack(dtype: Any) -> bool:
    """Whether oneDNN keeps the layout of matrices in this format: its operations are private, and need AVX-512 for bfloat16."""
    torch: Any = require("torch")
    try:
        small = torch.zeros(1, 1, dtype=dtype)
        product(small, pack(small))
    except (AttributeError, RuntimeError):  # no such operation; not on this processor
        return False
    return True


@lru_cache(maxsize=1)
def _has_halves() -> bool:
    torch: Any = require("torch")
    names = ("linear_prepack_fp16", "linear_dynamic_fp16")
    return "fbgemm" in torch.backends.quantized.supported_engines and all(
        hasattr(torch.ops.quantized, name) for name in names
    )


def pack(weight: Any) -> Any:
    """Lay out a matrix [outputs, inputs] for `product`."""
    torch: Any = require("torch")
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _ROWS)


def product(states: Any, packed: Any, bias: Any = None) -> Any:
    """Multiply states [..., inputs] with a packed matrix; the result is [..., outputs]."""
    torch: Any = require("torch")
    return torch.ops.mkldnn._linear_pointwise(states, packed, bias, "none", [], "")


def laid_out(weight: Any, bias: Any = None, *, lasting: bool = False) -> Multiply:
    """Lay out a matrix [outputs, inputs], and return what multiplies with it in its format.

    Args:
        weight: The matrix, in float32 or bfloat16.
        bias: Is added to the product, shape [outputs]; None for nothing.
        lasting: Whether it is used so long that the best layout pays, which takes ten times as long to make.
    """
    torch: Any = require("torch")
    if lasting and weight.dtype == torch.float32 and _has_halves() and _fits_half(weight):
        halves = torch.ops.quantized.linear_prepack_fp16(weight.contiguous(), bias)
        return lambda states: torch.ops.quantized.linear_dynamic_fp16(states, halves)
    if not can_pack(weight.dtype):
        return lambda states: torch.nn.functional.linear(states, weight, bias)
    packed = pack(weight)
    return lambda states: product(states, packed, bias)


def _fits_half(weight: Any) -> bool:
    errors = (weight.half().float() - weight).abs().amax(-1)
    return bool((errors <= _NEAR * weight.abs().mean(-1)).all())


class MadeOfWeights:
    """Remembers what was last made of weights, as long as the weights are there and unchanged."""

    def __init__(self) -> None:
        self._made: Any = None

    def of(
        self, weights: Sequence[Any], kind: Any, make: Callable[[], Any], better: Any = None
    ) -> Any:
        """Make a form of these weights once for each kind; a better kind serves, too. Weights are compared by their numbers."""
        if self._made is None:
            # By identity, as a dictionary of tensors must compare.
            self._made = require("torch.utils.weak").WeakTensorKeyDictionary()
        known, numbers, made = self._made.get(weights[0], (None, None, None))
        now = [_sum_of_bits(weight) for weight in weights]
        if known not in (kind, better) or numbers != now:
            made = make()
            self._made[weights[0]] = (kind, now, made)
        return made


def _sum_of_bits(weight: Any) -> int:
    """Versions and addresses do not tell of all changes, such as those of fused optimizers."""
    torch: Any = require("torch")
    flat = weight.detach().reshape(-1)
    even = flat.numel() * flat.element_size() % 8 == 0 and flat.data_ptr() % 8 == 0
    return int(flat.view(torch.int64 if even else torch.uint8).sum(dtype=torch.int64))
