"""What the codec's two halves agree on: bounds, errors, types with a form of their own, and what reading may cost.

Time and memory grow with more than the number of bytes: an empty deque is five bytes on a pipe and hundreds in memory;
keys can be chosen so that a dict of them is a list to search; a fraction is reduced in quadratic time. So the supervisor
reads with a budget; a process with limits of its own need not.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Collection
from typing import Any, NamedTuple

MAX_DEPTH = 100
MAX_ITEMS = 16_000_000
MAX_INT_BYTES = 1 << 20  # about 2.5 million decimal digits
MAX_DECIMAL_CHARS = 10_000
# Reducing a fraction takes time that grows with the square of its length.
MAX_FRACTION_BYTES = 2048
# Many keys with one hash turn a set or dict into a linear search: a reply must not cost us minutes.
MAX_EQUAL_HASHES = 200
# What such keys have compared counts as well, since keys may be large, and hold sets of such keys themselves.
MAX_COMPARED = 1_000_000
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


_LOOK_EVERY = 4096  # items between two looks at what has been spent


class BudgetError(DecodeError):
    """The bytes are well formed as far as they were read, but reading them would cost too much."""


class Budget(NamedTuple):
    """Bounds for one message. The defaults leave the bounds to the process and to the format."""

    size: int = 1 << 62
    """Bytes."""
    items: int = MAX_ITEMS
    """Values in containers. A container that is large when empty counts as several, packed numbers as
    an eighth of their number, rounded up."""
    total_items: int = 1 << 62
    """The same, of all messages that share a meter."""
    keys: int = 1 << 62
    """Keys of one set or dict, strings aside: nobody can choose the hash of a string."""
    equal_hashes: int = MAX_EQUAL_HASHES
    """Different keys of one set or dict that have the same hash."""
    compared: int = MAX_COMPARED
    """Items that are compared because keys have the same hash; see `weight`."""
    int_bytes: int = MAX_INT_BYTES
    """Bytes of one integer."""
    exact_int_bytes: int = MAX_INT_BYTES
    """Bytes of one integer in a message that holds a Decimal or a Fraction as well. 0: it may hold none."""
    seconds: float | None = None
    """CPU time of one message."""


UNLIMITED = Budget()
"""For a process with limits of its own."""

CHEAP = Budget(
    size=256 << 10,
    items=50_000,
    total_items=1_000_000,
    keys=5_000,
    equal_hashes=20,
    compared=50_000,
    int_bytes=4 << 10,
    exact_int_bytes=0,
)
"""Milliseconds to read, and little more to compare: what the supervisor judges itself."""

VALUES = Budget(
    size=128 << 20,
    items=1_000_000,
    total_items=4_000_000,
    keys=30_000,
    int_bytes=128 << 10,
    exact_int_bytes=2 << 10,
    seconds=2.0,
)
"""A second at most, and some hundred megabytes together: values that somebody has asked for."""


class Meter:
    """What has been spent of a budget, by one message or by several that somebody keeps."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.total_items = 0
        self._items = 0
        self._next_look = 0
        self._started = 0.0

    def begin(self, size: int) -> None:
        """Get ready, before a message is read."""
        if size > self.budget.size:
            raise BudgetError(f"a message of more than {self.budget.size} bytes")
        self._items = 0
        self._plan_look()
        if self.budget.seconds is not None:
            self._started = time.thread_time()

    def _plan_look(self) -> None:
        most = min(self.budget.items, self.budget.total_items - self.total_items)
        self._next_look = min(self._items + _LOOK_EVERY, most)

    def end(self) -> None:
        """Settle, when a message has been read, or given up."""
        self.total_items += self._items
        self._items = 0

    def spend(self, items: int) -> None:
        """Count items before they are read."""
        self._items += items
        if self._items > self._next_look:
            self.look()

    def look(self) -> None:
        """Compare what has been spent with the budget."""
        budget = self.budget
        if self._items > budget.items:
            raise BudgetError(f"more than {budget.items} items")
        if self.total_items + self._items > budget.total_items:
            raise BudgetError(f"more than {budget.total_items} items in all messages together")
        self._plan_look()
        if budget.seconds is not None and time.thread_time() - self._started > budget.seconds:
            raise BudgetError(f"more than {budget.seconds:g} s to read")


def check_hashes(
    keys: Collection[Any], most: int = MAX_EQUAL_HASHES, compared: int = MAX_COMPARED
) -> int:
    """Refuse keys that share hashes, where a set of them would take long; return the items that it has compared.

    Raises:
        DecodeError: A key is not hashable; `BudgetError` if more than `most` different keys share a hash, or more than
            `compared` items have to be compared because of it.
    """
    try:
        hashes = [hash(key) for key in keys]
    except TypeError:
        raise DecodeError("an unhashable key") from None
    if _are_different(hashes):
        return 0
    counts: dict[int, int] = {}
    seen: set[Any] = set()  # it never holds more colliding keys than may be
    cost = 0
    for key, digest in zip(keys, hashes, strict=True):
        count = counts.get(digest, 0)
        if count:
            cost += count * weight(key, (compared - cost) // count)
            if cost > compared:
                raise BudgetError("too many large keys with the same hash")
        size = len(seen)
        seen.add(key)
        if len(seen) > size:
            counts[digest] = count + 1
            if count >= most:
                raise BudgetError("too many keys with the same hash")
    return cost


AT_ONCE = 1 << 16
"""Items that one call of C may look at: while it does, every other thread stands still."""


def _are_different(hashes: list[int]) -> bool:
    found: set[int] = set()
    for start in range(0, len(hashes), AT_ONCE):
        found.update(hashes[start : start + AT_ONCE])
    return len(found) == len(hashes)


_WIDE = 256  # bytes or bits that are compared about as fast as an item
_SIZED = frozenset({str, bytes, bytearray})
_FEW = frozenset({float, bool, type(None)})
_SETS = frozenset({set, frozenset})


def weight(value: Any, most: int) -> int:
    """Return about how many items are looked at where plain data is compared with its equal; above `most` it stops counting.

    Of a set whose members share hashes it is more than it has: each is compared with all of its hash.
    """
    kind = type(value)
    if kind in _FEW:
        return 1
    if type(value) is int:
        return 1 + value.bit_length() // _WIDE
    if kind in _SIZED:
        return 1 + len(value) // _WIDE
    if not isinstance(value, Collection) or kind is range:
        return _OF_OTHERS
    total = 1 + len(value)
    parts = (value, value.values()) if isinstance(value, dict) else (value,)
    for part in parts:
        for each in part:
            if total > most:
                return total
            total += weight(each, most - total)
    if kind in _SETS and total <= most:
        try:
            total += check_hashes(value, len(value), most - total)
        except BudgetError:
            return most + 1
    return total


_OF_OTHERS = 20  # of a Decimal, a Fraction or a time
