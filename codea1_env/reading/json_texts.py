"""Texts in the JSON of an answer: a list of tests under a key, or code."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator

_MAX_STRINGS = 20
_MAX_TRIES = 8
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)


def listed_statements(answer: str, key: str) -> list[str] | None:
    r"""Return the texts under a key of the JSON in an answer; None if there is none.

    One text may stand for the list. Of several lists the last one counts, which corrects the others. Of JSON that is cut
    off, the complete texts are taken.

    Example:
        >>> listed_statements('So: {"tests": ["assert f(1) == 2", "assert f(', "tests")
        ['assert f(1) == 2']
    """
    decoder = json.JSONDecoder(strict=False)
    last: list[str] | None = None
    at = tries = 0
    while tries < _MAX_TRIES and (at := answer.find("{", at)) >= 0:
        end = at + 1
        with contextlib.suppress(ValueError, RecursionError):
            found, behind = decoder.raw_decode(answer, at)
            if key in found:
                items = found[key] if isinstance(found[key], list) else [found[key]]
                last, end = [item for item in items if isinstance(item, str)], behind
                tries -= 1
        at, tries = end, tries + 1
    if last is not None:
        return last
    start = re.search(rf"\"{re.escape(key)}\"\s*+:\s*+\[?", answer)
    if start is None:
        return None
    texts: list[str] = []
    at = start.end()
    for begin, end, text in _strings(answer, at):
        if answer[at:begin].strip() not in ("", ","):
            break
        texts += [text] if text is not None else []
        at = end
    return texts


def strings_with(text: str, word: str) -> Iterator[str]:
    r"""Yield the strings of JSON that hold a word, also of JSON that is cut off; lists of lines as one.

    Example:
        >>> next(strings_with('{"code": "def f():\\n    return 1"}', "f"))
        'def f():\n    return 1'
    """
    found = [
        (start, end, each)
        for start, end, each in _strings(text)
        if each is not None and _is_of_json(text, start)
    ]
    gaps = itertools.pairwise(found[1:])
    if len(found) > 2 and all(text[one[1] : other[0]].strip() == "," for one, other in gaps):
        yield "\n".join([each for _, _, each in found[1:]])
        return
    for _, _, each in found[:_MAX_STRINGS]:
        if word in each and each != word:
            yield each


def _is_of_json(text: str, start: int) -> bool:
    """Whether a string stands where one of JSON does; else it is one of Python, or a quotation."""
    while start and text[start - 1].isspace():
        start -= 1
    return not start or text[start - 1] in "[{,:"


def _strings(text: str, at: int = 0) -> Iterator[tuple[int, int, str | None]]:
    """Yield start, end and value of strings; None for one with an escape that JSON does not have."""
    while (at := text.find('"', at)) >= 0 and (found := _STRING.match(text, at)):
        at, value = found.end(), None
        with contextlib.suppress(ValueError):
            value = str(json.loads(found[0], strict=False))
        yield found.start(), at, value
