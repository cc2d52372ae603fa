"""When is a returned value right? The bytes are compared first; only where they differ, what they say.

Both sides are plain data that the codec has read within a budget: no code of a program runs here. What reading and
comparing can cost is bounded by the size of the expected value, since an equal value is not much longer.
"""

from __future__ import annotations

import math
import reprlib
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from .inside import codec
from .inside.run.running import RETURNED
from .outcomes import meaning_of
from .results import Limit, Outcome, TestResult

Rule = Literal["equal", "exact", "set", "not-none"]
"""Name of a rule of comparison."""

FLOAT_ATOL = 1e-6
"""Absolute tolerance where a float is expected and a problem states none: that of EvalPlus."""
FLOAT_RTOL = 1e-7
"""Relative tolerance of floats: that of EvalPlus."""

_LONGER, _LONGEST_MESSAGE = 9, 4096
_MOST_KEYS = 30_000
_BUDGET = replace(codec.VALUES, seconds=2.0)
_NUMBERS = (float, int, bool)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A rule, and the absolute tolerance of floats.

    - "equal": Python's `==` on data of equal structure; where a float is expected, within the tolerances.
    - "exact": Python's `==`; a tuple that is returned counts as a list, as in LiveCodeBench.
    - "set": the same items in any order, however often.
    - "not-none": something is returned where True is expected, and None where False is.
    """

    rule: Rule = "equal"
    atol: float = 0.0

    @property
    def tolerance(self) -> float:
        """The absolute tolerance; 0 stands for that of EvalPlus."""
        return self.atol or FLOAT_ATOL


def judge_reply(frame: bytes, expected: bytes, comparison: Comparison) -> TestResult:
    """Judge what a program's process answered to a call.

    Args:
        frame: What it sent; hostile.
        expected: What is expected, as a right program sends it.
        comparison: The rule.
    """
    if frame == expected and comparison.rule != "not-none":
        return _PASSED
    if comparison.rule == "not-none":
        return _something(frame, expected)
    if not expected.startswith(RETURNED):  # too large to be sent: only its digest is known
        said = read_returned(frame, codec.Meter(_BUDGET))
        if isinstance(said, TestResult) and said.outcome is not Outcome.OUTPUT_LIMIT:
            return said
        return TestResult(Outcome.FAIL, "it did not return the very large value that is expected")
    if comparison.rule != "set" and len(frame) > _LONGER * len(expected) + _LONGEST_MESSAGE:
        return TestResult(Outcome.FAIL, "it returned a much longer value")
    found = read_returned(frame, codec.Meter(_BUDGET))
    if isinstance(found, TestResult):
        return found
    right = codec.decode(expected[len(RETURNED) :])
    if _RULES[comparison.rule](found[0], right, comparison.tolerance):
        return _PASSED
    return TestResult(Outcome.FAIL, f"returned {short(found[0])}, not {short(right)}")


_PASSED = TestResult(Outcome.PASS)


def read_returned(frame: bytes, meter: codec.Meter) -> tuple[Any] | TestResult:
    """Return what a call returned, alone in a tuple; or how else it ended."""
    try:
        said = meaning_of(codec.decode(frame, meter=meter))
    except codec.BudgetError as error:
        why = f"the value costs too much to read: {error}"
        return TestResult(Outcome.OUTPUT_LIMIT, why, limit=Limit.RESULT)
    except codec.DecodeError as error:
        return TestResult(Outcome.FORBIDDEN, f"a malformed reply: {error}")
    if isinstance(said, TestResult):
        return said
    if len(said) != 1:
        return TestResult(Outcome.FORBIDDEN, "a reply with a strange shape")
    return (said[0],)


def _something(frame: bytes, expected: bytes) -> TestResult:
    """Judge whether anything was returned. What is no plain data is something, too."""
    found = None if frame.startswith(RETURNED) else read_returned(frame, codec.Meter(codec.CHEAP))
    if isinstance(found, TestResult) and found.outcome is not Outcome.UNENCODABLE:
        return found
    is_something = frame != RETURNED + codec.encode(None)
    if is_something == codec.decode(expected[len(RETURNED) :]):
        return _PASSED
    return TestResult(
        Outcome.FAIL, "returned a value, not None" if is_something else "returned None"
    )


def equal(out: Any, expected: Any, atol: float = FLOAT_ATOL, rtol: float = FLOAT_RTOL) -> bool:
    """Python's `==` on plain data of equal structure; where a float is expected, within tolerances. nan is nan.

    As EvalPlus has it (evalplus/eval/__init__.py), but element by element at any depth.

    Args:
        out: Plain data.
        expected: Plain data. A tolerance applies only where a float stands in it.
        atol: Absolute tolerance.
        rtol: Relative tolerance.

    Example:
        >>> equal([0.1 + 0.2, {"a": 1}], [0.3, {"a": True}]), equal(float(10**7), 10**7 + 1)
        (True, False)
        >>> equal((1, 2), [1, 2]), equal(float("nan"), float("nan"))
        (False, True)
    """
    try:
        return bool(out == expected) or _close(out, expected, atol, rtol)
    except (ArithmeticError, TypeError, ValueError, RecursionError):  # such as a Decimal's sNaN
        return False


def _close(out: Any, expected: Any, atol: float, rtol: float) -> bool:
    kind = type(expected)
    if kind is float:
        if type(out) not in _NUMBERS:
            return False
        if expected != expected:
            return bool(out != out)
        return math.isclose(out, expected, rel_tol=rtol, abs_tol=atol)
    if kind is list or kind is tuple or kind is deque:
        return (
            type(out) is kind
            and len(out) == len(expected)
            and all(a == b or _close(a, b, atol, rtol) for a, b in zip(out, expected, strict=True))
        )
    if isinstance(expected, dict) and isinstance(out, dict):
        ordered = kind is OrderedDict and type(out) is OrderedDict
        return (
            len(out) == len(expected)
            and (not ordered or list(out) == list(expected))
            and all(
                key in out and (out[key] == value or _close(out[key], value, atol, rtol))
                for key, value in expected.items()
            )
        )
    return bool(out == expected)


def _exact(out: Any, expected: Any, atol: float) -> bool:
    out = list(out) if type(out) is tuple else out
    return equal(out, expected, 0.0, 0.0)


def _as_set(out: Any, expected: Any, atol: float) -> bool:
    containers = (list, tuple, set, frozenset, dict)
    if type(out) not in containers or type(expected) not in containers or len(out) > _MOST_KEYS:
        return False
    try:
        codec.check_hashes(list(out))
        return set(out) == set(expected)
    except (codec.DecodeError, TypeError):  # an item that cannot be in a set
        return False


_RULES: dict[str, Callable[[Any, Any, float], bool]] = {
    "equal": equal, "exact": _exact, "set": _as_set,
}  # fmt: skip


def short(value: Any) -> str:
    """Return a value in few characters, the same in every process."""
    kind = type(value)
    if kind in _SIMPLE or (
        kind is int and -_LARGE < value < _LARGE
    ):  # most are, and quickly written
        return repr(value)
    try:
        return _SHORT.repr(value)
    except ValueError:  # more digits than Python prints
        return f"a very long {type(value).__name__}"


_SIMPLE = (float, bool, type(None))
_LARGE = 10**18
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 8
_SHORT.maxdeque = _SHORT.maxarray = 8
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
