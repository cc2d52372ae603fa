"""What commands print: texts, progress bars, and tables whose columns stand below where a terminal is narrow."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table

_WIDEST = 1 << 16
_PIPE_WIDTH = 150
"""Columns where nobody says how many there are, as in a pipe: enough for most tables."""


def say(console: Console, text: str) -> None:
    """Print a text as it is, however long its lines are."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def progress_bar(console: Console, label: str) -> Progress:
    """Make the bar of long work on a terminal. Tasks have a field `state`, which is shown behind the times."""
    return Progress(
        TextColumn(label),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}"),
        console=console,
        disable=not console.is_terminal,
    )


def parts_of(table: Table, console: Console, width: int) -> Iterator[Table]:
    """Divide a table, whose first column has names, into parts that lines of this width have room for.

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
    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {
        "table_open": _FoldedTable
    }


def print_markdown(text: str, console: Console) -> None:
    """Print a report without its images."""
    lines = [line for line in text.splitlines() if not line.startswith("![")]
    width = console.width if console.is_terminal else max(_PIPE_WIDTH, console.width)
    Console(file=console.file, width=width).print(_Report("\n".join(lines)))
