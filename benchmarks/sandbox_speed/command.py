"""`codea1 bench sandbox`: what it asks for, and one table of what it found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from codea1_env.cli.errors import library_errors, user_input
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.problems import load_problems
from sandbox_speed import SpeedConfig, SpeedFigure, SpeedReport, measure


@dataclass(frozen=True)
class SandboxCommand:
    """Measure the sandbox on this machine: one table, every comparison made in the same run.

    Exit code 1 if an aim was missed. Measure on a machine that does nothing else.

    The baselines run the programs of the problem set without any isolation: name only sets that you trust.
    """

    settings: Annotated[SpeedConfig, tyro.conf.arg(name="")] = field(default_factory=SpeedConfig)
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the figures as one JSON object instead of a table."""


def run(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    command = parse(SandboxCommand, arguments, name="bench sandbox")
    with user_input():
        load_problems(command.settings.problems)  # a wrong name should not cost minutes
    stderr = Console(stderr=True)
    with library_errors(), stderr.status("starting") as status:
        report = measure(command.settings, command.sandbox_level, status.update)
    made_by = shlex.join(["codea1", "bench", "sandbox", *arguments])
    if command.json:
        print(json.dumps({"command": made_by} | report.to_dict()))
    else:
        _print(report, made_by)
    return 1 if report.missed else 0


def _print(report: SpeedReport, made_by: str) -> None:
    console = Console(width=max(150, Console().width), highlight=False, markup=False)
    console.print(_table(report.figures))
    console.print(str(report.machine))
    console.print(f"Level, where not compared: {report.level}")
    console.print(f"Command: {made_by}", soft_wrap=True)
    for figure in report.missed:
        value = figure.ours if figure.ratio is None else figure.ratio
        actual = "not measured" if value is None else f"{value:.3g}"
        console.print(f"Expect {figure.what}: {figure.target}, actually: {actual}")


def _table(figures: Sequence[SpeedFigure]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "figure", "sandbox", "baseline", "ratio", "aim", "", "remarks"):
        right = heading in ("sandbox", "baseline", "ratio")
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    section = ""
    for figure in figures:
        mark = {None: "", True: "ok", False: "MISSED"}[figure.met]
        table.add_row(
            figure.section if figure.section != section else "",
            figure.what,
            _amount(figure.ours, figure.unit),
            _amount(figure.baseline, figure.unit) if figure.baseline is not None else "",
            "" if figure.ratio is None else f"{figure.ratio:.2f}x",
            figure.target,
            mark,
            figure.note,
        )
        section = figure.section
    return table


def _amount(value: float | None, unit: str) -> str:
    """A value and its unit, as one reads it.

    Example:
        >>> _amount(1234.5, "jobs/s"), _amount(1.2345, "ms"), _amount(None, "ms")
        ('1,234 jobs/s', '1.23 ms', '-')
    """
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"{text} {unit}".rstrip()
