"""How fast is the sandbox on this machine? One table; docs/benchmarks.md says what each line means.

    python benchmarks/speed_of_sandbox.py
    python benchmarks/speed_of_sandbox.py --problems humanevalplus.jsonl.gz --sections overhead

Exit code 1: an aim was missed. 2: a wrong option.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table
from sandbox_speed import endurance, overhead, questions
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure

from codea1_env.cli.parsing import SandboxLevel
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox, strongest_level
from codea1_env.support.machine import Machine, this_machine

_BY_PROBLEMS = {"overhead": overhead.measure, "questions": questions.measure}


@dataclass(frozen=True)
class SpeedReport:
    """What was measured, where."""

    machine: Machine
    level: str
    """Of the sections that do not compare levels."""
    config: SpeedConfig
    figures: tuple[SpeedFigure, ...]

    @property
    def missed(self) -> tuple[SpeedFigure, ...]:
        """The figures that did not reach their aim."""
        return tuple(figure for figure in self.figures if figure.met is False)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "machine": asdict(self.machine),
            "level": self.level,
            "config": asdict(self.config),
            "figures": [figure.to_dict() for figure in self.figures],
        }


@dataclass(frozen=True)
class SpeedCommand:
    """Measure the sandbox on this machine, which should do nothing else. Every comparison is made in the same run.

    The baselines run the programs of the problem set without any isolation: name only sets that you trust.
    """

    settings: Annotated[SpeedConfig, tyro.conf.arg(name="")] = field(default_factory=SpeedConfig)
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the figures as one JSON object instead of a table."""


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table. Return the exit code."""
    try:
        command = tyro.cli(SpeedCommand, args=arguments)
        load_problems(command.settings.problems)  # a wrong name should not cost minutes
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    with Console(stderr=True).status("starting") as status:
        report = measure(command.settings, command.sandbox_level, status.update)
    made_by = shlex.join(["python", "benchmarks/speed_of_sandbox.py", *arguments])
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
    """Return a value and its unit, as one reads it.

    Example:
        >>> _amount(1234.5, "jobs/s"), _amount(1.2345, "ms"), _amount(None, "ms")
        ('1,234 jobs/s', '1.23 ms', '-')
    """
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"{text} {unit}".rstrip()


def measure(
    config: SpeedConfig | None = None, level: str | None = None, progress: Progress | None = None
) -> SpeedReport:
    """Measure the sandbox on this machine.

    Args:
        config: What to measure; None for every section, small.
        level: Confinement in the sections that do not compare levels; None for the strongest.
        progress: Called with what is being done.

    Raises:
        ProblemsError: The problems are unknown or broken.
        LevelUnavailableError: The machine does not offer the level.
    """
    config = SpeedConfig() if config is None else config
    say = progress or (lambda _: None)
    problems = load_problems(config.problems)[: config.limit]
    figures: list[SpeedFigure] = []
    with _cores(config.cores):
        machine = this_machine()
        chosen = level if level is not None else strongest_level()
        with Sandbox(level=chosen) as sandbox:
            sandbox.run_script("")  # what does not work is known before minutes are spent
        for section in dict.fromkeys(config.sections):
            if section == "endurance":
                figures += endurance.measure(config, chosen, say)
            else:
                figures += _BY_PROBLEMS[section](problems, config, chosen, say)
    return SpeedReport(machine, chosen, config, tuple(figures))


@contextmanager
def _cores(count: int | None) -> Iterator[None]:
    """Use only so many cores, in this thread and all threads and processes that it starts."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
