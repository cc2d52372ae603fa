"""The codec: what is written comes back, type for type, and no bytes do more than raise DecodeError."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import struct
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.codec import formats

np = pytest.importorskip("numpy")
NUMPY = codec.Numpy(np)


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit and type."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, (list, tuple, deque)):
        same_length = getattr(left, "maxlen", 0) == getattr(right, "maxlen", 0)
        return len(left) == len(right) and all(map(same, left, right)) and same_length
    if isinstance(left, dict):
        factories = getattr(left, "default_factory", 0) == getattr(right, "default_factory", 0)
        return same(list(left.items()), list(right.items())) and factories
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and all(
            any(same(a, b) for b in right) for a in left
        )  # not `==`: 1 and True and 1.0 are equal
    if isinstance(left, Decimal):
        return left.as_tuple() == right.as_tuple()
    return bool(left == right)


zones = st.sampled_from([None, datetime.UTC, datetime.timezone(-datetime.timedelta(hours=3))])
keys = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**300), 2**300)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.binary(max_size=8)
    | st.complex_numbers()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=zones)
    | st.times()
    | st.timedeltas()
    | st.builds(range, st.integers(-9, 10**20), st.integers(-9, 9), st.sampled_from([1, 2, -3])),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values = st.recursive(
    keys
    | st.binary(max_size=8).map(bytearray)
    | st.lists(st.integers(), min_size=8, max_size=20)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=8, max_size=20).map(tuple)
    | st.lists(st.floats(), min_size=8, max_size=20)
    | st.lists(st.floats() | st.integers(), min_size=4, max_size=9)
    | st.lists(st.floats() | st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=9).map(tuple)
    | st.sets(keys, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4).map(OrderedDict)
        | st.dictionaries(keys, inner, max_size=4).map(lambda items: defaultdict(list, items))
        | st.builds(deque, st.lists(inner, max_size=4), st.sampled_from([None, 3]))
        | st.lists(st.text(max_size=2), max_size=5).map(Counter)
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(values)
def test_every_supported_value_comes_back(value: Any) -> None:
    data = codec.encode(value)
    assert same(codec.decode(data), value)
    for cut in {data[:0], data[: len(data) // 2], data[:-1], data + b"N"}:
        with pytest.raises(codec.DecodeError):
            codec.decode(cut)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda rest: b"l\4\0\0\0" + rest))
def test_random_bytes_only_raise_decode_errors(data: bytes) -> None:
    with contextlib.suppress(codec.DecodeError):
        codec.decode(data)


@settings(max_examples=100, deadline=None)
@given(values, st.data())
def test_changed_bytes_only_raise_decode_errors(value: Any, data: st.DataObject) -> None:
    written = bytearray(codec.encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(written) - 1))
        action = data.draw(st.sampled_from(["change", "cut", "insert"]))
        if action == "change":
            written[index] = data.draw(st.integers(0, 255))
        elif action == "cut" and index:
            del written[index:]
        else:
            written.insert(index, data.draw(st.integers(0, 255)))
    with contextlib.suppress(codec.DecodeError):
        codec.decode(bytes(written))


def test_arrays_become_lists_and_numpy_scalars_python_numbers() -> None:
    for array in (
        np.array([1.5, math.nan, -0.0]),
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.array(7),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.arange(6).reshape(2, 3).T,
        np.array([1, 2], dtype=">i4"),
        np.array([np.inf, 1.5], dtype=np.float16),
        np.array([2**64 - 1], dtype=np.uint64),
    ):
        assert same(codec.decode(codec.encode([array], numpy=NUMPY))[0], array.tolist())
    scalars = [np.int8(-3), np.uint64(2**64 - 1), np.float32(0.5), np.bool_(True), np.complex64(1j)]
    scalars += [np.float16("inf"), np.longlong(3), {np.int64(1): np.float64(2)}]
    expected = [-3, 2**64 - 1, 0.5, True, 1j, math.inf, 3, {1: 2.0}]
    assert same(codec.decode(codec.encode(scalars, numpy=NUMPY)), expected)


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.float64(1), (10**9,)),
        np.broadcast_to(np.True_, (10**5, 10**5)),
        np.empty((10**12, 0)),
        np.empty((10**5, 10**5, 0)),
        [np.broadcast_to(np.int8(1), (9_000_000,))] * 2,
    ],
    ids=["long", "square", "empty", "empty squares", "two"],
)
def test_arrays_are_measured_before_anything_is_made_of_them(array: Any) -> None:
    started = time.process_time()
    with pytest.raises(codec.SizeError):
        codec.encode(array, numpy=NUMPY)
    assert time.process_time() - started < 5  # to make what is refused would take minutes


class IntSubclass(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class ListSubclass(list[Any]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        IntSubclass(3), ListSubclass([1]), object(), int, len, (x for x in ()), ..., [1, {2: [object()]}],
        defaultdict(lambda: 1), memoryview(b"x"),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), "mine")),
        np.str_("a"), np.bytes_(b"a"), np.datetime64("2020-01-01"), np.timedelta64(1), np.longdouble(1),
        np.array(["a"]), np.array(["2020"], dtype="datetime64[D]"), np.ma.masked, np.ma.array([1]),
        np.matrix([1]), np.array([1], dtype=np.longdouble), np.recarray(1, dtype=[("a", "i4")]),
        np.array([object()]), np.zeros(2, dtype=[("a", "i4")]), np.zeros(2, dtype="V3"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_anything_else_is_refused(value: Any) -> None:
    for numpy in (NUMPY, None):
        with pytest.raises(codec.EncodeError):
            codec.encode(value, numpy=numpy)


def test_named_tuples_cross_as_tuples() -> None:
    point = namedtuple("point", "x y")
    assert same(codec.decode(codec.encode(point(1, [2]))), (1, [2]))

    class Pleasing(point):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = point.__hash__

    with pytest.raises(codec.EncodeError):
        codec.encode(Pleasing(1, 2))


# Packed numbers


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63), 0.5, -0.0, math.inf])
def test_long_sequences_of_one_kind_of_number_are_packed(number: Any) -> None:
    for kind in (list, tuple):
        long, short = kind([number] * 4), kind([number] * 3)
        assert len(codec.encode(long)) == 1 + 4 + 4 * 8
        assert same(codec.decode(codec.encode(long)), long)
        assert codec.encode(short)[:1] in (b"l", b"t")
        assert same(codec.decode(codec.encode(short)), short)
        other = kind([*[number] * 7, None])
        assert codec.encode(other)[:1] in (b"l", b"t")
        assert same(codec.decode(codec.encode(other)), other)


# Bounds


def test_sizes_are_bounded_while_writing() -> None:
    for value in ("x" * 1001, b"x" * 1001, [1] * 1000, list(range(126)), {"k": "y" * 999}):
        with pytest.raises(codec.SizeError):
            codec.encode(value, limit=1000)
    for value in (1 << (8 * formats.MAX_INT_BYTES), Decimal("1e10001"), Fraction(1, 1 << 20000)):
        with pytest.raises(codec.SizeError):
            codec.encode(value)


def integer(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    return b"i" + struct.pack("<I", size) + value.to_bytes(size, "little", signed=True)


HUGE = integer(1 << (8 * formats.MAX_INT_BYTES - 8))


@pytest.mark.parametrize(
    "data",
    [
        b"s\xff\xff\xff\xff",
        b"i\xff\xff\xff\x7f",
        b"d\2\0\0\0l\0\0\0\0N",
        b"R\2\0\0\0" + HUGE + HUGE[:-1] + b"\1",
        b"r\3\0\0\0" + integer(0) + integer(5) + integer(0),
        b"y\4\0\0\0soon",
        b"e\3\0\0\0" + integer(10**30) + integer(0) + integer(0),
        b"q\0\0\0\0",
        b"q\1\0\0\0s\0\0\0\0",
        b"g\6\0\0\0object",
        b"g\3\0\0\0intN",
        b"a" + codec.encode("|O") + codec.encode((1,)) + codec.encode(b"12345678"),
        b"a" + codec.encode("<f8") + codec.encode((2,)) + codec.encode(b"12345678"),
        b"a" + codec.encode("<f8") + codec.encode((-1,)) + codec.encode(b"12345678"),
        b"a" + codec.encode("<f8,<f8") + codec.encode((1,)) + codec.encode(b"1234567812345678"),
        b"@\0\0\0\0",
        b"I" + struct.pack("<I", 33) + bytes(33),
        b"J" + struct.pack("<I", 32) + bytes(31),
        b"G\4\0\0\0qdqx" + bytes(32),
        b"H\xff\xff\xff\xffqdqd" + bytes(32),
    ],
)
def test_hostile_bytes_are_refused_quickly(data: bytes) -> None:
    started = time.process_time()
    with pytest.raises(codec.DecodeError):
        codec.decode(data)
    assert time.process_time() - started < 0.2


def colliding(count: int) -> list[int]:
    modulus = (1 << 61) - 1  # of the hash of integers
    return [7 + modulus * index for index in range(count)]


def test_keys_of_one_hash_are_bounded() -> None:
    allowed = dict.fromkeys(colliding(formats.MAX_EQUAL_HASHES))
    assert codec.decode(codec.encode(allowed)) == allowed
    too_many = colliding(formats.MAX_EQUAL_HASHES + 1)
    for value in (dict.fromkeys(too_many), set(too_many), frozenset(too_many)):
        with pytest.raises(codec.DecodeError, match="same hash"):
            codec.decode(codec.encode(value))
    started = time.process_time()
    with pytest.raises(codec.DecodeError, match="same hash"):
        codec.check_hashes(colliding(100_000))
    assert time.process_time() - started < 2.0
    codec.check_hashes([1, 1.0, True] * 10_000)  # equal ones are no collisions


def test_what_keys_of_one_hash_have_compared_is_bounded() -> None:
    grid = set(itertools.product(range(-3, 4), repeat=4))  # -1 and -2 have one hash
    for budget in (codec.VALUES, codec.CHEAP):
        assert codec.decode(codec.encode(grid), meter=codec.Meter(budget)) == grid
    large = [(*range(20_000), key) for key in colliding(20)]
    inner = [(*range(100), key) for key in colliding(30)]
    data = encode_sets([encode_sets([*inner, (each,)]) for each in colliding(50)])
    started = time.process_time()
    with pytest.raises(codec.BudgetError, match="large keys with the same hash"):
        codec.check_hashes(large)
    with pytest.raises(codec.BudgetError, match="large keys with the same hash"):
        codec.decode(data)
    assert time.process_time() - started < 2.0


def encode_sets(members: list[Any]) -> bytes:
    """A frozenset of values, or of what is encoded already; nothing is hashed."""
    parts = [each if isinstance(each, bytes) else codec.encode(each) for each in members]
    return b"Z" + len(parts).to_bytes(4, "little") + b"".join(parts)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("item", [1, 0.5])
def test_many_numbers_are_read_piece_by_piece(kind: type, item: float) -> None:
    for values in (kind([item] * 200_001), kind([1, 0.5] * 100_001)):
        assert codec.decode(codec.encode(values)) == values
