r"""The inputs and results of EvalPlus: lists of literals in test texts, megabytes of them.

Most are numbers, plain texts, lists and tuples: JSON, but for quotes, tuples and the names of three constants. Those are
read so, a few times as fast as Python's parser and without its memory. The others go to the analysis process.

    >>> read_list("[[1, 'a\"b'], [True, None]]")
    [[1, 'a"b'], [True, None]]
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from codea1_env.problem_sets.golden import apart
from codea1_env.reading.golden import read_values

_PIECE = re.compile(r"'[^'\\\n]*+'|\"[^\"\\\n]*+\"|[^'\"]++")
_PLAIN = re.compile(r"(?:[\[\](){}:0-9\s,.eE+-]|True|False|None)*+")
_TUPLE, _COMMA = "\0(", "\0,"
_WORDS = {
    "True": "true", "False": "false", "None": "null", "(": f'{{{json.dumps(_TUPLE)}:[', ")": "]}",
    ",)": f'],{json.dumps(_COMMA)}:0}}',
}  # fmt: skip
_SHORT = 20
_WORD = re.compile(r"True|False|None|,\)|[()]")


def read_list(text: str) -> list[Any]:
    """Return the value of a list of literals."""
    found = _as_json(text)
    if found is not None:
        return found
    return _read_apart(text)


def _as_json(text: str) -> list[Any] | None:
    pieces, end = [], 0
    known: dict[str, str] = {}
    for match in _PIECE.finditer(text):
        piece = match[0]
        if match.start() != end:
            return None
        end = match.end()
        written = known.get(piece)
        if written is None:
            written = _written(piece)
            if written is None:
                return None
            if len(piece) < _SHORT:
                known[piece] = written
        pieces.append(written)
    if end != len(text):
        return None
    try:
        found = json.loads(
            "".join(pieces), parse_constant=_no_constant, object_hook=_tuple_or_dict, strict=False
        )
    except (ValueError, RecursionError):  # such as 1_000 and very long integers
        return None
    return found if type(found) is list else None


def _written(piece: str) -> str | None:
    """Return a piece as JSON; None if it may be something else."""
    if piece[0] in "'\"":
        if "\0" in piece:
            return None
        return (
            f'"{piece[1:-1]}"'
            if '"' not in piece
            else json.dumps(piece[1:-1])
            if piece[0] == "'"
            else piece
        )
    return _WORD.sub(lambda word: _WORDS[word[0]], piece) if _PLAIN.fullmatch(piece) else None


def _tuple_or_dict(found: dict[str, Any]) -> Any:
    if _TUPLE not in found:
        return found
    items = found[_TUPLE]
    if len(items) == 1 and _COMMA not in found:
        raise ValueError("brackets around one value are no tuple")
    return tuple(items)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _read_apart(text: str) -> list[Any]:
    [(found, reason)] = apart(read_values, [text])
    if reason is not None or type(found) is not list:
        raise ValueError(reason or f"a list was expected, actually: {text[:60]!r}")
    return found
