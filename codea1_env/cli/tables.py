"""Tables for narrow terminals, also those of reports in Markdown.

Columns that do not fit stand below, each part with the names in front.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.measure import Measurement
from rich.table import Column, Table

_WIDEST = 1 << 16
_PIPE_WIDTH = 150
"""Columns where nobody says how many there are, as in a pipe: enough for most tables."""


def parts_of(table: Table, console: Console, width: int) -> Iterator[Table]:
    """Divide a table into parts that a screen has room for, as far as single columns allow.

    Args:
        table: Its first column has names.
        console: Where it is shown.
        width: Characters of a line.

    Example:
        >>> table = Table("name", "one", "two")
        >>> table.add_row("x", "0.500 [0.400, 0.600]", "0.600 [0.500, 0.700]")
        >>> [len(part.columns) for part in parts_of(table, Console(), 40)]
        [2, 2]
    """
    unbounded = console.options.update(max_width=_WIDEST)
    names, *others = table.columns
    group: list[Column] = []
    for column in others:
        wider = _part(table, [names, *group, column])
        if group and Measurement.get(console, unbounded, wider).maximum > width:
            yield _part(table, [names, *group])
            group = []
        group.append(column)
    yield _part(table, [names, *group])


def _part(table: Table, columns: Sequence[Column]) -> Table:
    part = copy.copy(table)
    part.columns = list(columns)
    return part


class _FoldedTable(TableElement):
    """A table whose cells go on in the next line. Cut off, names that begin alike would all look the same."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if not isinstance(part, Table):
                yield part
                continue
            for column in part.columns:
                column.overflow = "fold"
            yield from parts_of(part, console, options.max_width)


class _Report(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _FoldedTable,
    }


def print_markdown(text: str, console: Console) -> None:
    """Print a report without its images."""
    lines = [line for line in text.splitlines() if not line.startswith("![")]
    width = console.width if console.is_terminal else max(_PIPE_WIDTH, console.width)
    Console(file=console.file, width=width).print(_Report("\n".join(lines)))
