"""Plain data to bytes: the writing half of the codec."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from sys import byteorder
from typing import Any

from . import formats
from .formats import MAX_DEPTH, MAX_ITEMS, PACKED_CODES, EncodeError, Numpy, SizeError

_sized = formats.SIZED.pack
_tagged_i64, _tagged_f64 = formats.TAGGED_I64.pack, formats.TAGGED_F64.pack
_MAX_I64 = 1 << 63
_TOO_DEEP = f"the value is cyclic or nested more than {MAX_DEPTH} deep"
_TOO_MANY = f"the value has more than {MAX_ITEMS} items"


class _Encoder:
    """Writes one value; see `encode` for the arguments."""

    def __init__(self, numpy: Numpy | None, limit: int) -> None:
        self.data = bytearray()
        self.numpy = numpy
        self.limit = limit
        self.items = 0

    def check_size(self) -> None:
        if len(self.data) > self.limit:
            raise SizeError("the value is larger than the limit for one value")

    def put(self, part: bytes) -> None:
        self.data += part
        self.check_size()

    def sized(self, tag: bytes, payload: bytes) -> None:
        self.data += _sized(tag, len(payload))
        self.put(payload)

    def count(self, tag: bytes, number: int) -> None:
        self.items += number
        if self.items > MAX_ITEMS:
            raise SizeError(_TOO_MANY)
        self.data += _sized(tag, number)

    def many(self, tag: bytes, count: int, values: Iterable[Any], depth: int) -> None:
        self.count(tag, count)
        inner = depth + 1
        if inner > MAX_DEPTH and count:
            raise EncodeError(_TOO_DEEP)
        data, limit = self.data, self.limit
        seen = 0
        for value in values:  # the commonest kinds here, where no call is needed
            kind = type(value)
            if kind is int and -_MAX_I64 <= value < _MAX_I64:
                data += _tagged_i64(b"j", value)
            elif kind is str:
                text = value.encode("utf-8", "surrogatepass")
                data += _sized(b"s", len(text))
                data += text
                if len(data) > limit:
                    break
            elif kind is float:
                data += _tagged_f64(b"f", value)
            elif kind is bool:
                data += b"T" if value else b"F"
            else:
                self.value(value, inner)
            seen += 1
        self.check_size()
        if seen != count:
            raise EncodeError("a container changed while it was being copied")

    def pairs(self, tag: bytes, mapping: dict[Any, Any], depth: int) -> None:
        flat = [part for item in mapping.items() for part in item]
        self.many(tag, len(flat), flat, depth)

    def sequence(self, tag: bytes, values: Any, kind: type, depth: int) -> None:
        """Write a list or tuple, in one go if it holds nothing but small integers and floats."""
        count = len(values)
        packed = None
        if count >= formats.MIN_PACKED and type(values[0]) in PACKED_CODES:
            packed = _packed(values, kind)
        if packed is None:
            self.many(tag, count, values, depth)
            return
        self.items += count
        if self.items > MAX_ITEMS:
            raise SizeError(_TOO_MANY)
        self.put(packed)

    def value(self, value: Any, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise EncodeError(_TOO_DEEP)
        kind = type(value)
        writer = _WRITERS.get(kind)
        if writer is not None:
            writer(self, value, depth)
        else:
            self.other(value, kind, depth)

    def integer(self, value: int) -> None:
        """Write an integer, in a short form if it has no more than 64 bits."""
        if -_MAX_I64 <= value < _MAX_I64:
            self.put(_tagged_i64(b"j", value))
            return
        size = (value.bit_length() + 8) // 8
        if size > formats.MAX_INT_BYTES:
            raise SizeError(f"an integer of more than {formats.MAX_INT_BYTES} bytes")
        self.sized(b"i", value.to_bytes(size, "little", signed=True))

    def defaults(self, value: Any, depth: int) -> None:
        if value.default_factory not in formats.FACTORY_NAMES:
            return self.other(value, defaultdict, depth)
        self.sized(b"g", formats.FACTORY_NAMES[value.default_factory].encode())
        return self.pairs(b"d", value, depth)

    def decimal(self, value: Decimal) -> None:
        text = str(value)
        if len(text) > formats.MAX_DECIMAL_CHARS or exponent_too_large(value):
            raise SizeError("a Decimal with too many digits or too large an exponent")
        self.sized(b"D", text.encode())

    def fraction(self, value: Fraction, depth: int) -> None:
        parts = (value.numerator, value.denominator)
        if any(part.bit_length() >= 8 * formats.MAX_FRACTION_BYTES for part in parts):
            raise SizeError(f"a Fraction of more than {formats.MAX_FRACTION_BYTES} bytes")
        self.many(b"R", 2, parts, depth)

    def moment(self, tag: bytes, value: Any, depth: int) -> None:
        if not _has_plain_zone(value):
            return self.other(value, type(value), depth)
        return self.sized(tag, value.isoformat().encode())

    def other(self, value: Any, kind: type, depth: int) -> None:
        """Write what becomes something else: a named tuple a tuple, numbers and arrays of numpy those of Python."""
        if is_plain_namedtuple(kind):
            self.many(b"t", tuple.__len__(value), tuple.__iter__(value), depth)
        elif self.numpy is not None and kind in self.numpy.scalars:
            self.value(value.item(), depth)
        elif (
            self.numpy is not None
            and kind is self.numpy.array_type
            and value.dtype.type in self.numpy.scalars
        ):
            # Before anything is made of it: an array takes as little memory as somebody likes (`broadcast_to`).
            if self.items + formats.lists_in(value.shape) > MAX_ITEMS:
                raise SizeError(_TOO_MANY)
            self.value(value.tolist(), depth)
        else:
            raise EncodeError(f"a value of type {kind.__name__!r:.80} is not plain data")


_WRITERS: dict[type, Callable[[_Encoder, Any, int], None]] = {
    tuple: lambda encoder, value, depth: encoder.sequence(b"t", value, tuple, depth),
    list: lambda encoder, value, depth: encoder.sequence(b"l", value, list, depth),
    type(None): lambda encoder, value, depth: encoder.put(b"N"),
    bool: lambda encoder, value, depth: encoder.put(b"T" if value else b"F"),
    int: lambda encoder, value, depth: encoder.integer(value),
    float: lambda encoder, value, depth: encoder.put(_tagged_f64(b"f", value)),
    str: lambda encoder, value, depth: encoder.sized(b"s", value.encode("utf-8", "surrogatepass")),
    dict: lambda encoder, value, depth: encoder.pairs(b"d", value, depth),
    Counter: lambda encoder, value, depth: encoder.pairs(b"C", value, depth),
    OrderedDict: lambda encoder, value, depth: encoder.pairs(b"O", value, depth),
    defaultdict: _Encoder.defaults,
    set: lambda encoder, value, depth: encoder.many(b"S", len(value), value, depth),
    frozenset: lambda encoder, value, depth: encoder.many(b"Z", len(value), value, depth),
    deque: lambda encoder, value, depth: encoder.many(b"q", 1 + len(value), (value.maxlen, *value), depth),
    bytes: lambda encoder, value, depth: encoder.sized(b"b", value),
    bytearray: lambda encoder, value, depth: encoder.sized(b"B", bytes(value)),
    complex: lambda encoder, value, depth: encoder.put(b"c" + formats.C128.pack(value.real, value.imag)),
    range: lambda encoder, value, depth: encoder.many(b"r", 3, (value.start, value.stop, value.step), depth),
    Decimal: lambda encoder, value, depth: encoder.decimal(value),
    Fraction: _Encoder.fraction,
    datetime: lambda encoder, value, depth: encoder.moment(b"m", value, depth),
    time: lambda encoder, value, depth: encoder.moment(b"h", value, depth),
    date: lambda encoder, value, depth: encoder.sized(b"y", value.isoformat().encode()),
    timedelta: lambda encoder, value, depth: encoder.many(
        b"e", 3, (value.days, value.seconds, value.microseconds), depth),
}  # fmt: skip


def _packed(values: Any, kind: type) -> bytes | None:
    """Return a list or tuple of nothing but small integers and floats; None for any other."""
    kinds = set(map(type, values))
    if not kinds <= PACKED_CODES.keys():
        return None
    try:
        if len(kinds) == 2:
            codes = "".join(map(PACKED_CODES.__getitem__, map(type, values)))
            head = _sized(formats.MIXED_TAGS[kind], len(values)) + codes.encode()
            return head + Struct(f"<{codes}").pack(*values)
        packed = array(code := PACKED_CODES[kinds.pop()], values)
    except (OverflowError, StructError):  # an integer of more than 64 bits
        return None
    if byteorder == "big":
        packed.byteswap()
    return _sized(formats.PACKED_TAGS[kind, code], 8 * len(values)) + packed.tobytes()


def is_plain_namedtuple(kind: type) -> bool:
    """Whether values of this type are tuples with names, and compare as tuples do."""
    fields = kind.__dict__.get("_fields")
    return (
        kind.__bases__ == (tuple,)
        and type(fields) is tuple
        and all(type(name) is str for name in fields)
        and "__eq__" not in kind.__dict__
    )


def exponent_too_large(number: Decimal) -> bool:
    """Whether arithmetic with a number would take very many digits."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) > formats.MAX_DECIMAL_CHARS


def _has_plain_zone(value: Any) -> bool:
    zone = value.tzinfo
    return zone is None or (type(zone) is timezone and str(zone).startswith("UTC"))


def encode(value: Any, *, numpy: Numpy | None = None, limit: int = 1 << 26) -> bytes:
    r"""Turn plain data into bytes, at most `limit`; with `numpy`, also its numbers and arrays, as Python's.

    Raises:
        EncodeError: The value is not plain data; `SizeError` if it is too large.

    Example:
        >>> encode([None, True])
        b'l\x02\x00\x00\x00NT'
    """
    kind = type(value)
    if kind is int and -_MAX_I64 <= value < _MAX_I64:
        return _tagged_i64(b"j", value)
    if kind is bool:
        return b"T" if value else b"F"
    if value is None:
        return b"N"
    encoder = _Encoder(numpy, limit)
    try:
        encoder.value(value)
    except (EncodeError, MemoryError):
        raise
    except (
        Exception
    ) as error:  # of a class that lies about itself, or a container that changes meanwhile
        raise EncodeError(f"the value cannot be copied: {type(error).__name__}") from None
    return bytes(encoder.data)
