"""Golden tests of data files -> cases: arguments, and what the function returns. Runs inside `Sandbox.analyse`.

A data file's statements and test modules are read like a tester's answer, with two differences: they may be larger,
and nothing is left out silently, so that a row is data as a whole or says why not.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError

from .chunks import PARSE_ERRORS, message_of, parse
from .predictions import Prediction, Tolerance
from .statements import Bounds, Enough, Statements

FILE = Bounds(items=2_000_000, work=4_000_000, tests=20_000, steps=200_000)
"""Of one row of a data file: the largest of MBPP+ has 800,000 characters of literals."""
MAX_DIGITS = 50_000
"""Of an integer."""
_SHOWN = 200

GoldenCase = tuple[tuple[Any, ...], dict[str, Any], Any, float | None, float | None, str]
"""Arguments, keyword arguments, expected value; the absolute and relative tolerance that the test states; "list" where
the test says `list(f(x)) == [1]`, so that a function that returns an iterator is right as well ("" without a type)."""


def golden_cases(
    statements: list[str], entry_point: str
) -> list[tuple[list[GoldenCase], str | None]]:
    """Return what golden tests say, in order.

    Names that one statement binds keep their values in the next: set-up lines and imports have no case and no reason.

    Args:
        statements: Texts with one statement or more.
        entry_point: `f`, or `Solution.f` for a method of a new instance.

    Returns:
        For each text, its cases and why it is not all cases (None if it is).

    Example:
        >>> golden_cases(["x = [1]", "assert f(x, by=2) == 3", "assert f(x) > g(x)"], "f")
        [([], None), ([(([1],), {'by': 2}, 3, None, None, '')], None), ([], 'does not say what a call returns')]
    """
    found = _Golden(entry_point)
    with _long_integers():
        for text in statements:
            found.next()
            found.read(text)
        found.finish()
    return [(cases, reasons[0][0] if reasons else None) for cases, reasons in found.rows[1:]]


def pytest_cases(
    module_text: str, entry_point: str
) -> tuple[list[GoldenCase], list[tuple[str, str]]]:
    r"""Return the cases in a test module: functions and classes of pytest and unittest, loops, `parametrize`.

    Tests that are marked not to run are left out.

    Args:
        module_text: A module such as KodCode's, with `from solution import f`.
        entry_point: `f`, or `Solution.f` for a method of a new instance.

    Returns:
        The cases, and for what is no case the reason and the text. The module is data as a whole if there is none.

    Example:
        >>> pytest_cases("from solution import f\ndef test_a():\n    assert f(2) == 4\n    assert f(3) > 4", "f")
        ([((2,), {}, 4, None, None, '')], [('does not say what a call returns', 'assert f(3) > 4')])
    """
    found = _Golden(entry_point)
    with _long_integers():
        found.read(module_text)
        found.finish()
    cases, unread = found.rows[0]
    return cases, unread


class _Golden:
    """The cases of some texts that share their names."""

    def __init__(self, entry_point: str) -> None:
        self.rows: list[tuple[list[GoldenCase], list[tuple[str, str]]]] = [([], [])]
        self._statements = Statements(entry_point, self._add, self._drop, FILE, strict=True)
        self._enough = ""

    def next(self) -> None:
        self.rows.append(([], []))

    def read(self, text: str) -> None:
        if self._enough:
            return self._drop("", self._enough, text, True)
        try:
            body = parse(text)
        except PARSE_ERRORS as error:
            return self._drop("unparsable", message_of(error), text, True)
        with self._bounded(text):
            self._statements.run(body, text)
        return None

    def finish(self) -> None:
        if not self._enough:
            with self._bounded(""):
                self._statements.finish()

    @contextlib.contextmanager
    def _bounded(self, text: str) -> Iterator[None]:
        try:
            yield
        except (Enough, NotLiteralError) as error:
            self._enough = str(error)
            self._drop("", self._enough, text, True)
        except RecursionError:
            self._drop("", "nested too deep", text, True)

    def _add(self, found: Prediction) -> None:
        stated = found.tolerance or Tolerance()
        given = tuple(found.call.arguments), found.call.keywords
        case = (*given, found.value, *stated, found.through)
        try:
            codec.encode(case)
        except codec.EncodeError as error:
            raise NotLiteralError(str(error)) from None
        self.rows[-1][0].append(case)

    def _drop(self, fault: str, reason: str, text: str, invalid: bool) -> None:
        self.rows[-1][1].append((reason, text.strip()[:_SHOWN]))


@contextlib.contextmanager
def _long_integers() -> Iterator[None]:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MAX_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)
