"""What literals are made of: their bounds, the operations on plain data that a literal may hold, and their texts.

What is no literal, or too large, raises `NotLiteralError`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..codec.formats import DecodeError, check_hashes

MAX_ITEMS = 20_000
"""Items of a value that is read; characters of a text that is computed count as well."""
MAX_BITS = 4_096
"""Of an integer that is computed."""
MAX_SOURCE = 20_000
"""Characters of a value that is written."""
MAX_WORK = 100_000
"""Of one meter: the nodes that are looked at, and what is compared."""

SEQUENCES = (str, bytes, list, tuple)
NUMBERS = (int, float, complex, bool)
SETS = (set, frozenset)
_PRINTED = (str, int, float, bool, type(None))
_FORM = re.compile(r"(?:[ -~]?[<>=^])?[-+ ]?#?0?[0-9]{0,3}[,_]?(?:\.[0-9]{1,3})?[bcdeEfFgGosxX%]?")


class NotLiteralError(Exception):
    """The expression is no literal, or too large. The message says which part."""


class _Unknown:
    """What a name is bound to that has a value, but one that nobody knows without running the text."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
"""As a value in `names`: the name is bound, to something else than a literal."""
LIBRARY = _Unknown()
"""The same, to what a text imports and cannot define itself."""


class LiteralMeter:
    """What reading may still cost. One can serve many expressions.

    Args:
        items: Items that may be made.
        exact: Whether to refuse what is not in every respect what Python would make: containers that stand in
            several places of one value (`[[0]] * 3`), and names of modules.
        work: Nodes that may be looked at, and characters and items that may be compared, however often.
        loops: Whether comprehensions are read.

    Attributes:
        changed: Lists, dicts and sets, by their ids, that code may have changed after they were read. No value that
            holds one is read.
    """

    __slots__ = ("changed", "exact", "left", "loops", "work_left")

    def __init__(
        self, items: int = MAX_ITEMS, exact: bool = False, work: int = MAX_WORK, loops: bool = False
    ) -> None:
        self.left = items
        self.work_left = work
        self.exact = exact
        self.loops = loops
        self.changed: dict[int, Any] = {}

    def spend(self, items: int) -> None:
        """Pay for items before they are made."""
        if items > self.left:
            raise NotLiteralError("too large: it has too many items")
        self.left -= items

    def work(self, steps: int) -> None:
        """Pay for what makes nothing, but takes time. What was too much once stays so."""
        self.work_left -= steps
        if self.work_left < 0:
            raise NotLiteralError("it takes too much work to read")


def weight(value: Any) -> int:
    """Return the items and characters in a value: what comparing it may cost."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value)
    if kind is dict:
        return sum(map(weight, value)) + sum(map(weight, value.values()))
    return 1 + sum(map(weight, value)) if kind in CONTAINERS else 1


def hashable(values: list[Any]) -> list[Any]:
    """Return the same values, if they can be keys and few different ones have one hash."""
    try:
        check_hashes(values)
    except DecodeError:
        raise NotLiteralError("a key or an item of a set that cannot be one") from None
    return values


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def printed(value: Any, form: str, meter: LiteralMeter, conversion: int = -1) -> str:
    """Return the text of a number or a text, in a form that an f-string states: one that is not much longer than the value."""
    if type(value) not in _PRINTED or meter.exact or not _FORM.fullmatch(form):
        raise NotLiteralError("the text of such a value")
    try:
        convert = _CONVERSIONS.get(conversion)
        made = format(convert(value) if convert else value, form)
    except (ValueError, TypeError, OverflowError):
        raise NotLiteralError("a text that cannot be made") from None
    meter.spend(len(made))
    return made


def paid(value: Any, meter: LiteralMeter) -> Any:
    """Return plain data that is read again: the same object, so that who shares it is known. It costs what a copy costs."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind not in CONTAINERS:
        raise NotLiteralError("a part of it is not known")
    check_unchanged(value, meter)
    meter.spend(len(value))
    if kind not in SETS:
        for item in value.values() if kind is dict else value:
            if type(item) not in ATOMS:
                paid(item, meter)
    return value


def check_unchanged(value: Any, meter: LiteralMeter) -> None:
    """Refuse a container that may have been changed."""
    if id(value) in meter.changed:
        raise NotLiteralError("it may have been changed")


ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_CONSTANT = ATOMS | {frozenset}
CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


# Arithmetic


def repeated(value: Any, times: int, meter: LiteralMeter) -> Any:
    """`value * times` of a sequence."""
    if times <= 0 or not value:
        return value[:0]
    if times > meter.left:
        raise NotLiteralError("too large: it has too many items")
    meter.spend(len(value) * times)
    if type(value) not in (str, bytes) and not all(type(item) in ATOMS for item in value):
        if meter.exact and times > 1 and not all(map(_never_changes, value)):
            raise NotLiteralError("a container in several places at once")
        for _ in range(times):
            for item in value:
                paid(item, meter)
    return value * times


def _never_changes(value: Any) -> bool:
    """Whether nobody can tell two places that hold it from two that hold copies of it."""
    return all(map(_never_changes, value)) if type(value) is tuple else type(value) in _CONSTANT


_TOO_LARGE = f"too large: an integer of more than {MAX_BITS} bits"


def check_bits(values: Iterable[Any]) -> None:
    """Refuse large integers."""
    if any(type(value) is int and value.bit_length() > MAX_BITS for value in values):
        raise NotLiteralError(_TOO_LARGE)


def arithmetic(kind: type, left: Any, right: Any) -> Any:
    """The result of an operator on two numbers."""
    check_bits([left, right])
    if {type(left), type(right)} <= {int, bool}:  # what could be too large is not computed
        bits = int(left).bit_length()
        shifts = kind is ast.LShift and bits + right > MAX_BITS
        if shifts or (kind is ast.Pow and bits > 1 and bits * right > 2 * MAX_BITS):
            raise NotLiteralError(_TOO_LARGE)
    if kind not in OPERATORS:
        raise NotLiteralError("an operator that no literal has")
    try:
        value = OPERATORS[kind](left, right)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise NotLiteralError(f"arithmetic that fails: {type(error).__name__}") from None
    check_bits([value])
    return value


COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}  # fmt: skip
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


# Texts

_INF = math.inf
_FLAT = frozenset({int, str, bool, type(None)})


def write(value: Any) -> str | None:
    """Return the text of a value: the same for what is the same and has the same types. Sets are sorted.

    Returns:
        An expression that `read` and Python understand. None if there is none (an object, a subclass), or
        if it is longer than `MAX_SOURCE`.

    Example:
        >>> write({"b": (1.5, float("inf")), "a": {3, 1}, "c": [float("nan"), set()]})
        "{'b': (1.5, float('inf')), 'a': {1, 3}, 'c': [float('nan'), set()]}"
        >>> write(object()) is None
        True
    """
    writer = _WRITERS.get(type(value))
    if writer is None:
        return None
    try:
        text = writer(value)
    except (NotLiteralError, RecursionError, ValueError):  # more digits than Python prints
        return None
    return text if len(text) <= MAX_SOURCE else None


def _write(value: Any) -> str:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise NotLiteralError("no plain data")
    return writer(value)


def _bounded(texts: Iterable[str]) -> list[str]:
    """Return the same texts, no more of them than one value may have characters."""
    found, size = [], 0
    for text in texts:
        found.append(text)
        size += len(text)
        if size > MAX_SOURCE:
            raise NotLiteralError("too long")
    return found


def _joined(values: Any) -> str:
    return ", ".join(_bounded(map(_write, values)))


def _sorted(values: Any) -> str:
    return ", ".join(sorted(_bounded(map(_write, values))))


def _write_integer(value: int) -> str:
    if value.bit_length() > 4 * MAX_SOURCE:
        raise NotLiteralError("too long")
    return repr(value)


def _write_text(value: Any) -> str:
    if len(value) > MAX_SOURCE:
        raise NotLiteralError("too long")
    return repr(value)


def _write_float(value: float) -> str:
    return repr(value) if -_INF < value < _INF else f"float('{value}')"


def _write_complex(value: complex) -> str:
    plus_real, plus_imag = (math.copysign(1.0, part) > 0 for part in (value.real, value.imag))
    plain = (plus_imag or value.imag != 0.0) if value.real != 0.0 else (plus_real and plus_imag)
    if plain and abs(value.real) < _INF and abs(value.imag) < _INF:
        return repr(value)
    # `repr` of it is a sum, which loses the sign of a zero.
    return f"complex({_write_float(value.real)}, {_write_float(value.imag)})"


def _write_list(value: list[Any]) -> str:
    return repr(value) if _is_flat(value) else f"[{_joined(value)}]"


def _write_tuple(value: tuple[Any, ...]) -> str:
    if _is_flat(value):
        return repr(value)
    return f"({_joined(value)},)" if len(value) == 1 else f"({_joined(value)})"


def _is_flat(values: Any) -> bool:
    """Whether Python's own text of a list or tuple, which is made much faster, is the same."""
    return 3 * len(values) <= MAX_SOURCE and _FLAT.issuperset(map(type, values))


def _write_dict(value: dict[Any, Any]) -> str:
    parts = (f"{_write(key)}: {_write(item)}" for key, item in value.items())
    return f"{{{', '.join(_bounded(parts))}}}"


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): repr, bool: repr, int: _write_integer, float: _write_float, complex: _write_complex,
    str: _write_text, bytes: _write_text, list: _write_list, tuple: _write_tuple, dict: _write_dict,
    set: lambda value: f"{{{_sorted(value)}}}" if value else "set()",
    frozenset: lambda value: f"frozenset({{{_sorted(value)}}})" if value else "frozenset()",
}  # fmt: skip
