"""What objects hold that are instances of builtin types or of classes derived from them; containers that both sides have.

A call gets copies of containers, and what it changes in them changes the originals. A message numbers the containers in it
(`codec.encode` with `containers`), so that both sides have the same table of them. After a call the contents of those that
have changed are sent back, in which a container of the table stands as a reference to it. So nesting, aliases and identity
survive, as in one process.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from types import FunctionType, NoneType
from typing import Any

from .. import codec
from ..codec.formats import FACTORY_NAMES

CONSTANT: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
"""Types whose values do not change: a copy goes with the handle."""

_CHANGING: dict[type, Callable[[Any], Any]] = {
    list: lambda value: list(list.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    deque: lambda value: deque(deque.__iter__(value), value.maxlen),
    bytearray: lambda value: bytearray(memoryview(value)),
}
_KINDS_OF_DICT = (OrderedDict, Counter, defaultdict)
CONTAINERS = frozenset({*_CHANGING, *_KINDS_OF_DICT})
"""The types of containers that change. What an object keeps in one of them stays with the object."""

BASES: tuple[type, ...] = (*CONSTANT, *_CHANGING, *_KINDS_OF_DICT)
"""The types that a handle can say it holds a value of, by their place in here."""

_PLACES = {kind: place for place, kind in enumerate(BASES)}
NOTHING, FUNCTION = 0, 1
"""The codes of an object that holds no builtin data, and of a function, which becomes a method in a class."""
KIND, OWN_EQUALITY, OWN_OPERATORS, CLASS = 63, 64, 128, 256
"""The part of a code that says what is held; and flags: its class says itself what equals its objects, or what another
operator does with them; it is a class. A program that hides one of them gains nothing: then nobody asks it."""
_OPERATORS = frozenset({
    *(f"__{prefix}{name}__" for prefix in ("", "r", "i") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor", "lshift",
        "rshift")),
    "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__len__", "__iter__", "__reversed__", "__getitem__",
    "__bool__", "__abs__", "__neg__", "__pos__", "__invert__", "__int__", "__float__", "__index__", "__complex__",
    "__round__", "__hash__",
})  # fmt: skip


def code_of(kind: type) -> int:
    """Return what a handle says of its object's class: the builtin type that it is, or the one that it is derived from."""
    if kind in CONTAINERS:
        return 3 + 2 * _PLACES[kind]
    if kind is FunctionType:
        return FUNCTION
    for base in (*CONSTANT, *_CHANGING):
        if issubclass(kind, base):
            return 2 + 2 * _PLACES[base]
    return NOTHING


def own_of(kind: type, home: str) -> int:
    """Return the flags of a class: what classes of its own module, from which it is derived, say of operators."""
    flags = 0
    for base in kind.__mro__:
        equality = vars(base).get("__eq__")
        # That of a dataclass compares with objects of the same class only.
        written = getattr(getattr(equality, "__code__", None), "co_filename", "") != "<string>"
        decides = base.__module__ == home or (code_of(kind) == NOTHING and base is not object)
        if equality is not None and written and decides:
            flags |= OWN_EQUALITY
        if base.__module__ != home:
            continue
        # `__hash__ = None` stands beside each `__eq__`; those of a Flag are put there by its metaclass.
        defined = (vars(base)[name] for name in _OPERATORS & vars(base).keys())
        if any(getattr(each, "__module__", None) == home for each in defined):
            flags |= OWN_OPERATORS
    return flags


def base_of(code: int) -> type | None:
    """Return the builtin type of a code, if it has one.

    Raises:
        IndexError: There is no such code.
    """
    return BASES[code // 2 - 1] if code > FUNCTION else None


def is_exact(code: int) -> bool:
    """Whether the object is an instance of the builtin type itself."""
    return code > FUNCTION and code % 2 == 1


def held_by(value: Any) -> Any:
    """Return a copy of what an object holds, as a builtin type.

    Raises:
        TypeError: It holds none.
    """
    kind = type(value)
    if kind in CONTAINERS and (kind is not defaultdict or value.default_factory in FACTORY_NAMES):
        return value  # plain data itself
    for base, copied in (_CHANGING | CONSTANT).items():
        if isinstance(value, base):
            return copied(value)
    raise TypeError(f"{kind.__name__!r} holds no plain data")


_FLAT = frozenset({bool, bytes, float, int, str, NoneType})
_MOST = 1000


def flat(value: Any) -> Any:
    """Return a copy of a small container in which nothing is kept; None for any other."""
    kind = type(value)
    if len(value) > _MOST or kind is defaultdict:
        return None
    if isinstance(value, dict) and not _FLAT.issuperset(map(type, value.values())):
        return None
    if kind is not bytearray and not _FLAT.issuperset(map(type, value)):
        return None
    return kind(value) if kind is not deque else deque(value, value.maxlen)


class Kept:
    """Marks what crosses as a handle: a container that an object holds on to, and a class also where both sides know it.

    To call that class is to call the program.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def kept(value: Any) -> Any:
    """Return a value as it is looked at in place: containers are kept."""
    return Kept(value) if type(value) in CONTAINERS else value


def kept_items(value: Any) -> Any:
    """Return what an object holds, where containers in it are kept."""
    held = held_by(value)
    if isinstance(held, dict):
        return {key: kept(item) for key, item in held.items()}
    if type(held) in (list, tuple, deque):
        return [kept(item) for item in held]
    return held


# Containers that both sides have

_MAPPINGS = (dict, *_KINDS_OF_DICT)

Table = list[Any]
Changes = list[tuple[int, Any]]


def content(container: Any) -> Any:
    """Return what is in a container, as a tuple or bytes."""
    kind = type(container)
    if kind in _MAPPINGS:
        return tuple(chain.from_iterable(container.items()))
    if kind in (list, deque, set):
        return tuple(container)
    return bytes(container) if kind is bytearray else container.tobytes()


def snapshot(table: Table) -> list[Any]:
    """Return the contents of all containers of a table."""
    return [content(container) for container in table]


def changes(table: Table, before: Sequence[Any]) -> Changes:
    """Which containers have changed since a snapshot, with what is in them now."""
    found = []
    for index, old in enumerate(before):
        new = content(table[index])
        if type(old) is bytes:
            same = bool(old == new)
        else:  # by identity: `==` could run foreign code; what is put back in its place counts as unchanged
            same = len(old) == len(new) and all(map(is_, old, new))
        if not same:
            found.append((index, new))
    return found


def apply(table: Table, changed: Any, numpy: codec.Numpy | None) -> None:
    """Change containers as the other side has changed its copies.

    Raises:
        DecodeError: The changes do not fit the table.
    """
    if type(changed) is not tuple:
        raise codec.DecodeError("malformed changes")
    try:
        for index, new in changed:
            if type(index) is not int or index < 0:
                raise codec.DecodeError("a change of a container that is not there")
            _replace(table[index], new, numpy)
    except (LookupError, TypeError, ValueError) as error:
        raise codec.DecodeError(f"a change that does not fit: {error}") from None


def _replace(container: Any, new: Any, numpy: codec.Numpy | None) -> None:
    kind = type(container)
    if type(new) is not (tuple if kind in (*_MAPPINGS, list, deque, set) else bytes):
        raise codec.DecodeError("a change of another type")
    if kind in _MAPPINGS:
        pairs = list(zip(new[::2], new[1::2], strict=True))
        codec.check_hashes([key for key, _ in pairs])
        container.clear()
        (OrderedDict if kind is OrderedDict else dict).update(container, pairs)
    elif kind is set:
        codec.check_hashes(new)
        container.clear()
        container.update(new)
    elif kind is deque:
        container.clear()
        container.extend(new)
    elif kind in (list, bytearray):
        container[:] = new
    elif numpy is not None:
        container[...] = numpy.frombuffer(new, dtype=container.dtype).reshape(container.shape)
