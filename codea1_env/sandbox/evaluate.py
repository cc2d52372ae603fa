"""Evaluates the expression tree of a value plan, in the supervisor, on plain data only.

Every operand is an exact builtin type that the codec has decoded or a literal, so that no operation here
runs foreign code. Bounded, since the data may be hostile: it was small enough to cross.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .inside import codec
from .results import Outcome, TestResult

Node = tuple[Any, ...]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}


def _as_set(value: Any) -> set[Any]:
    items = list(value)
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
    except (ValueError, RecursionError):  # an integer of more digits than Python prints
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
    if kind in ("list", "tuple", "sorted", "set", "sum", "min", "max") and (
        type(operands[0]) is range and len(operands[0]) > codec.MAX_ITEMS
    ):
        raise ValueError("a range too long to expand")
    return _FUNCTIONS[kind](*operands)


def evaluate(nodes: Node, values: Sequence[Any]) -> TestResult:
    """Judges an assertion.

    Args:
        nodes: The expression tree of a value plan.
        values: What the plan's calls returned, in order.

    Returns:
        PASS, FAIL, or ERROR where Python would raise.

    Example:
        >>> evaluate(("==", ("call", 0), ("constant", 3)), [4]).message
        'returned 4, expected == 3'
    """
    try:
        if _value(nodes, values):
            return TestResult(Outcome.PASS)
    except (ArithmeticError, TypeError, ValueError, codec.DecodeError, RecursionError) as error:
        return TestResult(Outcome.ERROR, f"{type(error).__name__}: {error}"[:500])
    if nodes[0] in _COMPARISONS and nodes[1][0] == "call" and nodes[2][0] == "constant":
        message = f"returned {show(values[nodes[1][1]])}, expected {nodes[0]} {show(nodes[2][1])}"
    else:
        message = "the assertion is false; returned " + ", ".join(map(show, values))
    return TestResult(Outcome.FAIL, message)
