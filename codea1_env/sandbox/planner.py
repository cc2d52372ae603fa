"""Plans for tests, made in the analysis process and remembered; and their evaluation where one is an expression.

Every operand of an expression is a literal or an exact builtin type that the codec has decoded: no operation here runs
foreign code. The data may be hostile: what could take long is not evaluated.
"""

from __future__ import annotations

import builtins
import math
import operator
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from .analysis import Analyst
from .inside import codec
from .inside.analysis.plan import encoded_plans
from .inside.errors import message_of
from .outcomes import too_long
from .results import NO_TESTS, AnalysisError, Outcome, TestResult

_REMEMBERED_BYTES = 32_000_000
_OVERHEAD = 500  # of one remembered plan
_BATCH = 16  # tests, in one request
_TIMEOUT = 8.0  # of one test alone: more than in there, where only Python code can be stopped
_PYTHON_NAMES = frozenset(dir(builtins)) | sys.stdlib_module_names

_DEFINES_TESTS = re.compile(
    r"^\s*(?:async\s+def|def|class)\s+[tT]est|TestCase|^\s*(?:import|from)\s+pytest\b", re.MULTILINE
)

Node = tuple[Any, ...]

_MAX_EXPANDED = 1_000_000  # numbers of a range that are looked at one by one
_MAX_SEARCHED = 100_000
_MAX_FRACTIONS = 100
_CONTAINERS = (list, tuple, set, frozenset, dict)
_EXPANDING = ("list", "tuple", "sorted", "set", "sum", "min", "max")
# Of other types than numbers, and so never equal to one.
_NO_NUMBERS = (type(None), str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


@dataclass(frozen=True)
class ValuePlan:
    """A test that is one expression over plain data and calls.

    Attributes:
        calls: Encoded calls, ready to be sent.
        names: The function of each call.
        expression: The encoded expression.
    """

    calls: tuple[bytes, ...]
    names: tuple[str, ...]
    expression: bytes


class TextPlan(NamedTuple):
    """A test that runs together with the program, as a program of its own."""

    by_pytest: bool
    """Whether it may define test functions or classes."""


Plan = ValuePlan | TextPlan | TestResult
"""A TestResult where the text cannot be a test at all."""


def _plan(test: str, raw: tuple[Any, ...]) -> Plan:
    kind, *details = raw
    if kind == "value":
        names, calls, expression = details
        return ValuePlan(tuple(calls), tuple(names), expression)
    if kind == "nothing":
        return TestResult(Outcome.ERROR, NO_TESTS, vacuous=True)
    if kind == "text":
        return TextPlan(_DEFINES_TESTS.search(test) is not None)
    return TestResult(Outcome.SYNTAX_ERROR, details[0])


def _size(test: str, plan: Plan) -> int:
    size = len(test) + _OVERHEAD
    if isinstance(plan, ValuePlan):
        size += len(plan.expression) + sum(map(len, plan.calls))
    return size


class Planner:
    """Turns test texts into plans. The least recently used plans are forgotten first."""

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[str, str | None], Plan] = OrderedDict()
        self._bytes = 0

    def plans(self, tests: Sequence[str], entry_point: str | None = None) -> list[Plan]:
        """One plan per test, in order."""
        # The entry point matters to a plan only where Python has that name.
        name = entry_point if entry_point in _PYTHON_NAMES else None
        found: dict[str, Plan] = {}
        with self._lock:
            for test in tests:
                plan = self._plans.get((test, name))
                if plan is not None and test not in found:
                    found[test] = plan
                    self._plans.move_to_end((test, name))
        texts = list(dict.fromkeys(tests))
        found.update({test: why for test in texts if (why := too_long(test)) is not None})
        missing = [test for test in texts if test not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = dict(zip(batch, self._make(batch, name), strict=True))
            found |= made
            self._remember(made, name)
        return [found[test] for test in tests]

    def _make(self, tests: list[str], name: str | None) -> list[Plan]:
        try:
            raw = self._analyst.analyse(encoded_plans, tests, name)
            return list(map(_plan, tests, raw))
        except AnalysisError:  # one of them: its neighbours are innocent
            return [self._make_one(test, name) for test in tests]

    def _make_one(self, test: str, name: str | None) -> Plan:
        try:
            (raw,) = self._analyst.analyse(encoded_plans, [test], name, timeout=_TIMEOUT)
        except AnalysisError as error:
            return TestResult(Outcome.SYNTAX_ERROR, f"cannot be parsed: {error}")
        return _plan(test, raw)

    def _remember(self, made: dict[str, Plan], name: str | None) -> None:
        with self._lock:
            for test, each in made.items():
                if (test, name) not in self._plans:
                    self._plans[test, name] = each
                    self._bytes += _size(test, each)
            while self._bytes > _REMEMBERED_BYTES:
                (forgotten, _), plan = self._plans.popitem(last=False)
                self._bytes -= _size(forgotten, plan)


class NotHereError(Exception):
    """To evaluate this here could take long."""


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
        raise NotHereError
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
    if len(items) > codec.VALUES.keys:  # numbers can be chosen so that a set of them is slow
        raise NotHereError
    codec.check_hashes(items)
    return set(items)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (abs, len, list, max, min, round, sorted, sum, tuple)},
    "-": operator.sub,
    "not": operator.not_,
    "isclose": lambda left, right, tolerances: math.isclose(left, right, **tolerances),
    "set": _as_set,
    "returned": lambda value: True,
}


def show(value: Any) -> str:
    """Return a short text of a value for a message."""
    try:
        text = repr(value)
    # Plain data runs no code but Python's, which raises what it likes: ValueError for an integer of many
    # digits, RecursionError, decimal.InvalidOperation for a Counter of NaNs, ...
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 120 else f"{text[:117]}..."


def _is_costly_sum(values: Any) -> bool:
    """Whether there are many fractions: their sum has more digits with each."""
    many = type(values) in _CONTAINERS and len(values) > _MAX_FRACTIONS
    return many and any(type(each) is Fraction for each in values)


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
        raise NotHereError
    if kind == "sum" and _is_costly_sum(operands[0]):
        raise NotHereError
    return _FUNCTIONS[kind](*operands)


def evaluate(nodes: Node, values: Sequence[Any]) -> TestResult:
    """Judge an assertion.

    Raises:
        NotHereError: It would cost too much here.

    Example:
        >>> evaluate(("==", ("call", 0), ("constant", 3)), [4]).message
        'returned 4, expected == 3'
    """
    try:
        if _value(nodes, values):
            return TestResult(Outcome.PASS)
    except NotHereError:
        raise
    # The values are hostile, the code is only Python's own and ours: whatever it raises is the verdict.
    except Exception as error:
        name = type(error).__name__
        return TestResult(Outcome.ERROR, f"{name}: {message_of(error)}", error=name)
    if nodes[0] in _COMPARISONS and nodes[1][0] == "call" and nodes[2][0] == "constant":
        message = f"returned {show(values[nodes[1][1]])}, expected {nodes[0]} {show(nodes[2][1])}"
    else:
        message = "the assertion is false; returned " + ", ".join(map(show, values))
    return TestResult(Outcome.FAIL, message)
