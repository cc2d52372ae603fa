"""The operations that one side can ask the other for by name."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

_BUILTIN_OPERATIONS = (
    "abs", "aiter", "anext", "bool", "bytes", "complex", "dir", "divmod", "float", "format", "hash",
    "int", "iter", "len", "next", "pow", "repr", "reversed", "round", "str",
)  # fmt: skip
_OPERATORS = (
    "add", "and_", "contains", "delitem", "eq", "floordiv", "ge", "getitem", "gt", "iadd", "iand",
    "ifloordiv", "ilshift", "imatmul", "imod", "imul", "index", "invert", "ior", "ipow", "irshift",
    "isub", "itruediv", "ixor", "le", "lshift", "lt", "matmul", "mod", "mul", "ne", "neg", "or_",
    "pos", "rshift", "setitem", "sub", "truediv", "xor",
)  # fmt: skip

# Types with subclasses that have behaviour of their own, but compare as what they hold.
CONSTANT_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
CHANGING_BASES: dict[type, Callable[[Any], Any]] = {
    list: lambda value: list(list.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    deque: lambda value: deque(deque.__iter__(value), value.maxlen),
    bytearray: lambda value: bytearray(memoryview(value)),
}


def data_of(value: Any) -> Any:
    """What an object of a class derived from a builtin one holds, as that builtin type.

    Raises:
        TypeError: Its class is not derived from a builtin container.
    """
    for kind, copied in (CHANGING_BASES | CONSTANT_BASES).items():
        if isinstance(value, kind):
            return copied(value)
    raise TypeError(f"{type(value).__name__!r} holds no plain data")


def _field_names(value: Any) -> Any:
    return [field.name for field in dataclasses.fields(value)]


def _match_args(value: Any) -> Any:
    return tuple(value.__match_args__)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in _BUILTIN_OPERATIONS},
    **{name: getattr(operator, name) for name in _OPERATORS},
    "aenter": lambda value: type(value).__aenter__(value),
    "aexit": lambda value, *details: type(value).__aexit__(value, *details),
    "copy": copy.copy,
    "data": data_of,
    "deepcopy": copy.deepcopy,
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *details: type(value).__exit__(value, *details),
    "fields": _field_names,
    "match_args": _match_args,
    "send": lambda value, sent: value.send(sent),
    "throw": lambda value, error: value.throw(error),
    "close": lambda value: value.close(),
}
