"""Makes a test's process the same in every run: clocks, entropy, addresses and process numbers.

A test that behaves differently on the reference and on a candidate must do so because of what the
program returns. This is not a barrier against a test that reads such things by other ways; it is what
gives a test with random inputs the same verdict every time, and what takes the obvious ways from a test
that would tell the reference's run from a candidate's.

Each look at its clock moves it by a little, and each wait by as long as was waited for. Processor time, the
program's work and the load of the machine do not move it. A test really waits, since the program that it
tests has an ordinary clock.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import selectors
import sys
import threading
import time
import uuid
from datetime import date as _RealDate  # noqa: N812 - the classes before they are replaced
from datetime import datetime as _RealDatetime  # noqa: N812
from typing import Any

_PROCESS = 2
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_EPOCH = 1_000_000_000 * 10**9  # nanoseconds: the clock of every test starts in September 2001
_TICK = 1_000_000  # nanoseconds: what passes between two looks at it

# Kept here, since `settle` and tests replace the functions of the module `time`.
_sleep, _real_time = time.sleep, time.monotonic


def settle() -> None:
    """Settle this process. Called once, before a test runs."""
    generator = random.Random(0)
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed(0)

    def urandom(size: int) -> bytes:
        return generator.randbytes(size)

    os.urandom = urandom
    vars(os)["getrandom"] = lambda size, flags=0: urandom(size)
    vars(random)["_urandom"] = urandom
    uuid.uuid4 = lambda: uuid.UUID(bytes=urandom(16), version=4)
    uuid.uuid1 = lambda node=None, clock_seq=None: uuid.uuid4()
    _settle_names()
    _settle_clocks()


def _settle_names() -> None:
    real_id = id
    numbers: dict[int, int] = {}

    def numbered(value: object, /) -> int:
        return numbers.setdefault(real_id(value), len(numbers) + 1)

    builtins.id = numbered
    for module in (os, sys.modules["posix"]):
        for name in ("getpid", "getppid"):
            vars(module)[name] = lambda: _PROCESS
        vars(module)["getcwd"] = lambda: "/tmp"
        vars(module)["times"] = lambda: (0.0, 0.0, 0.0, 0.0, 0.0)


def _settle_clocks() -> None:
    clock = _Clock()
    clock.count_waits()
    real = {
        name: getattr(time, name)
        for name in ("gmtime", "localtime", "ctime", "strftime", "asctime")
    }

    now = clock.seconds
    for name in _CLOCKS:
        vars(time)[name] = now
        vars(time)[f"{name}_ns"] = clock.nanoseconds
    vars(time)["clock_gettime"] = lambda kind: now()
    vars(time)["clock_gettime_ns"] = lambda kind: clock.nanoseconds()
    for name in ("gmtime", "localtime", "ctime"):
        vars(time)[name] = lambda seconds=None, call=real[name]: call(
            now() if seconds is None else seconds
        )
    vars(time)["strftime"] = lambda form, when=None: real["strftime"](
        form, when or time.localtime()
    )
    vars(time)["asctime"] = lambda when=None: real["asctime"](when or time.localtime())
    _settle_datetime(now)


def _settle_datetime(now: Any) -> None:
    """Replace the classes by ones that differ in `now` and `today` only, and make ordinary objects."""

    class Settled(type):
        """Instances of the real class count as instances."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__bases__[0])

    class SettledDatetime(_RealDatetime, metaclass=Settled):
        """datetime.datetime with a settled clock."""

        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            return _RealDatetime(*arguments, **keywords)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return _RealDatetime.fromtimestamp(now(), tz)

        @classmethod
        def today(cls) -> Any:
            return _RealDatetime.fromtimestamp(now())

        @classmethod
        def utcnow(cls) -> Any:
            return _RealDatetime.fromtimestamp(now(), datetime.UTC).replace(tzinfo=None)

    class SettledDate(_RealDate, metaclass=Settled):
        """datetime.date with a settled clock."""

        def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
            return _RealDate(*arguments, **keywords)

        @classmethod
        def today(cls) -> Any:
            return _RealDate.fromtimestamp(now())

    for name, settled in (("datetime", SettledDatetime), ("date", SettledDate)):
        settled.__name__ = settled.__qualname__ = name
        settled.__module__ = "datetime"
        vars(datetime)[name] = settled


class _Clock:
    """The clock of a test's process: only looks and waits move it."""

    def __init__(self) -> None:
        self._now = _EPOCH
        self._lock = threading.RLock()

    def nanoseconds(self) -> int:
        """Return what it shows; each look is a little later."""
        with self._lock:
            now = self._now
            self._now += _TICK
        return now

    def seconds(self) -> float:
        """Return what it shows, in seconds."""
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
        """Count the waits of an event loop: it sleeps by waiting for its files until its next timer is due."""
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
