"""Answers in JSON: a list of statements under a key, as testers of the release write them."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read

from .chunks import PARSE_ERRORS, parse

_MAX_TRIES = 5
_ITEM = re.compile(r"\s*+,?\s*+(\"(?:[^\"\\]|\\.)*+\")", re.DOTALL)


def listed_statements(answer: str, key: str) -> list[str] | None:
    r"""The texts under a key of the JSON in an answer; None if there is none.

    One text may stand for the list. Of JSON that is cut off, the complete texts are taken. A dict of Python that
    says the same is read as well.

    Example:
        >>> listed_statements('So: {"tests": ["assert f(1) == 2", "assert f(', "tests")
        ['assert f(1) == 2']
    """
    decoder = json.JSONDecoder(strict=False)
    place = answer.find("{")
    for _ in range(_MAX_TRIES):
        if place < 0:
            break
        try:
            found, _ = decoder.raw_decode(answer, place)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and key in found:
            return _texts(found[key])
        place = answer.find("{", place + 1)
    start = re.search(rf"\"{re.escape(key)}\"\s*+:\s*+\[?", answer)
    if start is not None:
        return _complete_texts(answer, start.end())
    try:
        body = parse(answer.strip())
        if len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Dict):
            found = read(body[0].value)
            return _texts(found[key]) if key in found else None
    except (*PARSE_ERRORS, NotLiteralError):
        pass
    return None


def _texts(found: Any) -> list[str]:
    items = found if isinstance(found, list) else [found]
    return [item for item in items if isinstance(item, str)]


def _complete_texts(answer: str, place: int) -> list[str]:
    texts: list[str] = []
    while True:
        item = _ITEM.match(answer, place)
        if item is None:
            return texts
        with contextlib.suppress(ValueError):  # an escape that JSON does not have
            texts.append(str(json.loads(item[1], strict=False)))
        place = item.end()
