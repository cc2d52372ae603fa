"""Large literals of data files -> values. Runs inside `Sandbox.analyse`."""

from __future__ import annotations

import ast
import math
import sys
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import LiteralMeter, NotLiteralError, read

from .chunks import PARSE_ERRORS, message_of
from .golden import FILE, MAX_DIGITS

_NAMES = {"inf": math.inf, "nan": math.nan}
"""What test files import from `math`."""


def read_values(texts: list[str]) -> list[tuple[Any, str | None]]:
    """Return the value of each text, and why it has none (None if it has one).

    Example:
        >>> read_values(["[(1, inf)]", "[f()]"])
        [([(1, inf)], None), (None, 'f(...) is a call')]
    """
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MAX_DIGITS)
    try:
        return [_value(text) for text in texts]
    finally:
        sys.set_int_max_str_digits(before)


def _value(text: str) -> tuple[Any, str | None]:
    try:
        body = ast.parse(text.strip(), mode="eval").body
        return read(body, _NAMES, LiteralMeter(FILE.items, work=FILE.work)), None
    except NotLiteralError as error:
        return None, str(error)
    except PARSE_ERRORS as error:
        return None, message_of(error)
