"""Makes a test's process the same in every run: clocks, entropy, addresses and process numbers.

A test that behaves differently on the reference and on a candidate must do so because of what the
program returns. This is not a barrier against a test that reads such things by other ways; it is what
gives a test with random inputs the same verdict every time, and what takes the obvious ways from a test
that would tell the reference's run from a candidate's.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import sys
import time
import uuid
from datetime import date as _RealDate  # noqa: N812 - the classes before they are replaced
from datetime import datetime as _RealDatetime  # noqa: N812
from typing import Any

from .clock import Clock

_PROCESS = 2
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


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
    clock = Clock()
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
