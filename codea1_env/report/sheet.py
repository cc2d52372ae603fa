"""A table as the terminal, the page and Markdown files draw it: texts, with the numbers that columns are sorted by."""

from __future__ import annotations

from collections.abc import Sequence
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


class Sheet(NamedTuple):
    """A table."""

    title: str
    note: str
    headings: list[str]
    rows: list[list[Cell]]

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], title: str = "", note: str = "") -> Sheet:
        """A table of texts, the headings first."""
        return cls(title, note, list(rows[0]), [[Cell(text) for text in row] for row in rows[1:]])


def figure_cell(value: Estimate | float | None, form: str = ".3f") -> Cell:
    """Return a number as a cell; those that are not known come last."""
    if value is None:
        return Cell("-", float("-inf"))
    if isinstance(value, Estimate):
        return Cell(str(value), value.value)
    return Cell(format(value, form), float(value))


def bar_cell(value: Estimate | None, least: float) -> Cell:
    """Return a figure with its bar, where it lies between `least`, which is 0 or -1, and 1."""
    cell = figure_cell(value)
    if value is None or value.low < least or value.high > 1:
        return cell
    zero, at, low, high = (
        round(100 * (each - least) / (1 - least), 2)
        for each in (0.0, value.value, value.low, value.high)
    )
    return cell._replace(bar=Bar(min(zero, at), abs(at - zero), low, high - low))


def with_values(sheet: Sheet) -> Sheet:
    """Return a table without the columns that say nothing in any row."""
    kept = [
        place
        for place in range(len(sheet.headings))
        if place == 0 or any(row[place].text not in ("", "-", "none") for row in sheet.rows)
    ]
    rows = [[row[place] for place in kept] for row in sheet.rows]
    return sheet._replace(headings=[sheet.headings[place] for place in kept], rows=rows)


def markdown(sheet: Sheet) -> list[str]:
    """Return the lines of a table in Markdown, without the columns that are shown on a click only."""
    kept = [i for i in range(len(sheet.headings)) if not any(row[i].folded for row in sheet.rows)]
    rows = [[row[i].text for i in kept] for row in sheet.rows]
    texts = [[sheet.headings[i] for i in kept], *rows]
    shown = [[" ".join(text.split()).replace("|", "\\|") for text in row] for row in texts]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    return [lines[0], f"|{'---|' * len(kept)}", *lines[1:]]


def text_cell(text: str) -> Cell:
    """Return any text as a cell: made safe to show, and cut if it is long."""
    return Cell(shortened(text, TEST))


def command_cell(words: str) -> Cell:
    """Return a command as a cell."""
    return text_cell(words)._replace(folded=True)


def shortened(text: str, longest: int = TEXT) -> str:
    """Return a text safe to show, and cut if it is long, which it says."""
    more = f" ... ({len(text) - longest} more characters)" if len(text) > longest else ""
    return clean(text[:longest]) + more
