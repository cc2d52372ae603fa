"""When is a returned value right? The bytes are compared first; only where they differ, what they say.

Both sides are plain data: no code of a program runs here. The size of the expected value bounds what comparing costs.
"""

from __future__ import annotations

import math
import reprlib
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from .inside import codec
from .inside.run.running import RETURNED
from .lines import difference
from .outcomes import guarded, meaning_of
from .results import Limit, Outcome, TestResult

Rule = Literal["equal", "exact", "set", "not-none", "lines", "loose-lines"]
"""Name of a rule of comparison."""

FLOAT_ATOL = 1e-6
"""Absolute tolerance where a float is expected and a problem states none: that of EvalPlus."""
FLOAT_RTOL = 1e-7
"""Relative tolerance of floats: that of EvalPlus."""

_LONGER, _LONGEST_MESSAGE = 9, 4096
_MOST_SORTED = 200_000  # items of keys that are no keys on the other side
_MOST_KEYS = 30_000
_SMALL, _REMEMBERED = 64, 1 << 12  # bytes of a value that is remembered, and how many are
_NUMBERS = (float, int, bool)
_OF_LINES = ("lines", "loose-lines")


class Comparison(NamedTuple):
    """A rule, and the tolerances of floats.

    - "equal": Python's `==` on data of equal structure; where a float is expected, within the tolerances.
    - "exact": Python's `==`; a tuple counts as a list, as in LiveCodeBench.
    - "set": the same items in any order, however often.
    - "not-none": something is returned where True is expected, and None where False is.
    - "lines": of printed texts, the same lines; see `codea1_env.sandbox.lines`.
    - "loose-lines": the same, but neither blanks before a line nor how a number is written count, as in LiveCodeBench.
    """

    rule: Rule = "equal"
    atol: float = FLOAT_ATOL
    """Absolute; of printed numbers, too."""
    rtol: float = FLOAT_RTOL
    """Relative."""

    def unlike(self, out: Any, expected: Any) -> str | None:
        """How printed texts differ; None by other rules, or where one is no text."""
        by_lines = self.rule in _OF_LINES and type(out) is type(expected) is str
        if not by_lines:
            return None
        return difference(out, expected, self.atol, loose=self.rule == "loose-lines")


def default_atol(rule: Rule) -> float:
    """Return the absolute tolerance where none is said: printed numbers are compared as they are written."""
    return 0.0 if rule in _OF_LINES else FLOAT_ATOL


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a call returned."""

    value: Any


Read = Callable[[bytes], Returned | TestResult]


def reading(budget: codec.Budget) -> Read:
    """Make a reader of replies, each within a budget. It remembers small ones: nobody may change their values."""

    def read(frame: bytes) -> Returned | TestResult:
        return read_returned(frame, codec.Meter(budget))

    remembered = lru_cache(_REMEMBERED)(read)
    return lambda frame: (remembered if len(frame) <= _SMALL else read)(frame)


_read = reading(codec.VALUES)


@guarded
def judge_reply(
    frame: bytes, expected: bytes, comparison: Comparison, read: Read = _read
) -> TestResult:
    """Judge what a program's process answered to a call. `read`: see `reading`."""
    if frame == expected and comparison.rule != "not-none":
        return _PASSED
    if comparison.rule == "not-none":
        return _something(frame, expected)
    if not expected.startswith(RETURNED):  # too large to be sent: only its digest is known
        said = read(frame)
        if isinstance(said, TestResult) and said.outcome is not Outcome.OUTPUT_LIMIT:
            return said
        return TestResult(Outcome.FAIL, "it did not return the very large value that is expected")
    if (
        comparison.rule not in ("set", *_OF_LINES)
        and len(frame) > _LONGER * len(expected) + _LONGEST_MESSAGE
    ):
        return TestResult(Outcome.FAIL, "it returned a much longer value")
    found = read(frame)
    if isinstance(found, TestResult):
        return found
    right = codec.decode(expected[len(RETURNED) :])
    if same(found.value, right, comparison):
        return _PASSED
    unlike = comparison.unlike(found.value, right)
    return TestResult(Outcome.FAIL, unlike or f"returned {short(found.value)}, not {short(right)}")


_PASSED = TestResult(Outcome.PASS)


@guarded
def read_returned(frame: bytes, meter: codec.Meter) -> Returned | TestResult:
    """Read the value that a call returned, or how else it ended."""
    try:
        if frame.startswith(RETURNED):  # a number alone is read at once
            return Returned(codec.decode(frame[len(RETURNED) :], meter=meter))
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
    return Returned(said[0])


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


def same(out: Any, expected: Any, comparison: Comparison) -> bool:
    """Whether plain data is what is expected, by a rule. By "not-none" it is, if both are None or neither is.

    Example:
        >>> same([2, 1, 1], (1, 2), Comparison("set")), same((1, 2), [1, 2], Comparison("exact"))
        (True, True)
        >>> same(0.1 + 0.2, 0.3, Comparison()), same(0.1 + 0.2, 0.3, Comparison(atol=0, rtol=0))
        (True, False)
    """
    if comparison.rule == "set":
        return _as_set(out, expected)
    if comparison.rule == "not-none":
        return (out is None) == (expected is None)
    if (unlike := comparison.unlike(out, expected)) is not None:
        return not unlike
    if comparison.rule == "exact":
        out, expected = (list(each) if type(each) is tuple else each for each in (out, expected))
        return equal(out, expected, 0.0, 0.0)
    return equal(out, expected, comparison.atol, comparison.rtol)


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
        if atol == rtol == 0:  # they are not equal; `isclose` would round an integer first
            return False
        return math.isclose(out, expected, rel_tol=rtol, abs_tol=atol)
    if kind is list or kind is tuple or kind is deque:
        return (
            type(out) is kind
            and len(out) == len(expected)
            and all(a == b or _close(a, b, atol, rtol) for a, b in zip(out, expected, strict=True))
        )
    if isinstance(expected, dict) and isinstance(out, dict):
        ordered = kind is OrderedDict and type(out) is OrderedDict
        if len(out) != len(expected) or (ordered and list(out) != list(expected)):
            return False
        keys = [(key, key) for key in expected if key in out]
        others = _in_order(out.keys() - expected.keys(), expected.keys() - out.keys())
        pairs = [*keys, *((a, b) for a, b in others if _close(a, b, atol, rtol))]
        return len(pairs) == len(expected) and all(
            out[a] == expected[b] or _close(out[a], expected[b], atol, rtol) for a, b in pairs
        )
    if kind in _SETS and type(out) in _SETS:
        if len(out) != len(expected):
            return False
        return all(_close(a, b, atol, rtol) for a, b in _in_order(out - expected, expected - out))
    return bool(out == expected)


_SETS = (set, frozenset)


def _in_order(out: Collection[Any], expected: Collection[Any]) -> Iterator[tuple[Any, Any]]:
    """Pair what two sets do not share, smallest first; what equals nothing, such as nan, comes last."""
    if any(codec.weight(list(side), _MOST_SORTED) > _MOST_SORTED for side in (out, expected)):
        raise ValueError("too many to put in order")
    sides = ([*filter(_equals_itself, side)] for side in (out, expected))
    odd = ([each for each in side if not _equals_itself(each)] for side in (out, expected))
    return zip(*(sorted(side) + other for side, other in zip(sides, odd, strict=True)), strict=True)


def _equals_itself(value: Any) -> bool:
    return bool(value == value)


_CONTAINERS = (list, tuple, set, frozenset)


def _as_set(*sides: Any) -> bool:
    if any(type(each) not in _CONTAINERS or len(each) > _MOST_KEYS for each in sides):
        return False
    try:
        for each in sides:
            codec.check_hashes(each)
        out, expected = map(set, sides)
    except (codec.DecodeError, TypeError):  # an item that cannot be in a set
        return False
    return bool(out == expected)


def short(value: Any) -> str:
    """Return a value in few characters, the same in every process."""
    kind = type(value)
    if kind in _SIMPLE or (kind is int and -_LARGE < value < _LARGE):  # most are
        return repr(value)
    if kind is str and len(value) <= _LONGEST and len(text := repr(value)) <= _LONGEST:
        return text
    try:
        return _SHORT.repr(value)
    except ValueError:  # more digits than Python prints
        return f"a very long {type(value).__name__}"


_SIMPLE = (float, bool, type(None))
_LARGE, _LONGEST, _MOST = 10**18, 60, 8
_MOST_SHOWN = 14_000  # items that are put in order, or bits of a number that is written


class _Short(reprlib.Repr):
    """Writes no more of a value than is shown, and sorts nothing large."""

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        if kind is int and x.bit_length() > _MOST_SHOWN:
            raise ValueError("too many digits")
        if (kind is bytes or kind is bytearray) and len(x) > 2 * _LONGEST:
            x = x[:_LONGEST] + x[-_LONGEST:]  # of which the middle is left out
        elif kind not in (list, tuple, deque, str) and codec.weight(x, _MOST_SHOWN) > _MOST_SHOWN:
            return f"<{kind.__name__} of {len(x)} items>"
        return super().repr1(x, level)


_SHORT = _Short()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = _MOST
_SHORT.maxdeque = _SHORT.maxarray = _MOST
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST
