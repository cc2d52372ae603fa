"""The progress bar of long work."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def progress_bar(console: Console, label: str) -> Progress:
    """Make the bar of long work. Tasks have a field `state`, which is shown behind the times.

    Args:
        console: Where to show it; without a terminal nothing is shown.
        label: Text before the bar, in the format of rich's TextColumn.
    """
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
