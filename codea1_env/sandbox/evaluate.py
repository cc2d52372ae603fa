"""Evaluates the expression tree of a value plan, in the supervisor, on plain data only.

Every operand is an exact builtin type that the codec has decoded or a literal, so that no operation here
runs foreign code. Bounded, since the data may be hostile: it was cheap to decode, and what could take
long nevertheless is left to a process with limits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .endings import Outcome
from .inside import codec
from .inside.errors import message_of
from .results import TestResult

Node = tuple[Any, ...]

_MAX_EXPANDED = 1_000_000  # numbers of a range that are looked at one by one
_MAX_SEARCHED = 100_000
_EXPANDING = ("list", "tuple", "sorted", "set", "sum", "min", "max")
# Of other types than numbers, and so never equal to one.
_NO_NUMBERS = (type(None), str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


class TooCostlyError(Exception):
    """To evaluate this could take long."""


def _is_longer(numbers: range, count: int) -> bool:
    return bool(numbers[count:])  # `len` cannot count the numbers of very long ranges


def _contains(container: Any, value: Any) -> bool:
    """`value in container`; Python searches a range one by one for anything but an exact integer."""
    if type(container) is not range or type(value) in (int, bool):
        found: bool = value in container
        return found
    if type(value) in _NO_NUMBERS:
        return False
    if type(value) is float:
        return value.is_integer() and int(value) in container
    if type(value) is complex:
        return value.imag == 0 and value.real.is_integer() and int(value.real) in container
    if _is_longer(container, _MAX_SEARCHED):
        raise TooCostlyError
    return value in container


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: _contains(right, left),
    "not in": lambda left, right: not _contains(right, left),
}


def _as_set(value: Any) -> set[Any]:
    items = list(value)
    if len(items) > codec.CHEAP.keys:  # numbers can be chosen so that a set of them is slow
        raise TooCostlyError
    codec.check_hashes(items)
    return set(items)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "-": operator.sub,
    "not": operator.not_,
    "abs": abs,
    "isclose": lambda left, right, tolerances: math.isclose(left, right, **tolerances),
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "round": round,
    "set": _as_set,
    "sorted": sorted,
    "sum": sum,
    "tuple": tuple,
    "returned": lambda value: True,
}


def show(value: Any) -> str:
    """A short text of a value for a message."""
    try:
        text = repr(value)
    # Plain data runs no code but Python's, which raises what it likes: ValueError for an integer of many
    # digits, RecursionError, decimal.InvalidOperation for a Counter of NaNs, ...
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 120 else f"{text[:117]}..."


def _value(node: Node, values: Sequence[Any]) -> Any:
    kind = node[0]
    if kind == "constant":
        return node[1]
    if kind == "call":
        return values[node[1]]
    operands = [_value(operand, values) for operand in node[1:]]
    if kind in _COMPARISONS:
        return _COMPARISONS[kind](*operands)
    if kind in _EXPANDING and type(operands[0]) is range and _is_longer(operands[0], _MAX_EXPANDED):
        raise TooCostlyError
    return _FUNCTIONS[kind](*operands)


def evaluate(nodes: Node, values: Sequence[Any], cpu_time: float = 0.0) -> TestResult:
    """Judge an assertion.

    Args:
        nodes: The expression tree of a value plan.
        values: What the plan's calls returned, in order.
        cpu_time: What they took, for the result.

    Returns:
        PASS, FAIL, or ERROR where Python would raise.

    Raises:
        TooCostlyError: It could take long; nothing is said about the assertion.

    Example:
        >>> evaluate(("==", ("call", 0), ("constant", 3)), [4]).message
        'returned 4, expected == 3'
    """
    try:
        if _value(nodes, values):
            return TestResult(Outcome.PASS, cpu_time=cpu_time)
    except TooCostlyError:
        raise
    # The values are hostile, the code is only Python's own and ours: whatever it raises is the verdict.
    except Exception as error:
        name = type(error).__name__
        return TestResult(Outcome.ERROR, f"{name}: {message_of(error)}", cpu_time, error=name)
    if nodes[0] in _COMPARISONS and nodes[1][0] == "call" and nodes[2][0] == "constant":
        message = f"returned {show(values[nodes[1][1]])}, expected {nodes[0]} {show(nodes[2][1])}"
    else:
        message = "the assertion is false; returned " + ", ".join(map(show, values))
    return TestResult(Outcome.FAIL, message, cpu_time)
