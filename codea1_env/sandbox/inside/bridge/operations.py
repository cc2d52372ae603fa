"""All that one side can ask of an object that the other has handed to it: a closed table.

A request names an entry by its place in the table. No string of a message chooses what is done, but for the name of an
attribute, which `gate.py` rules on first.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """An entry of the table.

    Attributes:
        name: What it is called in here.
        meaning: What is done with the object `x` and the operands `a` and `b`, in Python.
        operands: How many there are beside the object.
        perform: Does it.
        returns: The exact type of an honest result; None for any.
    """

    name: str
    meaning: str
    operands: int
    perform: Callable[..., Any]
    returns: type | None = None


def _call(target: Any, positional: Any, names: Any, values: Any) -> Any:
    return target(*positional, **dict(zip(names, values, strict=True)))


def _reflected(name: str) -> Callable[..., Any]:
    perform = getattr(operator, name)
    return lambda value, other: perform(other, value)


def _special(name: str) -> Callable[..., Any]:
    def perform(value: Any, *operands: Any) -> Any:
        return getattr(type(value), name)(value, *operands)

    return perform


ARITHMETIC = (
    ("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"),
    ("pow", "**"), ("matmul", "@"), ("and_", "&"), ("or_", "|"), ("xor", "^"), ("lshift", "<<"),
    ("rshift", ">>"),
)  # fmt: skip
ORDER = (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))

OPERATIONS: tuple[Operation, ...] = (
    Operation("call", "x(*a)", 1, lambda target, positional: target(*positional)),
    Operation("call_with_names", "x(*a, **b)", 3, _call),
    Operation("get", "x.NAME", 1, getattr),
    Operation("set", "x.NAME = a", 2, setattr),
    Operation("delete", "del x.NAME", 1, delattr),
    Operation("name", "x.__name__, of a class", 0, lambda kind: kind.__name__, str),
    Operation("type", "type(x)", 0, type),
    Operation("data", "a copy of what x holds, as a builtin type", 0, lambda value: value),
    Operation("items", "the same, where containers in it are handles", 0, lambda value: value),
    Operation("release", "no handle of these objects is left", 0, lambda value: None),
    Operation("len", "len(x)", 0, len, int),
    Operation("iter", "iter(x)", 0, iter),
    Operation("next", "next(x)", 0, next),
    Operation("reversed", "reversed(x)", 0, reversed),
    Operation("send", "x.send(a)", 1, lambda value, sent: value.send(sent)),
    Operation("throw", "x.throw(a)", 1, lambda value, error: value.throw(error)),
    Operation("close", "x.close()", 0, lambda value: value.close()),
    Operation("getitem", "x[a]", 1, operator.getitem),
    Operation("setitem", "x[a] = b", 2, operator.setitem),
    Operation("delitem", "del x[a]", 1, operator.delitem),
    Operation("contains", "a in x", 1, operator.contains, bool),
    Operation("enter", "with x: on entry", 0, _special("__enter__")),
    Operation("exit", "with x: on exit", 3, _special("__exit__")),
    Operation("aenter", "async with x: on entry", 0, _special("__aenter__")),
    Operation("aexit", "async with x: on exit", 3, _special("__aexit__")),
    Operation("aiter", "aiter(x)", 0, aiter),
    Operation("anext", "anext(x)", 0, anext),
    Operation("await", "await x, a little at a time", 1, lambda value, cancel: value),
    Operation("isinstance", "isinstance(a, x)", 1, lambda kind, value: isinstance(value, kind), bool),
    Operation("issubclass", "issubclass(a, x)", 1, lambda kind, value: issubclass(value, kind), bool),
    Operation("bool", "bool(x)", 0, bool, bool),
    Operation("hash", "hash(x)", 0, hash, int),
    Operation("str", "str(x)", 0, str, str),
    Operation("repr", "repr(x)", 0, repr, str),
    Operation("format", "format(x, a)", 1, format, str),
    Operation("int", "int(x)", 0, int, int),
    Operation("float", "float(x)", 0, float, float),
    Operation("complex", "complex(x)", 0, complex, complex),
    Operation("index", "operator.index(x)", 0, operator.index, int),
    Operation("round", "round(x, a)", 1, lambda value, digits: round(value) if digits is None else round(value, digits)),
    Operation("divmod", "divmod(x, a)", 1, divmod),
    Operation("copy", "copy.copy(x)", 0, copy.copy),
    Operation("deepcopy", "copy.deepcopy(x)", 0, copy.deepcopy),
    Operation("eq", "x == a", 1, operator.eq, bool),
    Operation("ne", "x != a", 1, operator.ne, bool),
    *(Operation(name, f"{sign}x", 0, getattr(operator, name)) for name, sign in (("neg", "-"), ("pos", "+"), ("invert", "~"))),
    Operation("abs", "abs(x)", 0, abs),
    *(Operation(name, f"x {sign} a", 1, getattr(operator, name), bool) for name, sign in ORDER),
    *(Operation(name, f"x {sign} a", 1, getattr(operator, name)) for name, sign in ARITHMETIC),
    *(Operation(f"r{name}", f"a {sign} x", 1, _reflected(name)) for name, sign in ARITHMETIC),
    *(Operation(f"i{name.rstrip('_')}", f"x {sign}= a", 1, getattr(operator, f"i{name.rstrip('_')}")) for name, sign in ARITHMETIC),
)  # fmt: skip
NUMBERS = {operation.name: number for number, operation in enumerate(OPERATIONS)}
"""The place of each operation: the first byte of a request."""
