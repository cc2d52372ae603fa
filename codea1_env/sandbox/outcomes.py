"""Why a run stopped, and the outcome that this amounts to."""

from __future__ import annotations

import enum
import math
import signal
from typing import Any

from .inside import codec
from .results import Limits, Outcome, TestResult
from .worker import Ended


class Stop(enum.Enum):
    """Why no frame came."""

    CPU = "the CPU time limit was reached"
    WALL = "the wall-clock limit was reached"
    OUTPUT = "more was printed than the limit allows"
    TOO_LONG = "the reply is larger than the limit"
    CLOSED = "the process ended before it had answered"
    FLOOD = "it wrote to the channel that carries its results"
    LEFT = "the process closed its result channel and went on"


def cpu_backstop(limits: Limits) -> int:
    """The kernel's CPU limit of one process, above the limit that the supervisor keeps."""
    return math.ceil(max(limits.run_cpu_time, limits.call_cpu_time)) + 2


def reached_backstop(ended: Ended, limits: Limits) -> bool:
    """Whether the kernel ended a process for its CPU time, before the supervisor had seen it."""
    number = ended.signal_number
    killed = number == signal.SIGKILL and ended.cpu_time >= cpu_backstop(limits) - 1
    return number == signal.SIGXCPU or killed


def outcome_of(stop: Stop, ended: Ended, limits: Limits) -> TestResult:
    """The result for a run that has no other: what stopped it, or how its process ended."""
    cpu = ended.cpu_time
    if stop in (Stop.CPU, Stop.WALL):
        return TestResult(Outcome.TIMEOUT, stop.value, cpu)
    if stop in (Stop.OUTPUT, Stop.TOO_LONG):
        return TestResult(Outcome.OUTPUT_LIMIT, stop.value, cpu)
    if stop is Stop.FLOOD:
        return TestResult(Outcome.FORBIDDEN, stop.value, cpu)
    if stop is Stop.LEFT:
        return TestResult(Outcome.EXITED, stop.value, cpu)
    number = ended.signal_number
    if reached_backstop(ended, limits):
        return TestResult(Outcome.TIMEOUT, Stop.CPU.value, cpu)
    if number is not None:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return TestResult(Outcome.SIGNALLED, f"the process died from {name}", cpu)
    return TestResult(
        Outcome.EXITED,
        f"the process ended with status {ended.exit_code} before it had answered",
        cpu,
    )


_LOAD_OUTCOMES = {
    "raised": Outcome.ERROR,
    "syntax": Outcome.SYNTAX_ERROR,
    "memory": Outcome.MEMORY,
    "exited": Outcome.EXITED,
    "too large": Outcome.OUTPUT_LIMIT,
    "unencodable": Outcome.UNENCODABLE,
}


def reply_of(frame: bytes, budget: codec.Budget = codec.CHEAP) -> tuple[Outcome, Any]:
    """Reads a candidate's short reply: PASS and what came with it, or another outcome and a message."""
    try:
        return meaning_of(codec.decode(frame, meter=codec.Meter(budget)))
    except codec.DecodeError as error:
        return Outcome.FORBIDDEN, f"a malformed reply: {error}"


def meaning_of(reply: Any) -> tuple[Outcome, Any]:
    """What a decoded reply of a candidate says."""
    if type(reply) is tuple and reply and reply[0] == "ok":
        return Outcome.PASS, reply[1:]
    if type(reply) is tuple and len(reply) >= 2 and type(reply[1]) is str:
        outcome = _LOAD_OUTCOMES.get(reply[0]) if type(reply[0]) is str else None
        if outcome is not None:
            return outcome, reply[1][:500]
    return Outcome.FORBIDDEN, "a reply of an unknown kind"
