r"""The inputs and results of EvalPlus: lists of literals in test texts, megabytes of them, and columns of JSON.

Most are numbers, plain texts, lists and tuples: JSON, but for quotes, tuples and the names of three constants. Those are
read so, a few times as fast as Python's parser and without its memory. The others go to the analysis process.

    >>> read_list("[[1, 'a\"b'], [True, None]]")
    [[1, 'a"b'], [True, None]]
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
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


# Columns of JSON, which has neither tuples nor sets nor complex numbers.

Change = Callable[[Any], Any]


def _each(change: Change) -> Change:
    """Change the items of a list."""
    return lambda value: [*map(change, value)] if isinstance(value, list) else value


def _same(value: Any) -> Any:
    return value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tuples_only(value: Any) -> Any:
    return tuple(map(_tuples_only, value)) if isinstance(value, list) else value


def _of_tuples(value: Any) -> Any:
    return tuple(_each(_tuple)(value))


def _set(value: Any) -> Any:
    return set(value) if isinstance(value, list) and value else {}


def _values(value: Any) -> Any:
    return {key: _tuple(each) for key, each in value.items()}


_CHANGES: tuple[tuple[str, tuple[Change, ...]], ...] = (
    ("2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809", (_tuple,)),
    ("63 64 70 94 120 237 272 299 400 409 417 438 473 614 780", (_each(_tuple),)),
    ("75 413 444 753", (_each(_tuple), _same)),
    ("106 750", (_same, _tuple)),
    ("115", (_each(_set),)),
    ("124", (float, complex)),
    ("250 405 446 617 720 763 808 307", (_tuple, _same)),
    ("259 401 445 278", (_of_tuples,)),
    ("722", (_values, _same)),
    ("252", (complex,)),
    ("580 615 791", (_tuples_only,)),
)  # fmt: skip
"""Numbers of problems, and what becomes of their arguments; the last change is that of all arguments behind it, too."""
_OF = {int(number): changes for numbers, changes in _CHANGES for number in numbers.split()}


def deserialized(task_id: str, inputs: Sequence[Any]) -> list[list[Any]]:
    """Return inputs with the types that MBPP+ means.

    Example:
        >>> deserialized("Mbpp/106", [[[1], [2]]]), deserialized("Mbpp/3", [[[1]]])
        ([[[1], (2,)]], [[[1]]])
    """
    number = task_id.rpartition("/")[2]
    changes = _OF.get(int(number) if number.isdecimal() else 0)
    if changes is None:
        return list(inputs)
    try:
        return [
            [changes[min(place, len(changes) - 1)](each) for place, each in enumerate(given)]
            for given in inputs
        ]
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"Expect inputs of the shape that {task_id} has, actually: {error}"
        ) from error
