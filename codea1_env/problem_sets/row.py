"""A row of a data set, and its fields with the types that they should have."""

from __future__ import annotations

from typing import Any, NamedTuple


class Row(NamedTuple):
    """One row of a file or data set, and where it stands."""

    fields: Any
    """The values by name, if the row is one at all: any JSON value may stand in a line."""
    where: str
    split: str | None = None
    """The split that the data set files it under; None where the row itself must say."""
    variant: str = ""
    """Which of several problems that one row describes is meant, as "instruct" in BigCodeBench."""


def text_of(row: Row, name: str) -> str:
    """The field of this name.

    Raises:
        TypeError: It is no text.
    """
    value = row.fields.get(name)
    if not isinstance(value, str):
        raise TypeError(f"Expect {name!r} to be text, actually: {show(value)}")
    return value


def texts_of(row: Row, name: str) -> list[str]:
    """The field of this name; an empty list where there is none.

    Raises:
        TypeError: It is no list of texts.
    """
    value = row.fields.get(name)
    value = [] if value is None else value
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"Expect {name!r} to be a list of texts, actually: {show(value)}")
    return list(value)


def origin(row: Row, source: str, split: str) -> dict[str, str]:
    """The metadata that every problem has."""
    return {"source": source, "split": row.split or split}


def show(value: object) -> str:
    """A value in a message."""
    return f"{type(value).__name__} {value!r:.80}"
