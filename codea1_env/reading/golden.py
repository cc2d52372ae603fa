"""Golden tests of data files -> cases: arguments, and what the function returns. Runs inside `Sandbox.analyse`.

A data file's statements, test modules and large literals are read like a tester's answer, with two differences: they
may be larger, and nothing is left out silently, so that a row is data as a whole or says why not.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.literals import LiteralMeter, NotLiteralError, read

from .predictions import Prediction
from .statements import Bounds, Enough, Statements
from .syntax import PARSE_ERRORS, attempt, message_of, tree_of
from .tolerances import Tolerance

FILE = Bounds(items=2_000_000, work=4_000_000, tests=20_000, steps=200_000)
"""Of one row of a data file: the largest of MBPP+ has 800,000 characters of literals."""
MAX_DIGITS = 50_000
"""Of an integer."""
_NAMES = {"inf": math.inf, "nan": math.nan}
"""What test files import from `math`."""

GoldenCase = tuple[tuple[Any, ...], dict[str, Any], Any, float | None, float | None, str]
"""Arguments, keyword arguments, expected value; the absolute and relative tolerance that the test states; "list" where
the test says `list(f(x)) == [1]`, so that a function that returns an iterator is right as well ("" without a type)."""


def golden_cases(texts: list[str], entry_point: str) -> list[tuple[list[GoldenCase], str | None]]:
    r"""Return what golden tests say: for each text its cases, and why it is not all cases (None if it is).

    A text is a statement, or a test module such as KodCode's. Names that one binds keep their values in the next: set-up
    lines and imports have no case and no reason.

    Example:
        >>> golden_cases(["x = [1]", "assert f(x, by=2) == 3", "assert f(x) > g(x)"], "f")
        [([], None), ([(([1],), {'by': 2}, 3, None, None, '')], None), ([], 'does not say what a call returns')]
        >>> golden_cases(["from solution import f\ndef test_a():\n    assert f(2) == 4"], "f")
        [([((2,), {}, 4, None, None, '')], None)]
    """
    cases: list[list[GoldenCase]] = []
    reasons: list[str | None] = []

    def drop(fault: str, reason: str, text: str, invalid: bool) -> None:
        reasons[-1] = reasons[-1] or reason

    statements = Statements(
        entry_point, lambda found: cases[-1].append(_case(found)), drop, FILE, strict=True
    )

    def follow(text: str) -> str:
        """Follow a text, and return why nothing more is read, if so."""
        body = attempt(text)
        if isinstance(body, BaseException):
            drop("", message_of(body), text, True)
            return ""
        try:
            statements.run(body, text)
        except RecursionError:
            drop("", "nested too deep", text, True)
        except (Enough, NotLiteralError) as error:
            drop("", str(error), text, True)
            return str(error)
        return ""

    enough = ""
    with _long_integers():
        for text in texts:
            cases.append([])
            reasons.append(enough or None)
            enough = enough or follow(text)
    return list(zip(cases, reasons, strict=True))


def read_values(texts: list[str]) -> list[tuple[Any, str | None]]:
    """Return the value of each text, and why it has none (None if it has one).

    Example:
        >>> read_values(["[(1, inf)]", "[f()]"])
        [([(1, inf)], None), (None, 'f(...) is a call')]
    """
    with _long_integers():
        return [_value(text) for text in texts]


def _value(text: str) -> tuple[Any, str | None]:
    try:
        body = tree_of(text.strip(), "eval").body
        return read(body, _NAMES, LiteralMeter(FILE.items, work=FILE.work)), None
    except NotLiteralError as error:
        return None, str(error)
    except PARSE_ERRORS as error:
        return None, message_of(error)


def _case(found: Prediction) -> GoldenCase:
    absolute, relative = found.tolerance or Tolerance()
    call = found.call
    case = tuple(call.arguments), call.keywords, found.value, absolute, relative, found.through
    try:
        codec.encode(case)
    except codec.EncodeError as error:
        raise NotLiteralError(str(error)) from None
    return case


@contextlib.contextmanager
def _long_integers() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MAX_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)
