"""Bytes to plain data: the reading half of the codec. The bytes may be hostile."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from sys import byteorder
from typing import Any

from .budgets import UNLIMITED, BudgetError, Meter
from .encoding import exponent_too_large
from .formats import (
    C128,
    F64,
    FACTORIES,
    I64,
    MAX_DECIMAL_CHARS,
    MAX_DEPTH,
    MAX_FRACTION_BYTES,
    MIN_PACKED,
    MIXED,
    PACKED,
    SCALAR_KINDS,
    DecodeError,
    NdArray,
    Numpy,
    is_plain_dtype,
)
from .reading import TOO_DEEP, ValueReader

Resolve = Callable[[bytes, int, Any], Any]

# What an empty container takes of memory, in items.
_DEQUE, _SET, _MAPPING, _ARRAY = 10, 3, 4, 5


class _Decoder(ValueReader):
    """Reads one value; see `decode` for the arguments."""

    __slots__ = ("containers", "numpy", "resolve")

    resolve: Resolve | None
    numpy: Numpy | None
    containers: list[Any] | None

    def number(self, container: Any) -> None:
        """Numbers a container, before its content is read, as the encoder does."""
        if self.containers is not None:
            self.containers.append(container)

    def value(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise DecodeError(TOO_DEEP)
        tag = self.data[self.position]
        self.position += 1
        reader = _READERS.get(tag)
        if reader is None:
            raise DecodeError(f"unknown tag {bytes([tag])!r}")
        return reader(self, depth)

    def short_integer(self, depth: int) -> int:
        number: int = I64.unpack_from(self.data, self.position)[0]
        self.position += I64.size
        return number

    def floating(self, depth: int) -> float:
        number: float = F64.unpack_from(self.data, self.position)[0]
        self.position += F64.size
        return number

    def integer(self) -> int:
        size = self.length()
        if size > self.short_int:
            self.long_ints = True
            if size > self.budget.int_bytes:
                raise BudgetError(f"an integer of more than {self.budget.int_bytes} bytes")
            self.check_exact()
        return int.from_bytes(self.take(size), "little", signed=True)

    def packed(self, tag: bytes) -> Any:
        kind, code = PACKED[tag]
        payload = self.sized()
        count, rest = divmod(len(payload), 8)
        if rest or count < MIN_PACKED:
            raise DecodeError("packed numbers of a strange length")
        self.meter.spend(-(-count // 8))
        numbers = array(code, payload)
        if byteorder == "big":
            numbers.byteswap()
        if kind is tuple:
            return tuple(numbers)
        found = numbers.tolist()
        self.number(found)
        return found

    def mixed(self, tag: bytes) -> Any:
        count = self.length()
        codes = self.take(count)
        if count < MIN_PACKED or codes.translate(None, b"qd"):
            raise DecodeError("packed numbers of a strange type")
        payload = self.take(8 * count)
        self.meter.spend(-(-count // 8))
        numbers = Struct(b"<" + codes).unpack(payload)
        if MIXED[tag] is tuple:
            return numbers
        found = list(numbers)
        self.number(found)
        return found

    def read_list(self, depth: int) -> list[Any]:
        if self.containers is None:
            return self.many(depth)
        found: list[Any] = []
        self.containers.append(found)
        found += self.many(depth)
        return found

    def read_dict(self, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = self.filled({}, depth)
        return found

    def filled(self, found: dict[Any, Any], depth: int) -> Any:
        if type(found) is not dict:
            self.meter.spend(_MAPPING)
        self.number(found)
        dict_update = OrderedDict.update if type(found) is OrderedDict else dict.update
        self.insert(partial(dict_update, found), self.mapping(depth))
        return found

    def read_set(self, depth: int) -> set[Any]:
        self.meter.spend(_SET)
        found: set[Any] = set()
        self.number(found)
        self.insert(found.update, self.keys(depth))
        return found

    def read_frozenset(self, depth: int) -> frozenset[Any]:
        self.meter.spend(_SET)
        keys = self.keys(depth)
        if self.budget.seconds is None:
            return frozenset(keys)
        found: set[Any] = set()
        self.insert(found.update, keys)
        return frozenset(found)

    def read_bytearray(self, depth: int) -> bytearray:
        self.meter.spend(1)
        found = bytearray(self.sized())
        self.number(found)
        return found

    def read_deque(self, depth: int) -> deque[Any]:
        self.meter.spend(_DEQUE)
        count = self.count()
        maxlen = self.value(depth + 1) if count else ()
        if maxlen is not None and type(maxlen) is not int:
            raise DecodeError("a deque with a strange length")
        found: deque[Any] = deque(maxlen=maxlen)
        self.number(found)
        found.extend([self.value(depth + 1) for _ in range(count - 1)])
        return found

    def read_defaultdict(self, depth: int) -> Any:
        factory = self.text()
        if factory not in FACTORIES or self.take(1) != b"d":
            raise DecodeError("a defaultdict with a strange factory")
        return self.filled(defaultdict(FACTORIES[factory]), depth)

    def decimal(self) -> Decimal:
        self.exact_number()
        text = self.text()
        if len(text) > MAX_DECIMAL_CHARS:
            raise DecodeError("a Decimal with too many digits")
        number = Decimal(text)
        if exponent_too_large(number):
            raise DecodeError("a Decimal with too large an exponent")
        return number

    def fraction(self, depth: int) -> Fraction:
        self.exact_number()
        parts = self.exactly(2, int, depth)
        if any(part.bit_length() >= 8 * MAX_FRACTION_BYTES for part in parts):
            raise DecodeError("a Fraction with too many digits")
        return Fraction(*parts)

    def read_timedelta(self, depth: int) -> timedelta:
        days, seconds, microseconds = self.exactly(3, int, depth)
        return timedelta(days, seconds, microseconds)

    def read_array(self, depth: int) -> Any:
        if not self.budget.numpy:
            raise BudgetError("an array")
        self.meter.spend(_ARRAY)
        dtype, shape, data = (self.value(depth + 1) for _ in range(3))
        plain = type(dtype) is str and type(shape) is tuple and type(data) is bytes
        if not plain or not is_plain_dtype(dtype):
            raise DecodeError("a malformed array")
        if any(type(axis) is not int or axis < 0 for axis in shape):
            raise DecodeError("an array of a strange shape")
        found = NdArray(dtype, shape, data)
        if self.numpy is not None:
            found = self.numpy.frombuffer(data, dtype=dtype).reshape(shape).copy()
        self.number(found)
        return found

    def scalar(self, depth: int) -> Any:
        """One of numpy's numbers; Python's where numpy is not wanted."""
        if not self.budget.numpy:
            raise BudgetError("a number of numpy")
        place = self.take(1)[0]
        number = self.value(depth + 1)
        if type(number) is not SCALAR_KINDS[place]:
            raise DecodeError("a malformed number of numpy")
        if self.numpy is None or not self.numpy.numbers:
            return number
        return self.numpy.scalar_types[place](number)

    def reference(self, depth: int) -> Any:
        if self.resolve is None:
            raise DecodeError("a reference where none can be")
        kind, number = self.take(1), self.length()
        return self.resolve(kind, number, self.value(depth + 1))

    def again(self) -> Any:
        number = self.length()
        if self.containers is None or number >= len(self.containers):
            raise DecodeError("a reference to a container that has not come")
        return self.containers[number]


_READERS_BY_TAG: dict[bytes, Callable[[_Decoder, int], Any]] = {
    b"j": _Decoder.short_integer,
    b"s": lambda decoder, depth: decoder.text(),
    b"f": _Decoder.floating,
    b"i": lambda decoder, depth: decoder.integer(),
    b"N": lambda decoder, depth: None,
    b"T": lambda decoder, depth: True,
    b"F": lambda decoder, depth: False,
    b"l": _Decoder.read_list,
    b"t": lambda decoder, depth: tuple(decoder.many(depth)),
    b"d": _Decoder.read_dict,
    b"I": lambda decoder, depth: decoder.packed(b"I"),
    b"J": lambda decoder, depth: decoder.packed(b"J"),
    b"G": lambda decoder, depth: decoder.packed(b"G"),
    b"H": lambda decoder, depth: decoder.packed(b"H"),
    b"K": lambda decoder, depth: decoder.mixed(b"K"),
    b"L": lambda decoder, depth: decoder.mixed(b"L"),
    b"S": _Decoder.read_set,
    b"Z": _Decoder.read_frozenset,
    b"b": lambda decoder, depth: decoder.sized(),
    b"B": _Decoder.read_bytearray,
    b"c": lambda decoder, depth: complex(*C128.unpack(decoder.take(16))),
    b"r": lambda decoder, depth: range(*decoder.exactly(3, int, depth)),
    b"D": lambda decoder, depth: decoder.decimal(),
    b"R": _Decoder.fraction,
    b"m": lambda decoder, depth: datetime.fromisoformat(decoder.text()),
    b"y": lambda decoder, depth: date.fromisoformat(decoder.text()),
    b"h": lambda decoder, depth: time.fromisoformat(decoder.text()),
    b"e": _Decoder.read_timedelta,
    b"q": _Decoder.read_deque,
    b"C": lambda decoder, depth: decoder.filled(Counter(), depth),
    b"O": lambda decoder, depth: decoder.filled(OrderedDict(), depth),
    b"g": _Decoder.read_defaultdict,
    b"a": _Decoder.read_array,
    b"n": _Decoder.scalar,
    b"x": _Decoder.reference,
    b"@": lambda decoder, depth: decoder.again(),
}
_READERS = {tag[0]: reader for tag, reader in _READERS_BY_TAG.items()}
_INT = ord("j")
_CONSTANTS = {b"N": None, b"T": True, b"F": False}


def decode(
    data: bytes,
    *,
    resolve: Resolve | None = None,
    numpy: Numpy | None = None,
    containers: list[Any] | None = None,
    meter: Meter | None = None,
) -> Any:
    """Turn bytes back into the data that `encode` was given.

    Args:
        data: Bytes from a process that may be hostile.
        resolve: Turns a reference (kind, number, data) into an object.
        numpy: Decodes arrays and numbers of numpy to real ones; without it arrays become `NdArray`, numbers
            Python's.
        containers: As for `encode`; both sides must have begun with lists of the same length.
        meter: What reading may cost. Without it, only the format's own bounds hold.

    Raises:
        DecodeError: The bytes are not exactly one encoded value; `BudgetError` if they cost too much.
    """
    if len(data) == 1 and data in _CONSTANTS:
        return _CONSTANTS[data]
    if len(data) == 9 and data[0] == _INT:
        return I64.unpack_from(data, 1)[0]
    meter = meter if meter is not None else Meter(UNLIMITED)
    meter.begin(len(data))
    decoder = _Decoder(data, meter)
    decoder.resolve, decoder.numpy, decoder.containers = resolve, numpy, containers
    try:
        value = decoder.value()
    except (
        ArithmeticError, LookupError, MemoryError, RecursionError, StructError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise DecodeError(f"malformed data: {type(error).__name__}: {error}") from None
    finally:
        meter.end()
    if decoder.position != len(data):
        raise DecodeError("trailing bytes")
    return value
