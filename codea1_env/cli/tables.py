"""What commands print: texts, progress bars, and reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from codea1_env.rendering.display import clock

_PAUSE, _GAP = 10.0, 1.0
"""Seconds after which a line is due again, and between two lines at least."""
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


class PlainProgress:
    """Says now and then how far work is and how long the rest takes, where there is no terminal.

    Args:
        console: Where it says so.
        known: What was done before, which took no time now.
    """

    def __init__(self, console: Console, known: float = 0) -> None:
        self._console, self._known = console, known
        self._began = self._said = time.monotonic()
        self._tenth, self._text = -1, ""

    def tell(self, done: float, total: float, text: str, more: Callable[[], str] = str) -> None:
        """Say the text for each tenth of the whole, and after a while; `more` is only called if it does."""
        tenth, now = int(10 * done // max(total, 1)), time.monotonic()
        pause = _PAUSE if tenth == self._tenth else _GAP
        ended = done >= total and text != self._text
        due = self._tenth < 0 or ended or now - self._said >= pause
        if self._console.is_terminal or not due:
            return
        self._tenth, self._said, self._text = tenth, now, text
        new = done - self._known
        left = (now - self._began) * (total - done) / new if new > 0 else 0.0
        say(self._console, text + (f", about {clock(left)} left" if left else "") + more())


class _FoldedTable(TableElement):
    """A table whose cells go on in the next line. Cut off, names that begin alike would all look the same."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            for column in part.columns if isinstance(part, Table) else ():
                column.overflow = "fold"
            yield part


class _Report(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = Markdown.elements | {
        "table_open": _FoldedTable
    }


def print_markdown(text: str, console: Console) -> None:
    """Print a report without its images."""
    lines = [line for line in text.splitlines() if not line.startswith("![")]
    _wide(console).print(_Report("\n".join(lines)))


def print_table(rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print rows of texts, the headings first."""
    headings, *others = rows
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    for row in others:
        table.add_row(*row)
    _wide(console).print(table, highlight=False)


def _wide(console: Console) -> Console:
    width = console.width if console.is_terminal else max(_PIPE_WIDTH, console.width)
    return Console(file=console.file, width=width)
