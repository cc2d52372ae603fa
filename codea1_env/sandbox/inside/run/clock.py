"""The clock of a test's process: the same readings in every run, and yet waiting takes its time.

Each look at it moves it by a little, and each wait by as long as was waited for. Processor time, the
program's work and the load of the machine do not move it. A test really waits, since the program that it
tests has an ordinary clock.
"""

from __future__ import annotations

import selectors
import threading
import time
from typing import Any

_EPOCH = 1_000_000_000 * 10**9  # nanoseconds: the clock of every test starts in September 2001
_TICK = 1_000_000  # nanoseconds: what passes between two looks at it

# Kept here, since `settle` and tests replace the functions of the module `time`.
_sleep, _real_time = time.sleep, time.monotonic


class Clock:
    """A clock that only looks and waits move."""

    def __init__(self) -> None:
        self._now = _EPOCH
        self._lock = threading.RLock()

    def nanoseconds(self) -> int:
        """What it shows; each look is a little later."""
        with self._lock:
            now = self._now
            self._now += _TICK
        return now

    def seconds(self) -> float:
        """What it shows, in seconds."""
        return self.nanoseconds() / 1e9

    def _move_to(self, begin: int, seconds: float) -> None:
        """Wait that go on at the same time, in several threads, do not add up."""
        with self._lock:
            self._now = max(self._now, begin + int(seconds * 1e9))

    def count_waits(self) -> None:
        """Make sleeping, waiting for other threads and an event loop's waiting move the clock."""
        vars(time)["sleep"] = self._sleep
        self._count_conditions()
        for kind in (selectors.SelectSelector, selectors.PollSelector, selectors.EpollSelector):
            self._count_selections(kind)

    def _sleep(self, seconds: float, /) -> None:
        begin = self._now
        _sleep(seconds)
        self._move_to(begin, float(seconds))

    def _count_conditions(self) -> None:
        """Of these the other classes of `threading`, and `queue`, are made."""
        clock, real = self, threading.Condition.wait

        def wait(self: threading.Condition, timeout: float | None = None) -> bool:
            begin = clock._now
            notified = real(self, timeout)
            if not notified and timeout is not None:
                clock._move_to(begin, timeout)
            return notified

        threading.Condition.wait = wait  # type: ignore[method-assign]

    def _count_selections(self, kind: Any) -> None:
        """An event loop sleeps by waiting for its files until its next timer is due."""
        real = kind.select

        def select(selector: Any, timeout: float | None = None) -> Any:
            begin, started = self._now, _real_time()
            found = real(selector, timeout)
            if found:  # another thread has woken the loop, before its next timer is due
                self._move_to(begin, _real_time() - started)
            elif timeout is not None:
                self._move_to(begin, timeout)
            return found

        kind.select = select
