"""How fast this machine is at the moment: the time of a known piece of work, against the best of this process.

CPU time is not work: beside others a processor is shared, clocked down, and finds its caches full of other
data, so that the same program needs more of it. A machine that has been equally slow since this process began
is not noticed: its best is what it has shown.
"""

from __future__ import annotations

import math
import time

ENOUGH = 1.15
"""Slower than this is slow; below it lies what two measurements on an idle machine differ by."""
MOST = 4.0
"""A machine that is slower still is not waited for."""
_STEPS = 15_000
_PLACES, _STRIDE = 1 << 16, 40_503
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
    """Numbers, names, and a table with new objects all over it, which suffers from others' data in the caches.

    Beside 12 busy processes on two processors it takes 1.6 times as long; sorting floats 1.5, filling a dict 1.4,
    plain arithmetic 1.04 times.
    """
    total, table = 0, [0] * _PLACES
    for step in range(_STEPS):
        total += step * step % 7
        table[step * _STRIDE % _PLACES] = total
    return total
