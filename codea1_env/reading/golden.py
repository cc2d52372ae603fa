"""Golden tests of data files -> cases: arguments, and what the function returns. Runs inside `Sandbox.analyse`.

A data file's statements, test modules and large literals are read like a tester's answer, with two differences: they
may be larger, and nothing is left out silently, so that a row is data as a whole or says why not.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.literals import LiteralMeter, NotLiteralError, read

from .chunks import PARSE_ERRORS, message_of, parse
from .predictions import Prediction, Tolerance
from .statements import Bounds, Enough, Statements

FILE = Bounds(items=2_000_000, work=4_000_000, tests=20_000, steps=200_000)
"""Of one row of a data file: the largest of MBPP+ has 800,000 characters of literals."""
MAX_DIGITS = 50_000
"""Of an integer."""
_SHOWN = 200
_NAMES = {"inf": math.inf, "nan": math.nan}
"""What test files import from `math`."""

GoldenCase = tuple[tuple[Any, ...], dict[str, Any], Any, float | None, float | None, str]
"""Arguments, keyword arguments, expected value; the absolute and relative tolerance that the test states; "list" where
the test says `list(f(x)) == [1]`, so that a function that returns an iterator is right as well ("" without a type)."""


def golden_cases(
    statements: list[str], entry_point: str
) -> list[tuple[list[GoldenCase], str | None]]:
    """Return what golden tests say: for each text its cases, and why it is not all cases (None if it is).

    Names that one statement binds keep their values in the next: set-up lines and imports have no case and no reason.

    Example:
        >>> golden_cases(["x = [1]", "assert f(x, by=2) == 3", "assert f(x) > g(x)"], "f")
        [([], None), ([(([1],), {'by': 2}, 3, None, None, '')], None), ([], 'does not say what a call returns')]
    """
    rows = _read(statements, entry_point)
    return [(cases, unread[0][0] if unread else None) for cases, unread in rows]


def pytest_cases(
    module_text: str, entry_point: str
) -> tuple[list[GoldenCase], list[tuple[str, str]]]:
    r"""Return the cases in a test module such as KodCode's, and for what is no case the reason and the text.

    Functions and classes of pytest and unittest, loops and `parametrize` are read.

    Example:
        >>> pytest_cases("from solution import f\ndef test_a():\n    assert f(2) == 4\n    assert f(3) > 4", "f")
        ([((2,), {}, 4, None, None, '')], [('does not say what a call returns', 'assert f(3) > 4')])
    """
    return _read([module_text], entry_point)[0]


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
        body = ast.parse(text.strip(), mode="eval").body
        return read(body, _NAMES, LiteralMeter(FILE.items, work=FILE.work)), None
    except NotLiteralError as error:
        return None, str(error)
    except PARSE_ERRORS as error:
        return None, message_of(error)


Row = tuple[list[GoldenCase], list[tuple[str, str]]]


def _read(texts: list[str], entry_point: str) -> list[Row]:
    """Return the cases of some texts that share their names, and what is none."""
    rows: list[Row] = []

    def drop(fault: str, reason: str, text: str, invalid: bool) -> None:
        rows[-1][1].append((reason, text.strip()[:_SHOWN]))

    statements = Statements(
        entry_point, lambda found: rows[-1][0].append(_case(found)), drop, FILE, strict=True
    )

    def bounded(text: str, follow: Callable[[], None]) -> str:
        """Follow something, and return why nothing more is read, if so."""
        try:
            follow()
        except (Enough, NotLiteralError) as error:
            drop("", str(error), text, True)
            return str(error)
        except RecursionError:
            drop("", "nested too deep", text, True)
        return ""

    def run(text: str) -> None:
        try:
            body = parse(text)
        except PARSE_ERRORS as error:
            return drop("", message_of(error), text, True)
        return statements.run(body, text)

    enough = ""
    with _long_integers():
        for text in texts:
            rows.append(([], []))
            if enough:
                drop("", enough, text, True)
            else:
                enough = bounded(text, functools.partial(run, text))
    return rows


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
