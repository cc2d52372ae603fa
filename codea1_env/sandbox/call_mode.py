"""Many calls of one function with plain data, as the game makes them: one message there, bytes back.

The program's process gets the name and the arguments, and nothing else. What it answers is not read here: who
knows the bytes that are expected compares them, and decodes only what differs.
"""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .endings import Outcome
from .limits import Limits
from .outcomes import Stop, cpu_backstop, load_of, outcome_of
from .planner import too_long
from .results import TestResult
from .slots import Slots
from .watch import Watch
from .worker import WorkerDiedError, own_queue_time

_GATHER = 0.002  # seconds, for which a child with a full pipe would wait
_MOST_IDLE = 2  # times the wall limit of a call, of all calls together


@dataclass(frozen=True, slots=True)
class Answers:
    """What a program answered to calls."""

    load: TestResult
    """How loading the program ended."""
    replies: Sequence[bytes | TestResult]
    """For each call the frame that its process sent, or why there is none. They end with the first call that
    reached a time limit: whether those after it are worth their time is not decided here."""
    cpu_time: float = 0.0
    """Seconds of CPU time."""


def encoded_arguments(args: Sequence[object], kwargs: dict[str, object]) -> bytes:
    """The arguments of a call, to be sent. Plain data that has a literal; places share no list.

    Raises:
        ValueError: They are something else.
    """
    return marshal.dumps((list(args), kwargs), 2)


def run_calls(
    slots: Slots, code: str, name: str, calls: Sequence[bytes], limits: Limits
) -> Answers:
    """Load a program and call one of its functions, each call within the limits of one call.

    A call that ends the process keeps the replies before it; the calls after it go on in a new process.

    Args:
        slots: Where the processes come from.
        code: Program text.
        name: The function.
        calls: See `encoded_arguments`.
        limits: Per call. Those of a whole run are raised to what its calls may use.
    """
    why = too_long(code)
    if why is not None:
        return Answers(why, [why] * len(calls))
    limits = limits.with_room_for(len(calls))
    replies: list[bytes | TestResult] = []
    load: TestResult | None = None
    cpu_time = 0.0
    while load is None or len(replies) < len(calls):
        loaded, some, spent = _in_one_process(slots, code, name, calls[len(replies) :], limits)
        load = load or loaded
        replies += some
        cpu_time += spent
        if loaded.outcome is not Outcome.PASS:
            replies += [loaded] * (len(calls) - len(replies))
        elif isinstance(replies[-1] if replies else None, TestResult) and (
            replies[-1].outcome is Outcome.TIMEOUT  # type: ignore[union-attr]
        ):
            break
    return Answers(load, replies, cpu_time)


def _in_one_process(
    slots: Slots, code: str, name: str, calls: Sequence[bytes], limits: Limits
) -> tuple[TestResult, list[bytes | TestResult], float]:
    """Make calls until one stops the process: how loading ended, the replies, and the CPU time."""
    replies: list[bytes | TestResult] = []
    load: TestResult | None = None
    cpu_time = 0.0
    child = slots.take_callee()
    try:
        bounds = (int(limits.memory), cpu_backstop(limits), int(limits.result))
        job = marshal.dumps((code, name, list(calls), *bounds), 2)
        child.start(limits, job, may_send=1 + len(calls))
        watch, queued = Watch(child), own_queue_time()
        stop: Stop | None = None
        while stop is None and (load is None or len(replies) < len(calls)):
            # Once for all replies, instead of waking up for each.
            watch.wait_for_close(child, _GATHER)
            frame = watch.frame(child, limits.call_cpu_time, limits.call_wall_time)
            if isinstance(frame, Stop):
                stop = frame
            elif load is None:
                load = load_of(frame)
                if load.outcome is not Outcome.PASS:
                    cpu_time = watch.lap_total()
                    break
            else:
                replies.append(frame)
            if load is not None:
                replies += child.frames
                child.frames.clear()
            cpu_time = watch.lap_total()
            # A call has nothing to wait for: many that sleep a little are as bad as one that sleeps long.
            if watch.is_idle(_MOST_IDLE * limits.call_wall_time, queued):
                stop = Stop.WALL if len(replies) < len(calls) else None
        clean = stop is not None or watch.closes_cleanly(child)
    except BaseException:
        with contextlib.suppress(WorkerDiedError):
            child.dismiss()
        raise
    if stop is None:
        child.dismiss()
        assert load is not None
        if clean or load.outcome is not Outcome.PASS:
            return load, replies, cpu_time
        why = TestResult(Outcome.FORBIDDEN, Stop.FLOOD.value)
        return (load if replies else why), [why] * len(replies), cpu_time
    ended = child.end()
    why = outcome_of(child.stop or stop, ended, limits)
    cpu_time = child.used(ended)
    if load is None:
        return why, [], cpu_time
    return load, [*replies, replace(why, cpu_time=0.0)], cpu_time
