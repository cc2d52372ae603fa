"""Processor time that a search may use: on a busy machine it gets as much as on an idle one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_WALL = 10
"""By the clock it may take so many times as long."""
_TICKS = os.sysconf("SC_CLK_TCK")


def processor_time() -> float:
    """Return the seconds of processor time that this process and all below it have used."""
    total, left = 0.0, [Path("/proc/self")]
    while left:
        process = left.pop()
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / _TICKS
            for task in (process / "task").iterdir():
                left += [Path("/proc", pid) for pid in (task / "children").read_text().split()]
        except OSError:  # it has ended, or the kernel does not list children
            continue
    return total or time.process_time()


class Clock:
    """Runs from when it was made.

    Args:
        seconds: Processor time in all; None for no bound.

    Example:
        >>> Clock(None).is_over(), Clock(1e-9).is_over()
        (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._started = time.monotonic()
        self._used = processor_time()

    @property
    def used(self) -> float:
        """Seconds of processor time so far."""
        return processor_time() - self._used

    @property
    def wall(self) -> float:
        """Seconds by the clock so far."""
        return time.monotonic() - self._started

    def is_over(self, share: float = 1.0) -> bool:
        """Whether so much of the time is used."""
        if self.seconds is None:
            return False
        return max(self.used, self.wall / _WALL) >= share * self.seconds

    def parts(self, items: Sequence[T], share: float = 1.0, first: int = 8, most: int = 64) -> Iterator[Sequence[T]]:  # fmt: skip
        """Yield the items in parts that grow as long as there is time, and the first part in any case."""
        start, size = 0, first
        while start < len(items) and (start == 0 or not self.is_over(share)):
            yield items[start : start + size]
            start, size = start + size, min(2 * size, most)
