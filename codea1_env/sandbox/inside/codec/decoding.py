"""Bytes to plain data: the reading half of the codec. The bytes may be hostile."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from sys import byteorder
from typing import Any

from . import formats
from .encoding import exponent_too_large
from .formats import (
    AT_ONCE,
    C128,
    F64,
    I64,
    MAX_DEPTH,
    U32,
    UNLIMITED,
    BudgetError,
    DecodeError,
    Meter,
    check_hashes,
)

_ENDS_EARLY = "the data ends early"
_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
_u32, _i64, _f64 = U32.unpack_from, I64.unpack_from, F64.unpack_from
_INT, _TEXT, _FLOAT = b"jsf"
_KEYS_AT_ONCE = 256
_MAX_MOMENT = 64

# What an empty container takes of memory, in items.
_DEQUE, _SET, _MAPPING = 10, 3, 4


class _Decoder:
    """A position in hostile bytes; see `decode` for the arguments."""

    def __init__(self, data: bytes, meter: Meter) -> None:
        self.data = data
        self.position = 0
        self.meter = meter
        self.budget = meter.budget
        self.short_int = self.budget.exact_int_bytes or self.budget.int_bytes
        self.compared = self.budget.compared  # that may still be
        self.long_ints = self.exact_numbers = False

    # Bytes, counts, keys, and what they cost

    def take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise DecodeError(_ENDS_EARLY)
        part = self.data[self.position : end]
        self.position = end
        return part

    def length(self) -> int:
        number: int = _u32(self.data, self.position)[0]  # raises struct.error at the end
        self.position += 4
        return number

    def sized(self) -> bytes:
        return self.take(self.length())

    def text(self) -> str:
        return self.sized().decode("utf-8", "surrogatepass")

    def count(self) -> int:
        """Read how many items follow, and pay for them."""
        number = self.length()
        # Every item takes at least one byte, so that a forged count cannot make us allocate.
        if number > len(self.data) - self.position:
            raise DecodeError("more items announced than can follow")
        self.meter.spend(number)
        return number

    def many(self, depth: int) -> list[Any]:
        count = self.count()
        inner = depth + 1
        if inner > MAX_DEPTH and count:
            raise DecodeError(_TOO_DEEP)
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
                    raise DecodeError(_ENDS_EARLY)
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
        values = self.many(depth)
        if len(values) != count or any(type(value) is not kind for value in values):
            raise DecodeError(f"expected {count} values of type {kind.__name__}")
        return values

    def checked(self, keys: list[Any]) -> list[Any]:
        """Return the same keys, unless they would make a set or dict slow."""
        most = self.budget.keys
        if len(keys) > most and sum(type(key) is not str for key in keys) > most:
            raise BudgetError(f"a set or dict of more than {most} keys")
        self.compared -= check_hashes(keys, self.budget.equal_hashes, self.compared)
        return keys

    def insert(self, update: Callable[[list[Any]], None], parts: list[Any]) -> None:
        """Fill a set or dict; keys can be chosen so that this takes long."""
        if len(parts) <= _KEYS_AT_ONCE:
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

    # Values

    def value(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise DecodeError(_TOO_DEEP)
        tag = self.data[self.position]
        self.position += 1
        reader = _READERS.get(tag)
        if reader is None:
            raise DecodeError(f"unknown tag {bytes([tag])!r}")
        return reader(self, depth)

    def fixed(self, form: Struct) -> tuple[Any, ...]:
        return form.unpack(self.take(form.size))

    def integer(self) -> int:
        size = self.length()
        if size > self.short_int:
            self.long_ints = True
            if size > self.budget.int_bytes:
                raise BudgetError(f"an integer of more than {self.budget.int_bytes} bytes")
            self.check_exact()
        return int.from_bytes(self.take(size), "little", signed=True)

    def packed(self, depth: int, kind: type, code: str) -> Any:
        payload = self.sized()
        count, rest = divmod(len(payload), 8)
        if rest or count < formats.MIN_PACKED:
            raise DecodeError("packed numbers of a strange length")
        self.meter.spend(-(-count // 8))
        numbers = array(code, payload)
        if byteorder == "big":
            numbers.byteswap()
        if count > AT_ONCE:
            parts = (numbers[start : start + AT_ONCE] for start in range(0, count, AT_ONCE))
            return kind(chain.from_iterable(map(array.tolist, parts)))
        return tuple(numbers) if kind is tuple else numbers.tolist()

    def mixed(self, depth: int, kind: type) -> Any:
        count = self.length()
        codes = self.take(count)
        if count < formats.MIN_PACKED or codes.translate(None, b"qd"):
            raise DecodeError("packed numbers of a strange type")
        payload = self.take(8 * count)
        self.meter.spend(-(-count // 8))
        numbers: list[Any] = []
        for start in range(0, count, AT_ONCE):
            part = Struct(b"<" + codes[start : start + AT_ONCE])
            numbers += part.unpack_from(payload, 8 * start)
        return numbers if kind is list else tuple(numbers)

    def filled(self, found: dict[Any, Any], depth: int) -> Any:
        if type(found) is not dict:
            self.meter.spend(_MAPPING)
        flat = self.many(depth)
        if len(flat) % 2:
            raise DecodeError("a key without a value")
        pairs = list(zip(self.checked(flat[::2]), flat[1::2], strict=True))
        update = OrderedDict.update if type(found) is OrderedDict else dict.update
        self.insert(partial(update, found), pairs)
        return found

    def read_set(self, depth: int) -> set[Any]:
        self.meter.spend(_SET)
        found: set[Any] = set()
        self.insert(found.update, self.checked(self.many(depth)))
        return found

    def read_frozenset(self, depth: int) -> frozenset[Any]:
        self.meter.spend(_SET)
        keys = self.checked(self.many(depth))
        if len(keys) <= _KEYS_AT_ONCE:
            return frozenset(keys)
        found: set[Any] = set()
        self.insert(found.update, keys)
        return frozenset(found)

    def read_bytearray(self, depth: int) -> Any:
        self.meter.spend(1)
        return bytearray(self.sized())

    def read_deque(self, depth: int) -> deque[Any]:
        self.meter.spend(_DEQUE)
        count = self.count()
        maxlen = self.value(depth + 1) if count else ()
        if maxlen is not None and type(maxlen) is not int:
            raise DecodeError("a deque with a strange length")
        found: deque[Any] = deque(maxlen=maxlen)
        found.extend([self.value(depth + 1) for _ in range(count - 1)])
        return found

    def read_defaultdict(self, depth: int) -> Any:
        factory = self.text()
        if factory not in formats.FACTORIES or self.take(1) != b"d":
            raise DecodeError("a defaultdict with a strange factory")
        return self.filled(defaultdict(formats.FACTORIES[factory]), depth)

    def decimal(self) -> Decimal:
        self.exact_number()
        text = self.text()
        if len(text) > formats.MAX_DECIMAL_CHARS:
            raise DecodeError("a Decimal with too many digits")
        number = Decimal(text)
        if exponent_too_large(number):
            raise DecodeError("a Decimal with too large an exponent")
        return number

    def moment(self) -> str:
        if len(text := self.text()) > _MAX_MOMENT:  # an error would hold all of it
            raise DecodeError("a time of a strange length")
        return text

    def fraction(self, depth: int) -> Fraction:
        self.exact_number()
        parts = self.exactly(2, int, depth)
        if any(part.bit_length() >= 8 * formats.MAX_FRACTION_BYTES for part in parts):
            raise DecodeError("a Fraction with too many digits")
        return Fraction(*parts)


_READERS_BY_TAG: dict[bytes, Callable[[_Decoder, int], Any]] = {
    b"j": lambda decoder, depth: decoder.fixed(I64)[0],
    b"s": lambda decoder, depth: decoder.text(),
    b"f": lambda decoder, depth: decoder.fixed(F64)[0],
    b"i": lambda decoder, depth: decoder.integer(),
    b"N": lambda decoder, depth: None,
    b"T": lambda decoder, depth: True,
    b"F": lambda decoder, depth: False,
    b"l": _Decoder.many,
    b"t": lambda decoder, depth: tuple(decoder.many(depth)),
    b"d": lambda decoder, depth: decoder.filled({}, depth),
    **{
        tag: partial(_Decoder.packed, kind=kind, code=code)
        for tag, (kind, code) in formats.PACKED.items()
    },
    **{tag: partial(_Decoder.mixed, kind=kind) for tag, kind in formats.MIXED.items()},
    b"S": _Decoder.read_set,
    b"Z": _Decoder.read_frozenset,
    b"b": lambda decoder, depth: decoder.sized(),
    b"B": _Decoder.read_bytearray,
    b"c": lambda decoder, depth: complex(*decoder.fixed(C128)),
    b"r": lambda decoder, depth: range(*decoder.exactly(3, int, depth)),
    b"D": lambda decoder, depth: decoder.decimal(),
    b"R": _Decoder.fraction,
    b"m": lambda decoder, depth: datetime.fromisoformat(decoder.moment()),
    b"y": lambda decoder, depth: date.fromisoformat(decoder.moment()),
    b"h": lambda decoder, depth: time.fromisoformat(decoder.moment()),
    b"e": lambda decoder, depth: timedelta(*decoder.exactly(3, int, depth)),
    b"q": _Decoder.read_deque,
    b"C": lambda decoder, depth: decoder.filled(Counter(), depth),
    b"O": lambda decoder, depth: decoder.filled(OrderedDict(), depth),
    b"g": _Decoder.read_defaultdict,
}
_READERS = {tag[0]: reader for tag, reader in _READERS_BY_TAG.items()}
_CONSTANTS = {b"N": None, b"T": True, b"F": False}


def decode(data: bytes, *, meter: Meter | None = None) -> Any:
    """Turn bytes back into the data that `encode` was given.

    Args:
        data: Bytes from a process that may be hostile.
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
