"""A slow machine is no verdict: what runs out of CPU time while the machine is slow gets another run, alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from . import pace
from .judging import Run, T
from .limits import Limits
from .slots import Slots
from .workers import WorkerKind, WorkerPool

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Attempt(Protocol[R_co]):
    """Something that is run in the sandbox, and that can be run again."""

    def __call__(self, run: Run, limits: Limits) -> R_co:
        """Return the result.

        Args:
            run: Has a task done by a worker.
            limits: What it may use.
        """


def run_by_work(pool: WorkerPool, kind: WorkerKind, attempt: Attempt[R], limits: Limits) -> R:
    """Run something within limits that say how much of this machine at its best it may use.

    It is repeated at most once, so that what never ends has an end, and only where a limit of CPU time was
    reached: who sleeps is not slowed down.

    Args:
        pool: Where it runs.
        kind: What it needs of a worker.
        attempt: It may call `run` several times.
        limits: What it may use.
    """
    ran_out = False

    def run(task: Callable[[Slots], T]) -> T:
        def noting(slots: Slots) -> T:
            nonlocal ran_out
            slots.worker.ran_out = False
            result = task(slots)
            ran_out = ran_out or slots.worker.ran_out
            return result

        return pool.run(noting, kind)

    result = attempt(run, limits)
    slowness = pace.slowness() if ran_out else 1.0
    if slowness <= pace.ENOUGH:
        return result
    return attempt(lambda task: pool.run(task, kind, alone=True), limits.times(slowness))
