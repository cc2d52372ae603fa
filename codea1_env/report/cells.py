"""Tables: texts, with the numbers that their columns are sorted by."""

from __future__ import annotations

from typing import NamedTuple

from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import clean

_LONGEST = 2_000
"""Characters of a cell."""


class Cell(NamedTuple):
    """A cell."""

    text: str
    order: float | None = None
    """What it is sorted by; None for its text."""
    one_line: bool = False
    """Whether it is kept in one line however long it is, as a command is."""


class Sheet(NamedTuple):
    """A table."""

    title: str
    note: str
    headings: list[str]
    rows: list[list[Cell]]


def figure_cell(value: Estimate | float | None, form: str = ".3f") -> Cell:
    """Return a number as a cell; those that are not known come last."""
    if value is None:
        return Cell("-", float("-inf"))
    if isinstance(value, Estimate):
        return Cell(str(value), value.value)
    return Cell(format(value, form), float(value))


def text_cell(text: str) -> Cell:
    """Return any text as a cell: made safe to show, and cut if it is long."""
    more = f" ... ({len(text) - _LONGEST} more characters)" if len(text) > _LONGEST else ""
    return Cell(clean(text[:_LONGEST]) + more)
