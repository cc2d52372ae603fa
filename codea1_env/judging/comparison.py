"""Is it the value that was expected? First the bytes; only where they differ, what they say.

Whatever a program answers, reading and comparing it costs milliseconds at most: it is read within a small budget, and
not at all if it is much longer than what was expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from codea1_env.sandbox import RETURNED, Limit, Outcome, TestResult, meaning_of
from codea1_env.sandbox.compare import equal, short
from codea1_env.sandbox.inside import codec

PASSED = TestResult(Outcome.PASS)

# What equals a value whose literal has 20,000 characters is not larger; and keys of one hash are compared one by one.
_BUDGET = replace(codec.CHEAP, size=96 << 10, items=10_000, keys=4_000, equal_hashes=8)
MAX_REPLY = _BUDGET.size
"""Bytes of a reply that can be read."""
_SMALL = 512  # bytes of two replies whose comparison is worth remembering
_REMEMBERED = 1 << 14
# An integer takes nine bytes where the bool that equals it takes one.
_LONGER, _LONGEST_MESSAGE = 9, 4096
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")


@dataclass(frozen=True, slots=True)
class Returned:
    """A call returned."""

    value: Any


def read_reply(frame: bytes) -> Returned | TestResult:
    """Return what the process of a program answered to a call: plain data, or how the call ended."""
    try:
        if frame.startswith(RETURNED):  # a number alone is read at once
            return Returned(codec.decode(frame[len(RETURNED) :], meter=codec.Meter(_BUDGET)))
        reply = codec.decode(frame, meter=codec.Meter(_BUDGET))
    except codec.BudgetError as error:
        why = f"the value costs too much to read: {error}"
        return TestResult(Outcome.OUTPUT_LIMIT, why, limit=Limit.RESULT)
    except codec.DecodeError as error:
        return TestResult(Outcome.FORBIDDEN, f"a malformed reply: {error}")
    said = meaning_of(reply)
    if isinstance(said, TestResult):
        return replace(said, message=without_addresses(said.message))
    if len(said) != 1:
        return TestResult(Outcome.FORBIDDEN, "a reply with a strange shape")
    return Returned(said[0])


def judge_reply(frame: bytes, expected: bytes, tolerance: float) -> TestResult:
    """Judge what a program answered to a call.

    Args:
        frame: What its process sent; hostile.
        expected: What the reference's process sent.
        tolerance: Relative and absolute, of floats; 0 for exact.
    """
    if frame == expected:
        return PASSED
    if len(frame) + len(expected) <= _SMALL:
        return _small_judgement(frame, expected, tolerance)
    return _judgement(frame, expected, tolerance)


def _judgement(frame: bytes, expected: bytes, tolerance: float) -> TestResult:
    if len(frame) > _LONGER * len(expected) + _LONGEST_MESSAGE:
        return TestResult(Outcome.FAIL, "it returned a much longer value")
    found = read_reply(frame)
    if isinstance(found, TestResult):
        return found
    right = _small_reply(expected) if len(expected) <= _SMALL else read_reply(expected)
    assert isinstance(right, Returned)
    if same(found.value, right.value, tolerance):
        return PASSED
    return TestResult(Outcome.FAIL, f"returned {short(found.value)}, not {short(right.value)}")


_small_reply = lru_cache(maxsize=_REMEMBERED)(read_reply)
_small_judgement = lru_cache(maxsize=_REMEMBERED)(_judgement)


def same(found: Any, expected: Any, relative: float, absolute: float | None = None) -> bool:
    """Python's `==` on plain data of the same structure. Where a float is expected, within a tolerance; nan is nan.

    Args:
        found: Plain data.
        expected: Plain data. Where it holds an integer, only an equal number will do.
        relative: Tolerance; 0 for exact.
        absolute: Another tolerance; None for the same one.

    Example:
        >>> same([0.1 + 0.2, {"a": 1}], [0.3, {"a": True}], 1e-6), same([0.1 + 0.2], [0.3], 0)
        (True, False)
        >>> same(float(10**7), 10**7 + 1, 1e-6), same(2.0, 2, 0), same((1, 2), [1, 2], 1e-6)
        (False, True, False)
    """
    return equal(found, expected, relative if absolute is None else absolute, relative)


def without_addresses(message: str) -> str:
    """Return a message that is the same in every run.

    Example:
        >>> without_addresses("<function f at 0x7f03cbd90b80> is not plain data")
        '<function f at 0x...> is not plain data'
    """
    return _ADDRESS.sub("0x...", message) if "0x" in message else message
