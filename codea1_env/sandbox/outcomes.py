"""What a program's process is told, what its replies mean, why a run stopped, and the outcome that this amounts to."""

from __future__ import annotations

import enum
import functools
import math
import signal
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .inside import codec
from .inside.errors import message_of
from .jobs import Limits
from .results import MAX_MESSAGE, Limit, Outcome, TestResult, identifier
from .worker import Ended

P = ParamSpec("P")
T = TypeVar("T")
_MAX_CHARACTERS = 8_000_000  # of one program, and of one test


class Stop(enum.Enum):
    """Why no frame came."""

    CPU = "the CPU time limit was reached"
    WALL = "the wall-clock limit was reached"
    OUTPUT = "more was printed than the limit allows"
    TOO_LONG = "the reply is larger than the limit"
    CLOSED = "the process ended before it had answered"
    FLOOD = "it wrote to the channel that carries its results"
    LEFT = "the process closed its result channel and went on"
    MEMORY = "the process was killed for want of memory"
    FAULT = "the sandbox's own code failed at what the process did"


_STOPPED: dict[Stop, tuple[Outcome, Limit | None]] = {
    Stop.CPU: (Outcome.TIMEOUT, Limit.CPU_TIME),
    Stop.WALL: (Outcome.TIMEOUT, Limit.WALL_TIME),
    Stop.OUTPUT: (Outcome.OUTPUT_LIMIT, Limit.OUTPUT),
    Stop.TOO_LONG: (Outcome.OUTPUT_LIMIT, Limit.RESULT),
    Stop.FLOOD: (Outcome.FORBIDDEN, None),
    Stop.LEFT: (Outcome.EXITED, None),
    Stop.MEMORY: (Outcome.MEMORY, Limit.MEMORY),
    Stop.FAULT: (Outcome.FORBIDDEN, None),
}


def fault(error: Exception) -> TestResult:
    """Return the verdict where our own code raised over what a program did: to provoke it must not pay."""
    said = f"{Stop.FAULT.value}: {type(error).__name__}: {message_of(error)}"
    return TestResult(Outcome.FORBIDDEN, said)


def guarded(judge: Callable[P, T]) -> Callable[P, T | TestResult]:
    """Make a verdict of whatever a function of ours raises over one reply."""

    @functools.wraps(judge)
    def judged(*args: P.args, **keywords: P.kwargs) -> T | TestResult:
        try:
            return judge(*args, **keywords)
        except Exception as error:
            return fault(error)

    return judged


def cpu_backstop(limits: Limits) -> int:
    """Return the kernel's CPU limit of one process, in seconds.

    Far above the limit that the supervisor keeps: for its own limit the kernel counts by ticks of a clock, which differ
    from the time used by a tenth and more where many processes share a processor.
    """
    return 2 * math.ceil(max(limits.run_cpu_time, limits.call_cpu_time)) + 2


def bounds_of(limits: Limits) -> dict[str, int]:
    """The limits that any child is told."""
    return {
        "memory": int(limits.memory),
        "cpu_seconds": cpu_backstop(limits),
        "result": int(limits.result),
    }


def too_long(text: str) -> TestResult | None:
    """Return the result for a text that is too long to be a program or a test."""
    if len(text) <= _MAX_CHARACTERS:
        return None
    return TestResult(Outcome.SYNTAX_ERROR, f"more than {_MAX_CHARACTERS} characters")


def outcome_of(stop: Stop, ended: Ended) -> TestResult:
    """Return the result for a run that has no other: what stopped it, or how its process ended."""
    if ended.reached_backstop and stop is Stop.CLOSED:
        stop = Stop.CPU
    if stop in _STOPPED:
        outcome, limit = _STOPPED[stop]
        return TestResult(outcome, stop.value, ended.cpu_time, limit=limit)
    if ended.code < 0:
        number = -ended.code
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return TestResult(Outcome.SIGNALLED, f"the process died from {name}", ended.cpu_time)
    message = f"the process ended with status {ended.code} before it had answered"
    return TestResult(Outcome.EXITED, message, ended.cpu_time)


_LOAD_OUTCOMES = {
    "raised": Outcome.ERROR,
    "syntax": Outcome.SYNTAX_ERROR,
    "memory": Outcome.MEMORY,
    "exited": Outcome.EXITED,
    "too large": Outcome.OUTPUT_LIMIT,
    "unencodable": Outcome.UNENCODABLE,
}


@guarded
def load_of(frame: bytes) -> TestResult:
    """How loading a program ended, of which nothing else is asked."""
    try:
        said = meaning_of(codec.decode(frame, meter=codec.Meter(codec.CHEAP)))
    except codec.DecodeError as error:
        return TestResult(Outcome.FORBIDDEN, f"a malformed reply: {error}")
    return said if isinstance(said, TestResult) else TestResult(Outcome.PASS)


def meaning_of(reply: Any) -> tuple[Any, ...] | TestResult:
    """Read a decoded reply of a candidate: the parts that came with an "ok", or how else it ended.

    The reply is plain data of any shape. Of an ending: its kind and its text; then, where an exception was raised, the
    name of its class and the module that it missed.
    """
    if type(reply) is tuple and reply and reply[0] == "ok":
        return reply[1:]
    if type(reply) is tuple and len(reply) >= 2 and type(reply[1]) is str:
        outcome = _LOAD_OUTCOMES.get(reply[0]) if type(reply[0]) is str else None
        if outcome is not None:
            error, module = (*reply[2:4], None, None)[:2]
            return TestResult(
                outcome,
                reply[1][:MAX_MESSAGE],
                error=identifier(error),
                missing_module=identifier(module),
                limit=Limit.RESULT if outcome is Outcome.OUTPUT_LIMIT else None,
            )
    return TestResult(Outcome.FORBIDDEN, "a reply of an unknown kind")
