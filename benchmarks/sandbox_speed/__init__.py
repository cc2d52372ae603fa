"""How fast the sandbox is, beside what has no isolation, and whether its verdicts are right.

Every comparison is made in the same run, job by job in turn: A B A B. `codea1 bench sandbox` prints the table;
docs/benchmarks.md says what each line means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from codea1_env.evaluation.result_folder import Machine, this_machine
from codea1_env.problems import load_problems
from codea1_env.sandbox.levels import check_works, strongest_level
from sandbox_speed import (
    endurance,
    overhead,
    questions,
    scaling,
    verdicts,
)
from sandbox_speed.config import SECTIONS, Progress, SpeedConfig
from sandbox_speed.figures import SpeedFigure

__all__ = ["SECTIONS", "Machine", "SpeedConfig", "SpeedFigure", "SpeedReport", "measure"]

_BY_PROBLEMS = {
    "overhead": overhead.measure,
    "questions": questions.measure,
    "scaling": scaling.measure,
    "verdicts": verdicts.measure,
}


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
    say = progress if progress is not None else _silent
    problems = load_problems(config.problems)[: config.limit]
    figures: list[SpeedFigure] = []
    with _cores(config.cores):
        machine = this_machine()
        chosen = level if level is not None else strongest_level()
        check_works(chosen)
        for section in dict.fromkeys(config.sections):
            if section == "endurance":
                figures += endurance.measure(config, chosen, say)
            else:
                figures += _BY_PROBLEMS[section](problems, config, chosen, say)
    return SpeedReport(machine, chosen, config, tuple(figures))


def _silent(_: str) -> None:
    """Nobody wants to know."""


@contextmanager
def _cores(count: int | None) -> Iterator[None]:
    """Use only so many cores, in this thread and all threads and processes that it starts."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)
