"""Markdown reports in a terminal."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

from codea1_env.cli.tables import parts_of

_PIPE_WIDTH = 150
"""Columns where nobody says how many there are, as in a pipe: enough for most tables."""


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
