"""What commands print: texts, progress, tables and reports."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from codea1_env.agents.llm.completions import listening
from codea1_env.evaluation.comparison import Change, ComparedEvaluations
from codea1_env.evaluation.runner import usage_lines
from codea1_env.evaluation.statistics import written
from codea1_env.evaluation.task import Evaluation
from codea1_env.rendering import progress
from codea1_env.rendering.display import counted
from codea1_env.rendering.progress import WorkProgress, say
from codea1_env.report.sheet import Sheet

_WIDEST = 1 << 16
_PIPE_WIDTH = 150
"""Columns where nobody says how many there are, as in a pipe: enough for most tables."""


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Draw a table; columns that lines have no room for go below it, beside the first one again."""
    console = _wide(console)
    texts = [[Text(cell.text) for cell in row] for row in sheet.rows]
    first, *others = range(len(sheet.headings))

    def part(columns: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for i in columns:
            justify: Any = "right" if i else "left"
            table.add_column(Text(sheet.headings[i]), justify=justify, overflow="fold")
        for row in texts:
            table.add_row(*(row[i] for i in columns))
        return table

    unbounded, group = console.options.update(max_width=_WIDEST), [first]
    for i in others:
        wider = Measurement.get(console, unbounded, part([*group, i])).maximum > console.width
        if wider and group[1:]:
            console.print(part(group), highlight=False)
            group = [first]
        group.append(i)
    console.print(part(group), highlight=False)
    if sheet.note:
        say(console, sheet.note)


def print_markdown(text: str, console: Console) -> None:
    """Print a report, its tables drawn, without its images."""
    lines = [line for line in text.splitlines() if not line.startswith(("![", "|---"))]
    for table, block in groupby(lines, key=lambda line: line.startswith("|")):
        if table:
            rows = [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in block]
            print_sheet(
                Sheet.of([[cell.replace("\\|", "|") for cell in row] for row in rows]), console
            )
        else:
            _wide(console).print("\n".join(block), highlight=False, markup=False)


def _wide(console: Console) -> Console:
    width = console.width if console.is_terminal else max(_PIPE_WIDTH, console.width)
    return Console(file=console.file, width=width)


_NAMED = 10
"""Tasks that a line names."""
_SHOWN = 20
"""Changed problems that a comparison shows of each kind."""


class EvaluationProgress(WorkProgress):
    """Context manager around an evaluation: the estimate so far, and answers that are written."""

    def __init__(self, console: Console, evaluation: Evaluation[Any, Any]) -> None:
        super().__init__(console)
        self._evaluation = evaluation
        self._figure = evaluation.figure or "first figure"
        self._told = -math.inf

    def begin(self, what: str, total: int, known: int = 0) -> None:
        """Begin a part, and say so."""
        super().begin(what, total, known)
        self.tell(0, f"{what}: {total}")

    def advance(self) -> None:
        """Show that one more is done."""
        self.tell(self.done + 1)

    def judged(self, sample: Any, verdict: Any) -> None:
        """Count a verdict, and show the estimate so far."""
        own = self._evaluation
        own.add(sample, verdict)
        self.tell(self.done + 1, more=lambda: f"{self._figure} so far {written(own.estimate())}")

    @contextmanager
    def answering(self, number: int, who: str, *, one_by_one: bool) -> Iterator[None]:
        """Show that answers are written inside, and how far that is."""
        started = time.monotonic()
        total = number if one_by_one else 100
        state = "waiting for a server" if one_by_one else f"% of {counted(number, 'answers')}"
        task = self._bar.add_task("answers", total=total, state=state, known=0)

        def heard(share: float) -> None:
            come = round(share * total)
            self._bar.update(task, completed=come)
            seconds = f"{time.monotonic() - started:.0f} s"
            done = f"{come}{'' if one_by_one else '%'} of {counted(number, 'answers')}"
            self._say_now_and_then(f"{done} of {who} in {seconds}")

        self._say_now_and_then(f"waiting for {counted(number, 'answers')} of {who}")
        try:
            with listening(heard):
                yield
        finally:
            self._bar.remove_task(task)

    def _say_now_and_then(self, text: str) -> None:
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told >= progress.PAUSE:
            self._told = now
            say(self._console, text)


def print_report(
    evaluation: Evaluation[Any, Any], report: Mapping[str, Any], console: Console
) -> None:
    """Print figures, what else there is to say, what was left out and why, and all settings."""
    print_sheet(Sheet.of(evaluation.table(report)), console)
    for line in (*evaluation.lines(report), *usage_lines(report), *left_out(report)):
        say(console, line)


def left_out(report: Mapping[str, Any]) -> list[str]:
    """Problems and samples that no figure counts, and the settings."""
    lines = []
    if report["missing"]:
        lines.append(
            f"Left out, no samples ({len(report['missing'])}): {first_of(report['missing'])}"
        )
    if report["unknown"]:
        names = ", ".join(f"{name} ({number})" for name, number in report["unknown"].items())
        lines.append(f"Ignored, not in the problem set: {names}")
    lines += [f"Excluded: {name}: {reason}" for name, reason in report["excluded"].items()]
    settings = ", ".join(
        f"{name} {value!r}" for name, value in report["settings"].items() if value is not None
    )
    return [*lines, f"Settings: {settings}"]


def first_of(tasks: Iterable[str]) -> str:
    """Return the names of the first tasks, and how many more there are."""
    names = list(tasks)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def print_comparison(comparison: ComparedEvaluations, console: Console) -> None:
    """Print both evaluations side by side, and the problems that changed."""
    own = comparison.kind not in _MEASURES
    rows = [
        [each.figure, *map(written, (each.a, each.b, each.difference))]
        for each in comparison.differences
    ]
    print_sheet(Sheet.of([["figure [95%]", "A", "B", "B - A, paired"], *rows]), console)
    lines = [f"{counted(comparison.problems, 'problems')} in both"]
    if comparison.not_compared:
        lines.append(
            f"Not compared, in one of them only or changed ({len(comparison.not_compared)}): "
            + first_of(comparison.not_compared)
        )
    lines += [f"Not compared, {each}" for each in comparison.left_out]
    measure = _MEASURES.get(comparison.kind, "the first figure")
    better, worse = ("More in B", "Less in B") if own else ("Better in B", "Worse in B")
    lines += _changes(better, comparison.better, measure)
    lines += _changes(worse, comparison.worse, measure)
    say(console, "\n".join(lines))


_MEASURES = {"code": "share of right programs", "tests": "share of right tests"}


def _changes(title: str, changes: Sequence[Change], measure: str) -> list[str]:
    if not changes:
        return [f"{title}: no problem"]
    shown = [f"  {each.task_id}: {each.a:.3f} -> {each.b:.3f}" for each in changes[:_SHOWN]]
    more = [f"  and {len(changes) - _SHOWN} more"] if len(changes) > _SHOWN else []
    return [f"{title} ({len(changes)}), {measure} in A and B:", *shown, *more]
