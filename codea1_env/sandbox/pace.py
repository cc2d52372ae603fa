"""How fast this machine is at the moment: the time of a known piece of work, against the best of this process.

CPU time is not work: beside others a processor is shared, clocked down, and has cold caches, so that the same
program needs more of it. Whoever is the same slowness all the time is not seen here, nor is a program slowed
down by something that its supervisor does not feel.
"""

from __future__ import annotations

import math
import time

ENOUGH = 1.15
"""Slower than this is slow; below it lies what two measurements on an idle machine differ by."""
MOST = 4.0
"""A machine that is slower still is not waited for."""
_STEPS = 15_000
_SAMPLES = 3  # the first finds cold caches

_best = math.inf


def slowness() -> float:
    """How many times as long the same work takes now as at best, between 1 and `MOST`.

    Example:
        >>> 1.0 <= slowness() <= MOST
        True
    """
    now = measure()
    return min(now / _best, MOST)


def measure() -> float:
    """Seconds of CPU time that the work takes now. The best is remembered; it takes some milliseconds."""
    global _best
    now = min(_sample() for _ in range(_SAMPLES))
    _best = min(_best, now)
    return now


def _sample() -> float:
    started = time.thread_time()
    _work()
    return time.thread_time() - started


def _work() -> int:
    """What programs do most: numbers, names, a table."""
    total, table = 0, dict.fromkeys(range(256), 0)
    for step in range(_STEPS):
        total += step * step % 7
        table[step & 255] = total
    return total
