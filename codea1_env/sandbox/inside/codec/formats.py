"""What the codec's two halves agree on: bounds, errors, and the types with a form of their own."""

from __future__ import annotations

import struct
from typing import Any

MAX_DEPTH = 100
MAX_ITEMS = 16_000_000
MAX_INT_BYTES = 1 << 20  # about 2.5 million decimal digits
MAX_DECIMAL_CHARS = 10_000
# Reducing a fraction takes time that grows with the square of its length.
MAX_FRACTION_BYTES = 2048
# Many keys with one hash turn a set or dict into a linear search: a reply must not cost us minutes.
MAX_EQUAL_HASHES = 200
# From this length on, lists and tuples of nothing but 64-bit integers and floats are packed.
MIN_PACKED = 4

U32 = struct.Struct("<I")
I64 = struct.Struct("<q")
F64 = struct.Struct("<d")
C128 = struct.Struct("<dd")
SIZED = struct.Struct("<cI")
TAGGED_I64 = struct.Struct("<cq")
TAGGED_F64 = struct.Struct("<cd")

FACTORIES: dict[str, Any] = {
    "None": None, "int": int, "float": float, "str": str, "list": list, "dict": dict,
    "set": set, "tuple": tuple, "bool": bool,
}  # fmt: skip
FACTORY_NAMES = {factory: name for name, factory in FACTORIES.items()}

# Tag of a packed sequence -> its type and the type code of `array`.
PACKED: dict[bytes, tuple[type, str]] = {
    b"I": (list, "q"), b"J": (tuple, "q"), b"G": (list, "d"), b"H": (tuple, "d"),
}  # fmt: skip
PACKED_TAGS = {how: tag for tag, how in PACKED.items()}
PACKED_CODES: dict[type, str] = {int: "q", float: "d"}
# Of sequences that hold both: the count, a type code for each number, the numbers.
MIXED: dict[bytes, type] = {b"K": list, b"L": tuple}
MIXED_TAGS = {kind: tag for tag, kind in MIXED.items()}


class EncodeError(Exception):
    """The value is not plain data, or too large. The message says which part."""


class DecodeError(Exception):
    """The bytes are not what `encode` writes."""


class SizeError(EncodeError):
    """The encoded value is larger than the limit."""


# numpy's types of single numbers; values of them, and arrays of them, become Python's.
_SCALARS = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong", "float16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


class Numpy:
    """The types of an imported numpy that have equals in Python. Built once, before foreign code runs."""

    def __init__(self, numpy: Any) -> None:
        self.array_type: type = numpy.ndarray
        self.scalars = frozenset(getattr(numpy, name) for name in _SCALARS)


def lists_in(shape: tuple[int, ...]) -> int:
    """Return how many items the lists have together that an array of a shape becomes; an empty axis may leave many lists.

    Example:
        >>> lists_in((2, 3)), lists_in((5, 0)), lists_in(())
        (8, 5, 0)
    """
    total, along = 0, 1
    for axis in shape:
        along *= axis
        total += along
    return total
