"""What to measure, how often, and one line of the table: what was measured, against what, and what was aimed at."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Annotated, Any, Literal, get_args

import tyro

from codea1_env.sandbox import Limits

Section = Literal["overhead", "questions", "endurance"]
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
    """overhead: how often each program's calls are made."""
    questions: int = 8
    """questions: how many, each of 8 programs x 8 suites x 8 asserts."""
    batch: int = 4
    """questions: how many are judged together."""
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
        for name in ("repeats", "questions", "batch", "jobs", "limit", "workers", "cores"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = name.replace("_", "-")
                raise ValueError(f"Expect --{option} to be at least 1, actually: {value}")
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


@dataclass(frozen=True)
class SpeedFigure:
    """One measured figure.

    Example:
        >>> SpeedFigure("overhead", "5 calls", ours=6.0, unit="ms", baseline=5.0, at_most=1.4).ratio
        1.2
    """

    section: str
    what: str
    ours: float | None
    """What the sandbox has; None if it could not be measured, and the note says why."""
    unit: str = ""
    baseline: float | None = None
    """The same of what the sandbox is compared with, in the same unit."""
    at_most: float | None = None
    """Bound on the ratio, or on `ours` where there is no baseline."""
    at_least: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """`ours` / `baseline`."""
        return self.ours / self.baseline if self.ours is not None and self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the aim was reached; None if there was none."""
        value = self.ours if self.baseline is None else self.ratio
        if self.at_most is None and self.at_least is None:
            return None
        return (
            value is not None
            and (self.at_most is None or value <= self.at_most)
            and (self.at_least is None or value >= self.at_least)
        )

    @property
    def target(self) -> str:
        """The aim as text, "" if there is none."""
        suffix = "" if self.baseline is None else "x"
        bounds = (("<=", self.at_most), (">=", self.at_least))
        return ", ".join(f"{sign} {b:g}{suffix}" for sign, b in bounds if b is not None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


def spread(values: Sequence[float]) -> str:
    """Where the middle 80% of some values lie, as text.

    Example:
        >>> spread([1.0, 1.1, 1.2, 1.3, 1.4, 9.0])
        '10-90%: 1-1.4'
    """
    ordered = sorted(values)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return f"10-90%: {low:.3g}-{high:.3g}"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the median of the ratios job by job, as text."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"job by job {median(ratios):.2f}x, {spread(ratios)}"
