"""What objects hold that are instances of builtin types or of classes derived from them."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType, NoneType
from typing import Any

from ..formats import FACTORY_NAMES

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


def code_of(kind: type) -> int:
    """What a handle says of its object's class: the builtin type that it is, or the one that it is derived from."""
    if kind in CONTAINERS:
        return 3 + 2 * _PLACES[kind]
    if kind is FunctionType:
        return FUNCTION
    for base in (*CONSTANT, *_CHANGING):
        if issubclass(kind, base):
            return 2 + 2 * _PLACES[base]
    return NOTHING


def base_of(code: int) -> type | None:
    """The builtin type of a code, if it has one.

    Raises:
        IndexError: There is no such code.
    """
    return BASES[code // 2 - 1] if code > FUNCTION else None


def is_exact(code: int) -> bool:
    """Whether the object is an instance of the builtin type itself."""
    return code > FUNCTION and code % 2 == 1


def held_by(value: Any) -> Any:
    """A copy of what an object holds, as a builtin type.

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
    """A copy of a small container in which nothing is kept; None for any other."""
    kind = type(value)
    if len(value) > _MOST or kind is defaultdict:
        return None
    if isinstance(value, dict) and not _FLAT.issuperset(map(type, value.values())):
        return None
    if kind is not bytearray and not _FLAT.issuperset(map(type, value)):
        return None
    return kind(value) if kind is not deque else deque(value, value.maxlen)


class Kept:
    """Marks a container that stays where it is, and crosses as a handle.

    Attributes:
        container: A list, dict, set, ... that an object holds on to.
    """

    __slots__ = ("container",)

    def __init__(self, container: Any) -> None:
        self.container = container


def kept(value: Any) -> Any:
    """A value as it is looked at in place: containers are kept."""
    return Kept(value) if type(value) in CONTAINERS else value


def kept_items(value: Any) -> Any:
    """What an object holds, where containers in it are kept."""
    held = held_by(value)
    if isinstance(held, dict):
        return {key: kept(item) for key, item in held.items()}
    if type(held) in (list, tuple, deque):
        return [kept(item) for item in held]
    return held
