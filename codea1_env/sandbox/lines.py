"""When is a printed text right? Line by line, with or without tolerance for numbers."""

from __future__ import annotations

import re
from decimal import Decimal, DecimalException

_SHOWN = 60
_BLANKS = re.compile(r"(\s+)")
"""Splits a line into words and what stands between them."""
_PRINTED = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as programs print one. Other spellings count as text: `+1`, `1_000`, `nan`, digits of other scripts."""


def difference(printed: str, expected: str, atol: float = 0.0, *, loose: bool = False) -> str:
    r"""Place where an output differs from the expected one; "" if they are equal.

    Blanks behind a line and empty lines at the end do not count. With a tolerance, lines that still differ are alike if
    they have the same words and blanks, but for numbers within the tolerance.

    Args:
        printed: What a program has printed.
        expected: What it should print.
        atol: Absolute tolerance of numbers; 0 compares their text.
        loose: Whether blanks before a line do not count either, and the same numbers are alike however they are written.
            Then 0 compares numbers exactly, as LiveCodeBench does: "1.0" is 1, and "0.333" is not a third.

    Example:
        >>> difference("1 \n2.5\n\n", "1\n2.5"), difference(" 2.50", "2.5", loose=True)
        ('', '')
        >>> difference("1\n3", "1\n2")
        "line 2: printed '3', expected '2'"
        >>> difference("0.3333", "0.333333333", atol=1e-3)
        ''
    """
    lines, wanted = (_lines(text, loose) for text in (printed, expected))
    for number, (line, other) in enumerate(zip(lines, wanted, strict=False), 1):
        if line != other and not ((atol or loose) and _same_numbers(line, other, atol, loose)):
            return f"line {number}: printed {_short(line)}, expected {_short(other)}"
    if len(lines) != len(wanted):
        return f"printed {len(lines)} lines, expected {len(wanted)}"
    return ""


def _lines(text: str, loose: bool) -> list[str]:
    if loose:
        return [line.strip() for line in text.strip().split("\n")]
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _same_numbers(line: str, other: str, atol: float, loose: bool) -> bool:
    words, others = ((x.split() if loose else _BLANKS.split(x)) for x in (line, other))
    if len(words) != len(others):
        return False
    try:
        pairs = zip(words, others, strict=True)
        return all((not loose and a == b) or _same_number(a, b, atol, loose) for a, b in pairs)
    except DecimalException:  # one is no number, or an exponent is out of all bounds
        return False


def _same_number(word: str, other: str, atol: float, loose: bool) -> bool:
    if atol and word == other:  # "inf" and "nan" are no distance apart
        return True
    if not (loose or (_PRINTED.fullmatch(word) and _PRINTED.fullmatch(other))):
        return False
    one, two = Decimal(word), Decimal(other)
    if one == two or not (atol and one.is_finite() and two.is_finite()):
        return one == two
    # Digits far beyond the tolerance decide nothing, and exponents may have any size.
    return abs(one - two) <= Decimal(repr(atol))


def _short(line: str) -> str:
    return ascii(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")
