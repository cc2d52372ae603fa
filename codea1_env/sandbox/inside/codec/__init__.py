"""A strict binary codec for plain data, the only thing that crosses a process boundary.

Exact types only: a subclass could carry behaviour (`__eq__`, `__reduce__`), and nothing that is decoded may run foreign
code. There is no pickle, no marshal and no eval. Numbers and arrays of numpy become Python's.

Layout: one tag byte, then a payload; counts and lengths are unsigned 32-bit little-endian numbers.
Lists and tuples of some 64-bit integers or floats and nothing else are packed: a tag of their own, the
length in bytes, the numbers; or where there are both, the count, the type of each, the numbers.
"""

from __future__ import annotations

from .decoding import decode
from .encoding import encode
from .formats import (
    CHEAP,
    MAX_DEPTH,
    VALUES,
    Budget,
    BudgetError,
    DecodeError,
    EncodeError,
    Meter,
    Numpy,
    SizeError,
    check_hashes,
    weight,
)

__all__ = [
    "CHEAP", "MAX_DEPTH", "VALUES", "Budget", "BudgetError", "DecodeError", "EncodeError", "Meter", "Numpy",
    "SizeError", "check_hashes", "decode", "encode", "weight",
]  # fmt: skip
