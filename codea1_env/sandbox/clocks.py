"""Time on a busy machine, where load must not make a verdict.

What the kernel tells of a process, a limit of wall-clock time that waiting for a processor does not shorten, and how
fast the machine is at the moment.

The rule of the wall limit: only what a program cannot bring about itself puts it off. Time in which a thread could have
run but had no processor does not count; the kernel measures it. When the time is over, the limit holds as soon as all
threads wait for something else: a sleep, a lock, input, the disk. State D proves nothing: a program can enter it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator

from .results import WorkerDiedError

_CPUCLOCK_PROF, _CPUCLOCK_SCHED = 0, 2

_MOST_PATIENCE = 9  # times the limit, beyond the limit
_LEAST_PATIENCE = 30.0  # seconds, however short the limit is
_NEXT_LOOK = 0.02  # seconds to the next look at a process that waits for a processor at this moment

ENOUGH = 1.15
"""Slower than this is slow; below it lies what two measurements on an idle machine differ by."""
MOST = 2.0
"""A machine that is slower still is not waited for: run again, a program so costs three times its limits at most."""
_STEPS = 15_000
_PLACES, _STRIDE = 1 << 16, 40_503
_SAMPLES = 3  # the first finds cold caches

_best = math.inf


# What the kernel tells of a process


def cpu_time_of(pid: int) -> float:
    """Seconds of CPU time of a process so far, read from the kernel's clock of it; 0 if it is gone."""
    return _clock_of(pid, _CPUCLOCK_SCHED)


def counted_cpu_time_of(pid: int) -> float:
    """Return the same as the kernel counts it for RLIMIT_CPU: by ticks of a clock. Also of one that has ended."""
    return _clock_of(pid, _CPUCLOCK_PROF)


def _clock_of(pid: int, kind: int) -> float:
    try:
        # As clock_getcpuclockid(3) makes it, for another process than ours.
        return time.clock_gettime((~pid << 3) | kind)
    except OSError:
        return 0.0


def memory_of(pid: int) -> int:
    """Bytes of memory that a process has; 0 if it is gone."""
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def own_queue_time() -> float:
    """Seconds so far in which the calling thread could have run but had no processor."""
    return _queue_time_of("thread-self")


def queue_time_of(pid: int) -> float:
    """Seconds so far in which a thread of a process could have run but had no processor, of the one that had most.

    Not of all together: threads that wait for each other would have waited as often as there are threads.
    """
    return max((_queue_time_of(thread) for thread in _threads_of(pid)), default=0.0)


def _queue_time_of(thread: str) -> float:
    try:
        return int(_read(f"/proc/{thread}/schedstat").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):  # gone, or the kernel does not tell
        return 0.0


def _read(path: str) -> bytes:
    """Read a short file; with fewer system calls than a file object makes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _threads_of(pid: int) -> Iterator[str]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # gone
        return iter(())
    return (f"{pid}/task/{thread}" for thread in threads)


def _stat_of(process: int | str) -> list[str]:
    """Fields of /proc/PID/stat of a process or thread, from the state on; none of one that is gone."""
    try:
        # As bytes: a program can give its threads names of any bytes. What stands behind the name is the kernel's.
        return _read(f"/proc/{process}/stat").rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []


def processor_ticks(pid: int) -> int:
    """Ticks that a process has computed; 0 of one that is gone."""
    return sum(map(int, _stat_of(pid)[11:13]))


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as by SIGSTOP."""
    return _stat_of(pid)[:1] in (["T"], ["t"])


def could_run(pid: int) -> bool:
    """Whether a thread of a process runs, or could run if it had a processor."""
    return any(_stat_of(thread)[:1] == ["R"] for thread in _threads_of(pid))


def wait_for_processor(pid: int) -> bool:
    """Whether a process could run at this moment, but gets no processor. Takes a moment to find out."""
    if not could_run(pid):
        return False
    before = cpu_time_of(pid)
    time.sleep(_NEXT_LOOK)
    return could_run(pid) and cpu_time_of(pid) == before


class WallLimit:
    """A limit of seconds for who waits, by the rule above; on a machine that is too busy to tell, nothing is told.

    The kernel tells of a wait for a processor only when it is over; one that goes on shows by a thread that could run.

    Args:
        pid: What is waited for.
        seconds: How long.
        queued: Waiting time in seconds, since the process began, that no longer counts for it. None: all so far.
    """

    def __init__(self, pid: int, seconds: float, queued: float | None = None) -> None:
        self._pid = pid
        self._seconds = seconds
        self._started = time.monotonic()
        self._next = self._started + seconds
        self.queued = queue_time_of(pid) if queued is None else queued
        """Seconds that the process has waited for a processor by the last look."""
        self._queued_before = self.queued

    def left(self) -> float:
        """Seconds to the next look."""
        return max(0.0, self._next - time.monotonic())

    def is_over(self) -> bool:
        """Whether the time is up."""
        if time.monotonic() < self._next:
            return False
        could = could_run(self._pid)  # first: a wait that ends meanwhile is counted below
        self.queued = queue_time_of(self._pid)
        # Not less: the thread that had waited most may have ended.
        end = self._started + self._seconds + max(0.0, self.queued - self._queued_before)
        self._next = min(end, self._last)
        if time.monotonic() < self._next:
            return False
        if end <= self._last and not could:
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


# How fast this machine is: the time of a known piece of work, against the best of this process. CPU time is not work:
# beside others a processor is shared, clocked down, and finds its caches full of other data.


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
    """Numbers, names, and a table with new objects all over it, which suffers from others' data in the caches."""
    total, table = 0, [0] * _PLACES
    for step in range(_STEPS):
        total += step * step % 7
        table[step * _STRIDE % _PLACES] = total
    return total
