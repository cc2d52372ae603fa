"""A time limit that a busy machine does not shorten: load must not make a verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from .worker import WorkerDiedError, is_held_up, queue_time_of

_MOST_PATIENCE = 9  # times the limit, beyond the limit
_LEAST_PATIENCE = 30.0  # seconds, however short the limit is
_NEXT_LOOK = 0.02  # seconds to the next look at a process that waits for a processor at this moment


class Process(Protocol):
    """What a deadline has to know of a process."""

    @property
    def pid(self) -> int:
        """Its number."""

    def cpu_time(self) -> float:
        """Seconds of CPU time so far."""


class WallLimit:
    """A limit of seconds in which processes had a processor, or did not want one.

    Time in which they waited for a processor does not count, within bounds. The kernel tells of such a wait only
    when it is over; one that goes on shows by a process that could run, and has used no processor between
    two looks at it. On a machine that is too busy to tell, nothing is told.

    Args:
        processes: What is waited for. The waiting times add up.
        seconds: How long.
        queued: Waiting time in seconds, since the processes began, that no longer counts for them. None: all so far.
    """

    def __init__(
        self, processes: Sequence[Process], seconds: float, queued: float | None = None
    ) -> None:
        self._processes = processes
        self._seconds = seconds
        self._started = time.monotonic()
        self._next = self._started + seconds
        self._used: dict[int, float] = {}  # of those that could run at the last look
        self.queued = _queued(processes) if queued is None else queued
        """Seconds that the processes have waited for a processor by the last look."""
        self._queued_before = self.queued

    def left(self) -> float:
        """Seconds to the next look."""
        return max(0.0, self._next - time.monotonic())

    def is_over(self) -> bool:
        """Whether the time is up.

        Raises:
            WorkerDiedError: It never was, because of all the waiting.
        """
        if time.monotonic() < self._next:
            return False
        self.queued = _queued(self._processes)
        end = self._started + self._seconds + self.queued - self._queued_before
        self._next = min(end, self._last)
        if time.monotonic() < self._next:
            return False
        if end <= self._last:
            used = _used_of_held_up(self._processes)
            waits = any(self._used.get(pid, time_) == time_ for pid, time_ in used.items())
            self._used = used
            if not waits:
                return True
            if self.put_off():
                return False
        raise WorkerDiedError(
            f"the machine is too busy: no {self._seconds:g} s of processor in {self._last - self._started:g} s"
        )

    def put_off(self) -> bool:
        """Wait a little longer, for a reason that the caller has seen; whether the bounds allow it."""
        now = time.monotonic()
        self._next = min(now + _NEXT_LOOK, self._last)
        return now < self._next

    @property
    def _last(self) -> float:
        return self._started + self._seconds + max(_LEAST_PATIENCE, _MOST_PATIENCE * self._seconds)


def wait_for_processor(processes: Sequence[Process]) -> bool:
    """Whether one of them could run at this moment, but gets no processor. Takes a moment to find out."""
    before = _used_of_held_up(processes)
    if not before:
        return False
    time.sleep(_NEXT_LOOK)
    after = _used_of_held_up(processes)
    return any(after.get(pid) == cpu_time for pid, cpu_time in before.items())


def _used_of_held_up(processes: Sequence[Process]) -> dict[int, float]:
    return {each.pid: each.cpu_time() for each in processes if is_held_up(each.pid)}


def _queued(processes: Sequence[Process]) -> float:
    return sum(queue_time_of(each.pid) for each in processes)
