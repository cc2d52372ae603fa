"""What the codec's decoder stands on: bytes, counts, keys, and what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from .budgets import BudgetError, Meter
from .formats import F64, I64, MAX_DEPTH, MAX_EQUAL_HASHES, U32, DecodeError

ENDS_EARLY = "the data ends early"
TOO_DEEP = f"nested more than {MAX_DEPTH} deep"

_u32, _i64, _f64 = U32.unpack_from, I64.unpack_from, F64.unpack_from
_INT, _TEXT, _FLOAT = b"jsf"
_KEYS_AT_ONCE = 256


def check_hashes(keys: Collection[Any], most: int = MAX_EQUAL_HASHES) -> None:
    """Refuse keys of which very many different ones share one hash.

    Raises:
        DecodeError: A key is not hashable; `BudgetError` if more than `most` different keys collide.
    """
    try:
        hashes = [hash(key) for key in keys]
    except TypeError:
        raise DecodeError("an unhashable key") from None
    if len(hashes) - len(set(hashes)) < most:
        return
    counts: dict[int, int] = {}
    seen: set[Any] = set()  # it never holds more colliding keys than may be
    for key, digest in zip(keys, hashes, strict=True):
        size = len(seen)
        seen.add(key)
        if len(seen) > size:
            counts[digest] = count = counts.get(digest, 0) + 1
            if count > most:
                raise BudgetError("too many keys with the same hash")


class ValueReader(ABC):
    """A position in hostile bytes.

    Args:
        data: The bytes.
        meter: What reading them may cost. It has begun.
    """

    __slots__ = (
        "budget",
        "data",
        "exact_numbers",
        "long_ints",
        "meter",
        "position",
        "short_int",
    )

    def __init__(self, data: bytes, meter: Meter) -> None:
        self.data = data
        self.position = 0
        self.meter = meter
        self.budget = meter.budget
        self.short_int = self.budget.exact_int_bytes or self.budget.int_bytes
        self.long_ints = self.exact_numbers = False

    @abstractmethod
    def value(self, depth: int) -> Any:
        """Read one value."""

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        end = self.position + size
        if end > len(self.data):
            raise DecodeError(ENDS_EARLY)
        part = self.data[self.position : end]
        self.position = end
        return part

    def length(self) -> int:
        """Read a count or a length."""
        number: int = _u32(self.data, self.position)[0]  # raises struct.error at the end
        self.position += 4
        return number

    def sized(self) -> bytes:
        """Read a length and so many bytes."""
        return self.take(self.length())

    def text(self) -> str:
        """Read a string."""
        return self.sized().decode("utf-8", "surrogatepass")

    def count(self) -> int:
        """Read how many items follow, and pay for them."""
        number: int = _u32(self.data, self.position)[0]
        self.position += 4
        # Every item takes at least one byte, so that a forged count cannot make us allocate.
        if number > len(self.data) - self.position:
            raise DecodeError("more items announced than can follow")
        self.meter.spend(number)
        return number

    def many(self, depth: int) -> list[Any]:
        """Read a count and so many values."""
        count = self.count()
        inner = depth + 1
        if inner > MAX_DEPTH and count:
            raise DecodeError(TOO_DEEP)
        data, size, at = self.data, len(self.data), self.position
        found: list[Any] = []
        for _ in range(count):  # the commonest kinds here, where no call is needed
            tag = data[at]
            if tag == _INT:
                found.append(_i64(data, at + 1)[0])
                at += 9
            elif tag == _TEXT:
                start = at + 5
                at = start + _u32(data, at + 1)[0]
                if at > size:
                    raise DecodeError(ENDS_EARLY)
                found.append(data[start:at].decode("utf-8", "surrogatepass"))
            elif tag == _FLOAT:
                found.append(_f64(data, at + 1)[0])
                at += 9
            else:
                self.position = at
                found.append(self.value(inner))
                at = self.position
        self.position = at
        return found

    def exactly(self, count: int, kind: type, depth: int) -> list[Any]:
        """Read so many values of one type."""
        values = self.many(depth)
        if len(values) != count or any(type(value) is not kind for value in values):
            raise DecodeError(f"expected {count} values of type {kind.__name__}")
        return values

    def keys(self, depth: int) -> list[Any]:
        """Read the items of a set."""
        keys = self.many(depth)
        self.check_keys(keys)
        return keys

    def mapping(self, depth: int) -> list[tuple[Any, Any]]:
        """Read the keys and values of a dict."""
        flat = self.many(depth)
        if len(flat) % 2:
            raise DecodeError("a key without a value")
        self.check_keys(flat[::2])
        return list(zip(flat[::2], flat[1::2], strict=True))

    def check_keys(self, keys: list[Any]) -> None:
        """Refuse keys that would make a set or dict slow."""
        most = self.budget.keys
        if len(keys) > most and sum(type(key) is not str for key in keys) > most:
            raise BudgetError(f"a set or dict of more than {most} keys")
        check_hashes(keys, self.budget.equal_hashes)

    def insert(self, update: Callable[[list[Any]], None], parts: list[Any]) -> None:
        """Fill a set or dict; keys can be chosen so that this takes long."""
        if self.budget.seconds is None or len(parts) <= _KEYS_AT_ONCE:
            update(parts)
            return
        for start in range(0, len(parts), _KEYS_AT_ONCE):
            update(parts[start : start + _KEYS_AT_ONCE])
            self.meter.look()

    def check_exact(self) -> None:
        """Refuse long integers beside Decimals and Fractions: to compare them takes quadratic time."""
        if self.exact_numbers and self.long_ints:
            raise BudgetError("a Decimal or a Fraction beside an integer with many digits")

    def exact_number(self) -> None:
        """Pay for a Decimal or a Fraction."""
        self.exact_numbers = True
        if not self.budget.exact_int_bytes:
            raise BudgetError("a Decimal or a Fraction")
        self.check_exact()
        self.meter.spend(1)
        self.meter.look()
