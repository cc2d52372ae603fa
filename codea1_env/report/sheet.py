"""A table as the terminal, the page and Markdown files draw it: texts, with the numbers that columns are sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import clean

TEXT = 20_000
"""Characters of a program or an answer that are shown."""
TEST = 2_000
"""Characters of a test or of a reason that are shown."""


class Bar(NamedTuple):
    """A bar with its interval, as percent of the room: starts and widths."""

    start: float
    width: float
    low: float
    between: float


class Cell(NamedTuple):
    """A cell."""

    text: str
    order: float | None = None
    """What it is sorted by; None for its text."""
    folded: bool = False
    """Whether it is shown on a click only, as a command is."""
    bar: Bar | None = None
    """What is drawn below its text."""


Value = Cell | Estimate | str | float | None
"""What a table is made of."""


class Sheet(NamedTuple):
    """A table."""

    title: str
    note: str
    headings: list[str]
    rows: list[list[Cell]]

    @classmethod
    def of(cls, rows: Iterable[Sequence[Value]], title: str = "", note: str = "") -> Sheet:
        """A table of values, the headings first."""
        headings, *others = rows
        return cls(title, note, list(map(str, headings)), [list(map(cell, row)) for row in others])


def cell(value: Value, form: str = ".3f") -> Cell:
    """Return a value as a cell: a text safe to show and cut if it is long; a number that is not known comes last."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(shortened(value, TEST))
    if value is None:
        return Cell("-", float("-inf"))
    if isinstance(value, Estimate):
        return Cell(str(value), value.value)
    return Cell(str(value) if isinstance(value, int) else format(value, form), value)


def bar_cell(value: Estimate | None, least: float) -> Cell:
    """Return a figure with its bar, where it lies between `least`, which is 0 or -1, and 1."""
    if value is None or value.low < least or value.high > 1:
        return cell(value)
    zero, at, low, high = (
        round(100 * (each - least) / (1 - least), 2)
        for each in (0.0, value.value, value.low, value.high)
    )
    return cell(value)._replace(bar=Bar(min(zero, at), abs(at - zero), low, high - low))


def folded_cell(words: str) -> Cell:
    """Return a command as a cell; "-" for none."""
    return cell(words)._replace(folded=True) if words else Cell("-")


def with_values(sheet: Sheet) -> Sheet:
    """Return a table without the columns that say nothing in any row."""
    kept = [
        place
        for place in range(len(sheet.headings))
        if place == 0 or any(row[place].text not in ("", "-", "none") for row in sheet.rows)
    ]
    return _columns(sheet, kept)


def markdown(sheet: Sheet) -> list[str]:
    """Return the lines of a table in Markdown, without the columns that are shown on a click only."""
    kept = [i for i in range(len(sheet.headings)) if not any(row[i].folded for row in sheet.rows)]
    shown = _columns(sheet, kept)
    texts = [shown.headings, *([each.text for each in row] for row in shown.rows)]
    lines = [
        " | ".join(" ".join(text.split()).replace("|", "\\|") for text in row) for row in texts
    ]
    return [f"| {lines[0]} |", f"|{'---|' * len(kept)}", *(f"| {line} |" for line in lines[1:])]


def _columns(sheet: Sheet, kept: Sequence[int]) -> Sheet:
    rows = [[row[place] for place in kept] for row in sheet.rows]
    return sheet._replace(headings=[sheet.headings[place] for place in kept], rows=rows)


def shortened(text: str, longest: int = TEXT) -> str:
    """Return a text safe to show, and cut if it is long, which it says."""
    more = f" ... ({len(text) - longest} more characters)" if len(text) > longest else ""
    return clean(text[:longest]) + more
