"""What to measure, and how often."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import tyro

from codea1_env.sandbox import Limits

Section = Literal["overhead", "questions", "scaling", "verdicts", "endurance"]
SECTIONS: tuple[Section, ...] = get_args(Section)

Progress = Callable[[str], None]
"""Called with what is being done."""


@dataclass(frozen=True)
class SpeedConfig:
    """What to measure. Without options: every section, small.

    The baselines run the programs of the problem set without any isolation: name only sets that you trust.
    """

    sections: tuple[Section, ...] = SECTIONS
    """What to measure."""
    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE")] = "starter"
    """Where programs come from: any source of `codea1 problems`, such as a file with HumanEval+."""
    limit: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Take only the first N problems."""
    repeats: int = 5
    """overhead: how often each program's calls are made; scaling: pairs of blocks."""
    questions: int = 8
    """questions: how many, each of 8 programs x 8 suites x 8 asserts."""
    batch: int = 4
    """questions: how many are judged together."""
    judges: int = 1
    """questions: from 2 on also with so many processes that judge."""
    block: int = 800
    """scaling: jobs in a block."""
    verdict_runs: int = 1
    """verdicts: runs that are compared; from 2 on also one with four workers per core."""
    jobs: int = 2000
    """endurance: how many."""
    time_limit: float = 60.0
    """CPU seconds for one test program."""
    workers: int | None = None
    """Sandbox processes where not compared; None for one per usable core. The baselines get as many."""
    cores: int | None = None
    """Use only so many cores, for everything."""
    seed: int = 0
    """Decides the tests of questions."""

    def __post_init__(self) -> None:
        for name in ("repeats", "questions", "batch", "judges", "block", "verdict_runs", "jobs"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Expect --{name.replace('_', '-')} to be at least 1, actually: {getattr(self, name)}"
                )
        for name in ("limit", "workers", "cores"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Expect --{name} to be at least 1, actually: {value}")
        usable = len(os.sched_getaffinity(0))
        if self.cores is not None and self.cores > usable:
            raise ValueError(f"Expect --cores to be at most {usable}, actually: {self.cores}")
        if not self.time_limit > 0:
            raise ValueError(f"Expect --time-limit to be positive, actually: {self.time_limit}")
        if not self.sections:
            raise ValueError(f"Expect --sections to name some of {', '.join(SECTIONS)}")

    @property
    def pool_size(self) -> int:
        """Workers where not compared."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def generous(self) -> Limits:
        """Limits for whole test programs, which may be long."""
        cpu = self.time_limit
        return Limits(
            call_cpu_time=cpu,
            call_wall_time=4 * cpu,
            run_cpu_time=cpu,
            run_wall_time=8 * cpu,
            calls_per_test=1,
        )
