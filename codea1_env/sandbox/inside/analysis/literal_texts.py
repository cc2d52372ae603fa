"""Plain data -> the text of a literal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .literal_values import NotLiteralError

MAX_SOURCE = 20_000
"""Characters of a value that is written."""

_INF = math.inf
_FLAT = frozenset({int, str, bool, type(None)})


def write(value: Any) -> str | None:
    """The text of a value: the same for what is the same and has the same types. Sets are sorted.

    Returns:
        An expression that `read` and Python understand. None if there is none (an object, a subclass), or
        if it is longer than `MAX_SOURCE`.

    Example:
        >>> write({"b": (1.5, float("inf")), "a": {3, 1}, "c": [float("nan"), set()]})
        "{'b': (1.5, float('inf')), 'a': {1, 3}, 'c': [float('nan'), set()]}"
        >>> write(object()) is None
        True
    """
    try:
        text = _write(value)
    except (
        NotLiteralError,
        RecursionError,
        ValueError,
    ):  # ValueError: more digits than Python prints
        return None
    return text if len(text) <= MAX_SOURCE else None


def _write(value: Any) -> str:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise NotLiteralError("no plain data")
    return writer(value)


def _joined(values: Any) -> str:
    if 3 * len(values) > MAX_SOURCE + 2:
        raise NotLiteralError("too long")
    if len(values) <= 64:
        text = ", ".join([_WRITERS.get(type(value), _write)(value) for value in values])
        if len(text) > MAX_SOURCE:
            raise NotLiteralError("too long")
        return text
    texts, size = [], 0
    for value in values:
        texts.append(_write(value))
        size += len(texts[-1])
        if size > MAX_SOURCE:
            raise NotLiteralError("too long")
    return ", ".join(texts)


def _write_integer(value: int) -> str:
    if value.bit_length() > 4 * MAX_SOURCE:
        raise NotLiteralError("too long")
    return repr(value)


def _write_text(value: Any) -> str:
    if len(value) > MAX_SOURCE:
        raise NotLiteralError("too long")
    return repr(value)


def _write_float(value: float) -> str:
    return repr(value) if -_INF < value < _INF else f"float('{value}')"


def _write_complex(value: complex) -> str:
    plus_real, plus_imag = (math.copysign(1.0, part) > 0 for part in (value.real, value.imag))
    plain = (plus_imag or value.imag != 0.0) if value.real != 0.0 else (plus_real and plus_imag)
    if plain and abs(value.real) < _INF and abs(value.imag) < _INF:
        return repr(value)
    # `repr` of it is a sum, which loses the sign of a zero.
    return f"complex({_write_float(value.real)}, {_write_float(value.imag)})"


def _write_list(value: list[Any]) -> str:
    return repr(value) if _is_flat(value) else f"[{_joined(value)}]"


def _write_tuple(value: tuple[Any, ...]) -> str:
    if _is_flat(value):
        return repr(value)
    return f"({_joined(value)},)" if len(value) == 1 else f"({_joined(value)})"


def _is_flat(values: Any) -> bool:
    """Whether Python's own text of a list or tuple, which is made much faster, is the same."""
    return 3 * len(values) <= MAX_SOURCE and _FLAT.issuperset(map(type, values))


def _write_dict(value: dict[Any, Any]) -> str:
    if 6 * len(value) > MAX_SOURCE + 2:
        raise NotLiteralError("too long")
    parts, size = [], 0
    for key, item in value.items():
        parts.append(f"{_write(key)}: {_write(item)}")
        size += len(parts[-1])
        if size > MAX_SOURCE:
            raise NotLiteralError("too long")
    return f"{{{', '.join(parts)}}}"


def _sorted(value: Any) -> str:
    if 3 * len(value) > MAX_SOURCE + 2:
        raise NotLiteralError("too long")
    texts, size = [], 0
    for item in value:
        texts.append(_write(item))
        size += len(texts[-1])
        if size > MAX_SOURCE:
            raise NotLiteralError("too long")
    return ", ".join(sorted(texts))


def _write_set(value: set[Any]) -> str:
    return f"{{{_sorted(value)}}}" if value else "set()"


def _write_frozenset(value: frozenset[Any]) -> str:
    return f"frozenset({{{_sorted(value)}}})" if value else "frozenset()"


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): repr, bool: repr, int: _write_integer, float: _write_float, complex: _write_complex,
    str: _write_text, bytes: _write_text, list: _write_list,
    tuple: _write_tuple, dict: _write_dict, set: _write_set, frozenset: _write_frozenset,
}  # fmt: skip
