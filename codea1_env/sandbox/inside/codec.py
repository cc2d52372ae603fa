"""A strict binary codec for plain data, the only thing that crosses a process boundary.

Exact types only: a subclass could carry behaviour (`__eq__`, `__reduce__`), and nothing that is decoded
may run foreign code. There is no pickle, no marshal and no eval. Objects that are not plain data are
either refused or, where the caller gives `refer`, replaced by a small reference.

Layout: one tag byte, then a payload; counts and lengths are unsigned 32-bit little-endian numbers.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_DEPTH = 100
MAX_ITEMS = 16_000_000
MAX_INT_BYTES = 1 << 20  # about 2.5 million decimal digits
MAX_DECIMAL_CHARS = 10_000
# Many keys with one hash turn a set or dict into a linear search: a reply must not cost us minutes.
MAX_EQUAL_HASHES = 200

_U32 = struct.Struct("<I")
_F64 = struct.Struct("<d")
_C128 = struct.Struct("<dd")

_FACTORIES: dict[str, Any] = {
    "None": None, "int": int, "float": float, "str": str, "list": list, "dict": dict,
    "set": set, "tuple": tuple, "bool": bool,
}  # fmt: skip
_FACTORY_NAMES = {factory: name for name, factory in _FACTORIES.items()}

Refer = Callable[[Any], "tuple[str, Any] | None"]
Resolve = Callable[[str, Any], Any]
Named = Callable[[str, "tuple[str, ...]"], Callable[..., Any]]


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


class Numpy:
    """The types of an imported numpy that the codec understands. Built once, before foreign code runs."""

    def __init__(self, numpy: Any) -> None:
        self.array_type = numpy.ndarray
        self.frombuffer = numpy.frombuffer
        self.scalars = {
            getattr(numpy, name): None
            for name in (
                "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                "float16", "float32", "float64", "complex64", "complex128",
            )
        }  # fmt: skip


def _length(number: int) -> bytes:
    return _U32.pack(number)


class _Encoder:
    def __init__(self, refer: Refer | None, numpy: Numpy | None, limit: int) -> None:
        self.data = bytearray()
        self.refer = refer
        self.numpy = numpy
        self.limit = limit
        self.items = 0

    def put(self, part: bytes) -> None:
        self.data += part
        if len(self.data) > self.limit:
            raise SizeError("the value is larger than the limit for one value")

    def sized(self, tag: bytes, payload: bytes) -> None:
        self.put(tag + _length(len(payload)))
        self.put(payload)

    def many(self, tag: bytes, count: int, values: Iterable[Any], depth: int) -> None:
        self.items += count
        if self.items > MAX_ITEMS:
            raise SizeError(f"the value has more than {MAX_ITEMS} items")
        self.put(tag + _length(count))
        seen = 0
        for value in values:
            self.value(value, depth + 1)
            seen += 1
        if seen != count:
            raise EncodeError("a container changed while it was being copied")

    def pairs(self, tag: bytes, mapping: dict[Any, Any], depth: int) -> None:
        flat = [part for item in dict.items(mapping) for part in item]
        self.many(tag, len(flat), flat, depth)

    def value(self, value: Any, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise EncodeError(f"the value is cyclic or nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if value is None:
            self.put(b"N")
        elif kind is bool:
            self.put(b"T" if value else b"F")
        elif kind is int:
            size = (value.bit_length() + 8) // 8
            if size > MAX_INT_BYTES:
                raise SizeError(f"an integer of more than {MAX_INT_BYTES} bytes")
            self.sized(b"i", value.to_bytes(size, "little", signed=True))
        elif kind is float:
            self.put(b"f" + _F64.pack(value))
        elif kind is str:
            self.sized(b"s", value.encode("utf-8", "surrogatepass"))
        elif kind is list:
            self.many(b"l", len(value), value, depth)
        elif kind is tuple:
            self.many(b"t", len(value), value, depth)
        elif kind is dict:
            self.pairs(b"d", value, depth)
        else:
            self.rarer(value, kind, depth)

    def rarer(self, value: Any, kind: type, depth: int) -> None:
        if kind is set:
            self.many(b"S", len(value), value, depth)
        elif kind is frozenset:
            self.many(b"Z", len(value), value, depth)
        elif kind is bytes:
            self.sized(b"b", value)
        elif kind is bytearray:
            self.sized(b"B", bytes(value))
        elif kind is complex:
            self.put(b"c" + _C128.pack(value.real, value.imag))
        elif kind is range:
            self.many(b"r", 3, (value.start, value.stop, value.step), depth)
        elif kind is Decimal:
            text = str(value)
            if len(text) > MAX_DECIMAL_CHARS or _exponent_too_large(value):
                raise SizeError("a Decimal with too many digits or too large an exponent")
            self.sized(b"D", text.encode())
        elif kind is Fraction:
            self.many(b"R", 2, (value.numerator, value.denominator), depth)
        elif kind is datetime and value.tzinfo is None:
            self.sized(b"m", value.isoformat().encode())
        elif kind is date:
            self.sized(b"y", value.isoformat().encode())
        elif kind is time and value.tzinfo is None:
            self.sized(b"h", value.isoformat().encode())
        elif kind is timedelta:
            self.many(b"e", 3, (value.days, value.seconds, value.microseconds), depth)
        elif kind is deque:
            self.many(b"q", 1 + len(value), (value.maxlen, *value), depth)
        elif kind is Counter:
            self.pairs(b"C", value, depth)
        elif kind is OrderedDict:
            self.pairs(b"O", value, depth)
        elif kind is defaultdict and value.default_factory in _FACTORY_NAMES:
            self.sized(b"g", _FACTORY_NAMES[value.default_factory].encode())
            self.pairs(b"d", value, depth)
        elif _is_plain_namedtuple(kind):
            fields = tuple.__iter__(value)
            self.many(b"n", 2 + tuple.__len__(value), (kind.__name__, kind._fields, *fields), depth)  # type: ignore[attr-defined]
        elif self.numpy is not None and kind in self.numpy.scalars:
            self.value(value.item(), depth)
        elif self.numpy is not None and kind is self.numpy.array_type and not value.dtype.hasobject:
            self.put(b"a")
            self.value(value.dtype.str, depth + 1)
            self.value(value.shape, depth + 1)
            self.sized(b"b", value.tobytes())
        else:
            reference = self.refer(value) if self.refer is not None else None
            if reference is None:
                raise EncodeError(f"a value of type {kind.__name__!r:.80} is not plain data")
            self.put(b"x")
            self.value(reference[0], depth + 1)
            self.value(reference[1], depth + 1)


def _is_plain_namedtuple(kind: type) -> bool:
    """Whether values of this type are tuples with names, and compare as tuples do."""
    fields = kind.__dict__.get("_fields")
    return (
        kind.__bases__ == (tuple,)
        and type(fields) is tuple
        and all(type(name) is str for name in fields)
        and "__eq__" not in kind.__dict__
    )


def _exponent_too_large(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) > MAX_DECIMAL_CHARS


def encode(
    value: Any, *, refer: Refer | None = None, numpy: Numpy | None = None, limit: int = 1 << 26
) -> bytes:
    """Turns plain data into bytes.

    Args:
        value: Plain data: exact builtin types and a few of the standard library.
        refer: Called for anything else; returns a kind and plain data that stand for the object, or None.
        numpy: Lets numpy scalars and arrays cross (scalars as Python numbers).
        limit: Largest size of the result in bytes.

    Raises:
        EncodeError: The value is not plain data; `SizeError` if it is too large.

    Example:
        >>> decode(encode([1, ("a", {2.5: None})]))
        [1, ('a', {2.5: None})]
    """
    encoder = _Encoder(refer, numpy, limit)
    try:
        encoder.value(value)
    except (RecursionError, RuntimeError) as error:
        raise EncodeError(f"the value cannot be copied: {type(error).__name__}") from None
    return bytes(encoder.data)


class _Decoder:
    def __init__(
        self, data: bytes, resolve: Resolve | None, numpy: Numpy | None, named: Named | None
    ) -> None:
        self.named = named
        self.data = data
        self.position = 0
        self.items = 0
        self.resolve = resolve
        self.numpy = numpy

    def take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise DecodeError("the data ends early")
        part = self.data[self.position : end]
        self.position = end
        return part

    def length(self) -> int:
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def many(self, depth: int) -> list[Any]:
        count = self.length()
        self.items += count
        # Every item takes at least one byte, so that a forged count cannot make us allocate.
        if self.items > MAX_ITEMS or count > len(self.data) - self.position:
            raise DecodeError("more items announced than can follow")
        return [self.value(depth + 1) for _ in range(count)]

    def exactly(self, count: int, kind: type, depth: int) -> list[Any]:
        values = self.many(depth)
        if len(values) != count or any(type(value) is not kind for value in values):
            raise DecodeError(f"expected {count} values of type {kind.__name__}")
        return values

    def text(self) -> str:
        try:
            return self.take(self.length()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise DecodeError("invalid text") from None

    def unique(self, keys: list[Any]) -> list[Any]:
        check_hashes(keys)
        return keys

    def mapping(self, depth: int) -> list[tuple[Any, Any]]:
        flat = self.many(depth)
        if len(flat) % 2:
            raise DecodeError("a key without a value")
        self.unique(flat[::2])
        return list(zip(flat[::2], flat[1::2], strict=True))

    def value(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise DecodeError(f"nested more than {MAX_DEPTH} deep")
        tag = self.take(1)
        if tag == b"N":
            return None
        if tag == b"T":
            return True
        if tag == b"F":
            return False
        if tag == b"i":
            size = self.length()
            if size > MAX_INT_BYTES:
                raise DecodeError("an integer with too many digits")
            return int.from_bytes(self.take(size), "little", signed=True)
        if tag == b"f":
            return _F64.unpack(self.take(8))[0]
        if tag == b"s":
            return self.text()
        if tag == b"l":
            return self.many(depth)
        if tag == b"t":
            return tuple(self.many(depth))
        if tag == b"d":
            return dict(self.mapping(depth))
        return self.rarer(tag, depth)

    def rarer(self, tag: bytes, depth: int) -> Any:
        if tag == b"S":
            return set(self.unique(self.many(depth)))
        if tag == b"Z":
            return frozenset(self.unique(self.many(depth)))
        if tag == b"b":
            return self.take(self.length())
        if tag == b"B":
            return bytearray(self.take(self.length()))
        if tag == b"c":
            return complex(*_C128.unpack(self.take(16)))
        if tag == b"r":
            return range(*self.exactly(3, int, depth))
        if tag == b"D":
            return self.decimal()
        if tag == b"R":
            return Fraction(*self.exactly(2, int, depth))
        if tag == b"m":
            return datetime.fromisoformat(self.text())
        if tag == b"y":
            return date.fromisoformat(self.text())
        if tag == b"h":
            return time.fromisoformat(self.text())
        if tag == b"e":
            days, seconds, microseconds = self.exactly(3, int, depth)
            return timedelta(days, seconds, microseconds)
        if tag == b"q":
            maxlen, *values = self.many(depth) or [0]
            if maxlen is not None and type(maxlen) is not int:
                raise DecodeError("a deque with a strange length")
            return deque(values, maxlen)
        if tag == b"C":
            counter: Counter[Any] = Counter()
            dict.update(counter, self.mapping(depth))
            return counter
        if tag == b"O":
            return OrderedDict(self.mapping(depth))
        if tag == b"g":
            factory = self.text()
            if factory not in _FACTORIES or self.take(1) != b"d":
                raise DecodeError("a defaultdict with a strange factory")
            return defaultdict(_FACTORIES[factory], self.mapping(depth))
        if tag == b"n":
            return self.named_tuple(self.many(depth))
        if tag == b"a":
            return self.array(depth)
        if tag == b"x" and self.resolve is not None:
            kind = self.value(depth + 1)
            return self.resolve(kind, self.value(depth + 1))
        raise DecodeError(f"unknown tag {tag!r}")

    def named_tuple(self, parts: list[Any]) -> Any:
        if len(parts) < 2 or type(parts[0]) is not str or type(parts[1]) is not tuple:
            raise DecodeError("a malformed named tuple")
        name, fields, *values = parts
        if len(fields) != len(values) or any(type(field) is not str for field in fields):
            raise DecodeError("a malformed named tuple")
        return self.named(name, fields)(*values) if self.named is not None else tuple(values)

    def decimal(self) -> Decimal:
        text = self.text()
        if len(text) > MAX_DECIMAL_CHARS:
            raise DecodeError("a Decimal with too many digits")
        number = Decimal(text)
        if _exponent_too_large(number):
            raise DecodeError("a Decimal with too large an exponent")
        return number

    def array(self, depth: int) -> Any:
        dtype, shape, data = (self.value(depth + 1) for _ in range(3))
        plain = type(dtype) is str and type(shape) is tuple and type(data) is bytes
        if not plain or len(dtype) > 32 or any(type(axis) is not int or axis < 0 for axis in shape):
            raise DecodeError("a malformed array")
        if self.numpy is None:
            return NdArray(dtype, shape, data)
        return self.numpy.frombuffer(data, dtype=dtype).reshape(shape).copy()


def check_hashes(keys: Iterable[Any]) -> None:
    """Refuses keys of which very many share one hash.

    Raises:
        DecodeError: A key is not hashable, or too many keys collide.
    """
    counts: dict[int, int] = {}
    for key in keys:
        try:
            digest = hash(key)
        except TypeError:
            raise DecodeError("an unhashable key") from None
        counts[digest] = count = counts.get(digest, 0) + 1
        if count > MAX_EQUAL_HASHES:
            raise DecodeError("too many keys with the same hash")


def decode(
    data: bytes,
    *,
    resolve: Resolve | None = None,
    numpy: Numpy | None = None,
    named: Named | None = None,
) -> Any:
    """Turns bytes back into the data that `encode` was given.

    Args:
        data: Bytes from a process that may be hostile.
        resolve: Turns a reference (its kind and its data) into an object.
        numpy: Decodes arrays to real ones; without it they become `NdArray`.
        named: Makes the class of a named tuple from its name and fields; without it they become tuples.

    Raises:
        DecodeError: The bytes are not exactly one encoded value.
    """
    decoder = _Decoder(data, resolve, numpy, named)
    try:
        value = decoder.value()
    except (
        ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise DecodeError(f"malformed data: {type(error).__name__}: {error}") from None
    if decoder.position != len(data):
        raise DecodeError("trailing bytes")
    return value
