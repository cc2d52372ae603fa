"""How far long work is, and how long the rest takes: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from codea1_env.rendering.display import clock, counted_of

PAUSE, _GAP = 10.0, 1.0
"""Seconds after which a line is due again, and between two lines, or two states of a bar, at least."""


def say(console: Console, text: str) -> None:
    """Print a text as it is, however long its lines are."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _left(passed: float, done: float, total: float, known: float) -> float:
    """Seconds that remain, of work of which a part was known when it began; 0 where nobody can say."""
    return passed * (total - done) / (done - known) if done > known else 0.0


class _Times(ProgressColumn):
    """Time so far and to come."""

    def render(self, task: Task) -> Text:
        """Return the text."""
        passed = task.finished_time or task.elapsed or 0.0
        left = _left(passed, task.completed, task.total or 0.0, task.fields["known"])
        return Text(f"{clock(passed)} so far" + (f", about {clock(left)} left" if left > 0 else ""))


class WorkProgress:
    """Context manager around work in one part or several: `begin` each, then `tell` how much of it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            _Times(table_column=Column(no_wrap=True)),
            # Where there is little room it is this column that takes more lines.
            TextColumn("{task.fields[state]}", table_column=Column(no_wrap=False)),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self.what, self.done, self.total = "", 0, 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, what: str, total: int, known: int = 0) -> None:
        """Begin a part; what was `known` before takes no time now."""
        self.what, self.done, self.total, self._known = what, 0, total, known
        self._began = self._said = time.monotonic()
        self._tenth, self._text = -1, ""
        self._task = self._bar.add_task(what, total=total, state="", known=known)

    def tell(self, done: int, text: str = "", more: Callable[[], str] = str) -> None:
        """Show that so many are done. `more` may take long: it is only called for a line, or once a second for a bar."""
        self.done, now = done, time.monotonic()
        tenth = int(10 * done // max(self.total, 1))
        text = text or counted_of(done, self.total, self.what)
        ended = done >= self.total and text != self._text
        terminal = self._console.is_terminal
        pause = _GAP if terminal or tenth != self._tenth else PAUSE
        due = self._tenth < 0 or ended or now - self._said >= pause
        if terminal and self._task is not None:
            self._bar.update(self._task, completed=done)
        if not due:
            return
        self._tenth, self._said, self._text = tenth, now, text
        if terminal and self._task is not None:
            self._bar.update(self._task, state=more())
            return
        left = _left(now - self._began, done, self.total, self._known)
        said = ", ".join(filter(None, (f"about {clock(left)} left" if left else "", more())))
        say(self._console, f"{text}, {said}" if said else text)
