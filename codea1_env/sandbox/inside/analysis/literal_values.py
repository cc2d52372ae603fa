"""What literals are made of: their bounds, and the operations on plain data that a literal may hold."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from ..codec.budgets import check_hashes
from ..codec.formats import MAX_EQUAL_HASHES, DecodeError

MAX_ITEMS = 20_000
"""Items of a value that is read; characters of a text that is computed count as well."""
MAX_BITS = 4_096
"""Of an integer that is computed."""
MAX_WORK = 100_000
"""Of one meter: the nodes that are looked at, and what is compared."""

SEQUENCES = (str, bytes, list, tuple)
NUMBERS = (int, float, complex, bool)
SETS = (set, frozenset)


class NotLiteralError(Exception):
    """The expression is no literal, or too large. The message says which part."""


class _Unknown:
    """What a name is bound to that has a value, but one that nobody knows without running the text."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
"""As a value in `names`: the name is bound, to something else than a literal."""


class LiteralMeter:
    """What reading may still cost, in items. One can serve many expressions.

    Args:
        items: Items that may be made.
        exact: Whether to refuse what is not in every respect what Python would make: containers that stand in
            several places of one value (`[[0]] * 3`), and names of modules.
        work: Nodes that may be looked at, and characters and items that may be compared, however often.

    Attributes:
        left: Items that may still be made.
        work_left: What may still be looked at; below 0 when it was too much.
    """

    __slots__ = ("exact", "left", "work_left")

    def __init__(self, items: int = MAX_ITEMS, exact: bool = False, work: int = MAX_WORK) -> None:
        self.left = items
        self.work_left = work
        self.exact = exact

    def spend(self, items: int) -> None:
        """Pay for items before they are made.

        Raises:
            NotLiteralError: There are too many.
        """
        if items > self.left:
            raise NotLiteralError("too large: it has too many items")
        self.left -= items

    def work(self, steps: int) -> None:
        """Pay for what makes nothing, but takes time. What was too much once stays so.

        Raises:
            NotLiteralError: It is too much.
        """
        self.work_left -= steps
        if self.work_left < 0:
            raise NotLiteralError("it takes too much work to read")


def weight(value: Any) -> int:
    """The items and characters in a value: what comparing it may cost."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value)
    if kind is dict:
        return sum(map(weight, value)) + sum(map(weight, value.values()))
    return 1 + sum(map(weight, value)) if kind in COPIERS else 1


def hashable(values: list[Any]) -> list[Any]:
    """The same values, if they can be keys and few different ones have one hash.

    Raises:
        NotLiteralError: They cannot.
    """
    try:
        if len(values) <= MAX_EQUAL_HASHES:
            for value in values:
                hash(value)
        else:
            check_hashes(values)
    except (TypeError, DecodeError):
        raise NotLiteralError("a key or an item of a set that cannot be one") from None
    return values


def copied(value: Any, meter: LiteralMeter) -> Any:
    """A copy of plain data that shares nothing with it."""
    copier = COPIERS.get(type(value))
    if copier is None:
        if type(value) not in ATOMS:
            raise NotLiteralError("a part of it is not known")
        return value
    meter.spend(len(value))
    return copier(value, meter)


ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_CONSTANT = ATOMS | {frozenset}
COPIERS: dict[type, Callable[[Any, LiteralMeter], Any]] = {
    list: lambda value, meter: [copied(item, meter) for item in value],
    tuple: lambda value, meter: tuple([copied(item, meter) for item in value]),
    dict: lambda value, meter: {key: copied(item, meter) for key, item in value.items()},
    set: lambda value, meter: set(value),
    frozenset: lambda value, meter: value,
}


# Arithmetic


def repeated(value: Any, times: int, meter: LiteralMeter) -> Any:
    """`value * times` of a sequence; each place is an object of its own."""
    if times <= 0 or not value:
        return value[:0]
    if times > meter.left:
        raise NotLiteralError("too large: it has too many items")
    if type(value) in (str, bytes):
        meter.spend(len(value) * times)
        return value * times
    meter.spend(len(value) * times)
    if all(type(item) in ATOMS for item in value):
        return value * times
    if meter.exact and times > 1 and not all(map(_never_changes, value)):
        raise NotLiteralError("a container in several places at once")
    copies: list[Any] = []
    for _ in range(times):
        copies += [copied(item, meter) for item in value]
    return type(value)(copies)


def _never_changes(value: Any) -> bool:
    """Whether nobody can tell two places that hold it from two that hold copies of it."""
    return all(map(_never_changes, value)) if type(value) is tuple else type(value) in _CONSTANT


def arithmetic(kind: type, left: Any, right: Any) -> Any:
    """What an operator makes of two numbers.

    Raises:
        NotLiteralError: Nothing, or an integer that is too large.
    """
    if type(left) is int or type(right) is int:
        _check_bits(kind, left, right)
    try:
        function = _OPERATORS[kind]
        value = function(left, right)
    except KeyError:
        raise NotLiteralError("an operator that no literal has") from None
    except (ArithmeticError, TypeError, ValueError) as error:
        raise NotLiteralError(f"arithmetic that fails: {type(error).__name__}") from None
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise NotLiteralError(f"too large: an integer of more than {MAX_BITS} bits")
    return value


def _check_bits(kind: type, left: Any, right: Any) -> None:
    """Refuse integers of which the result could be too large, before it is computed."""
    bits = [int(value).bit_length() for value in (left, right) if type(value) in (int, bool)]
    too_large = max(bits) > MAX_BITS
    if len(bits) == 2:
        if kind is ast.Pow:
            too_large = too_large or (right > 0 and bits[0] * right > 2 * MAX_BITS and bits[0] > 1)
        elif kind is ast.LShift:
            too_large = too_large or bits[0] + right > MAX_BITS
    if too_large:
        raise NotLiteralError(f"too large: an integer of more than {MAX_BITS} bits")


COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}  # fmt: skip
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
SET_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.Sub: operator.sub, ast.BitXor: operator.xor,
}  # fmt: skip
