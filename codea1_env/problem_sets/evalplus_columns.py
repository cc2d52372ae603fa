"""Inputs of EvalPlus's own files, columns of JSON, with the types that MBPP+ means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
