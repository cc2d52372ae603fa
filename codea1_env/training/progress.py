"""Shows how a run gets on: a live bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from codea1_env.training.metrics import Row

_LINES = 10
"""Lines that a whole run prints where there is no terminal."""

_SHOWN = {
    "reward/coder/mean": "coder",
    "reward/tester/mean": "tester",
    "book/size": "book",
    "held_out/pass_rate": "pass rate",
    "held_out/kill_rate": "kill rate",
}


class TrainingProgress:
    """Context manager around the loop.

    Args:
        console: Where to show it.
        max_steps: Steps of the whole run.
        step: Steps done before.
    """

    def __init__(self, console: Console, max_steps: int, step: int = 0) -> None:
        self._console = console
        self._max_steps = max_steps
        self._latest: Row = {}
        self._task: TaskID | None = None
        self._bar = progress_bar(console, "step")
        self._start = step

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        self._task = self._bar.add_task(
            "", total=self._max_steps, completed=self._start, state="starting"
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, row: Row) -> None:
        """Show the metrics of a step."""
        self._latest.update({name: row[name] for name in _SHOWN if row.get(name) is not None})
        state = "  ".join(
            f"{_SHOWN[name]} {_number(value)}" for name, value in self._latest.items()
        )
        step: int = row["step"]
        if self._task is not None:
            self._bar.update(self._task, completed=step, state=state)
        every = max(1, self._max_steps // _LINES)
        if not self._console.is_terminal and (step % every == 0 or step == self._max_steps):
            self._console.print(f"step {step}/{self._max_steps}  {state}", highlight=False)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"


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
