"""What the codec's two halves agree on: bounds, errors, and the types with a form of their own."""

from __future__ import annotations

import re
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

# Element types of arrays that are plain data: no objects, no records.
_DTYPE = re.compile(r"[<>|=][?biufcmMSU][0-9]{1,9}(\[[0-9]{0,9}[a-zA-Z]{1,2}\])?")


class EncodeError(Exception):
    """The value is not plain data, or too large. The message says which part."""


class DecodeError(Exception):
    """The bytes are not what `encode` writes."""


class SizeError(EncodeError):
    """The encoded value is larger than the limit."""


class NdArray:
    """A numpy array as plain data, where numpy itself is not wanted. Never equal to anything else.

    Attributes:
        dtype: numpy's name of the element type, such as "<f8".
        shape: Lengths of the axes.
        data: The elements in C order.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes) -> None:
        self.dtype = dtype
        self.shape = shape
        self.data = data

    def __repr__(self) -> str:
        return f"NdArray(dtype={self.dtype!r}, shape={self.shape!r})"


# numpy's types of single numbers -> Python's that holds the same. They are sent by their place in here.
SCALARS: dict[str, type] = {
    "bool_": bool,
    "int8": int, "int16": int, "int32": int, "int64": int,
    "uint8": int, "uint16": int, "uint32": int, "uint64": int,
    "float16": float, "float32": float, "float64": float,
    "complex64": complex, "complex128": complex,
}  # fmt: skip
SCALAR_KINDS = tuple(SCALARS.values())


class Numpy:
    """The types of an imported numpy that the codec understands. Built once, before foreign code runs.

    Args:
        numpy: The module.
        numbers: Whether single numbers are read as numpy's, too; else as Python's.
    """

    def __init__(self, numpy: Any, numbers: bool = True) -> None:
        self.numbers = numbers
        self.array_type = numpy.ndarray
        self.frombuffer = numpy.frombuffer
        self.scalar_types = tuple(getattr(numpy, name) for name in SCALARS)
        self.scalars = {kind: number for number, kind in enumerate(self.scalar_types)}


def is_plain_dtype(name: str) -> bool:
    """Whether arrays with this type of elements are plain data.

    Example:
        >>> is_plain_dtype("<f8"), is_plain_dtype("|O")
        (True, False)
    """
    return _DTYPE.fullmatch(name) is not None
