"""Calls of a program with plain data: its process gets names and arguments, and nothing else.

Where tests are judged (`run_calls`), what comes back is read here, with bounds. The game makes many calls of one
function (`answer_calls`): one message there, bytes back, which are not read here: who knows the bytes that are expected
compares them, and decodes only what differs.
"""

from __future__ import annotations

import marshal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .clocks import queue_time_of
from .inside import codec
from .jobs import Limits
from .outcomes import Stop, bounds_of, job_frame, load_of, meaning_of, outcome_of, too_long
from .results import RUN_LIMIT, CallResult, JobResult, Limit, Outcome, TestResult, cause_of
from .supervise import Supervised, dismissed_on_error
from .watch import Watch
from .workers import Slots

Judge = Callable[[int, bytes], TestResult]
"""Number of a call and the frame that answered it -> the verdict. The frame is dropped then."""

_FLOOD = TestResult(Outcome.FORBIDDEN, Stop.FLOOD.value)

_GATHER = 0.002  # seconds, for which a child with a full pipe would wait
_MOST_IDLE = 2  # times the wall limit of a call, of all calls together

_MOST_ENDED = 16  # processes that the calls of one job may end: the program is loaded anew for each

_MANY = 8
_SHORT_GATHER = 0.0005
_MOST_HELD = 64 << 20
_TOO_MUCH = (
    f"the values that one process has returned are larger than {_MOST_HELD >> 20} MiB together"
)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a program answered to calls."""

    load: TestResult
    """How loading the program ended."""
    replies: Sequence[bytes | TestResult]
    """For each call the frame that its process sent, or why there is none. They end with the first call that
    reached a time limit, or where loading the program anew for calls that end its process cost as much as two: whether
    those after it are worth their time is not decided here."""
    cpu_time: float = 0.0
    """Seconds of CPU time."""


def encoded_arguments(args: Sequence[object], kwargs: dict[str, object]) -> bytes:
    """Return the arguments of a call, to be sent. Plain data that has a literal; places share no list.

    Raises:
        ValueError: They are something else.
    """
    return marshal.dumps((list(args), kwargs), 2)


def answer_calls(
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
    ended = 0
    while load is None or len(replies) < len(calls):
        loaded, some, spent = _answers(slots, code, name, calls[len(replies) :], limits)
        load = load or loaded
        replies += some
        cpu_time += spent
        if not loaded.passed:
            replies += [loaded] * (len(calls) - len(replies))
            break
        last = replies[-1] if replies else None
        if not isinstance(last, TestResult):
            continue
        ended += 1
        if (
            last.outcome is Outcome.TIMEOUT
            or ended >= _MOST_ENDED
            or (ended > 1 and cpu_time > 2 * limits.call_cpu_time)
        ):
            break
    return Answers(load, replies, cpu_time)


def judged_calls(
    slots: Slots,
    code: str,
    name: str,
    calls: Sequence[bytes],
    judge: Judge,
    limits: Limits,
    *,
    stop: bool,
) -> JobResult:
    """Load a program, call one of its functions, and judge each reply as it comes.

    Args:
        slots: Where the processes come from.
        code: Program text.
        name: The function, or `Class.method`.
        calls: See `encoded_arguments`.
        judge: Judges replies. The run may be repeated: it depends on nothing but its arguments.
        limits: Per call and for all calls.
        stop: Whether the first call that is not passed is the last that is judged.

    Returns:
        One result per call, or up to the first that is not passed.
    """
    why = too_long(code)
    if why is not None:
        return JobResult(why, () if stop else (why,) * len(calls))
    results: list[TestResult] = []
    load: TestResult | None = None
    left, used = limits, 0.0
    while load is None or len(results) < len(calls):
        started, done = time.monotonic(), len(results)

        def judged(number: int, frame: bytes, done: int = done) -> TestResult:
            return judge(done + number, frame)

        loaded, some, spent = _answers(slots, code, name, calls[done:], left, judged, stop=stop)
        load = load or loaded
        results += [each for each in some if isinstance(each, TestResult)]
        used += spent
        if not loaded.passed:
            results += [] if stop else [loaded] * (len(calls) - len(results))
            break
        if stop and results and not results[-1].passed:
            break
        left = _less(left, spent, time.monotonic() - started)
        if min(left.run_cpu_time, left.run_wall_time) <= _NOTHING and len(results) < len(calls):
            late = TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN)
            results += [late] if stop else [late] * (len(calls) - len(results))
    return JobResult(load, tuple(results), cpu_time=used)


_NOTHING = 1e-9  # seconds: no time is left


def _less(limits: Limits, cpu_time: float, wall_time: float) -> Limits:
    """Return what is left of the run's limits; they stay positive, as limits must."""
    return replace(
        limits,
        run_cpu_time=max(limits.run_cpu_time - cpu_time, _NOTHING),
        run_wall_time=max(limits.run_wall_time - wall_time, _NOTHING),
    )


def _answers(
    slots: Slots,
    code: str,
    name: str,
    calls: Sequence[bytes],
    limits: Limits,
    judge: Judge | None = None,
    *,
    stop: bool = False,
) -> tuple[TestResult, list[bytes | TestResult], float]:
    """Make calls until one stops the process: how loading ended, the replies, and the CPU time.

    With `judge`, verdicts take the place of replies; with `stop`, the first that is none of PASS is the last.
    """
    replies: list[bytes | TestResult] = []
    load: TestResult | None = None
    why: Stop | None = None
    failed = False

    def keep(frame: bytes) -> None:
        nonlocal failed
        reply = frame if judge is None else judge(len(replies), frame)
        if not failed:
            replies.append(reply)
        failed = failed or (stop and isinstance(reply, TestResult) and not reply.passed)

    child = slots.take_callee()
    with dismissed_on_error([child]):
        job = marshal.dumps((code, name, list(calls), *bounds_of(limits).values()), 2)
        child.start(limits, job, may_send=1 + len(calls))
        watch, queued = Watch(child), queue_time_of("thread-self")
        while why is None and not failed and (load is None or len(replies) < len(calls)):
            # Once for all replies, instead of waking up for each.
            watch.wait_for_close(child, _GATHER)
            cpu = min(limits.call_cpu_time, limits.run_cpu_time - watch.cpu_time())
            wall = min(limits.call_wall_time, limits.run_wall_time - watch.elapsed_unqueued())
            frame = watch.frame(child, cpu, wall)
            if isinstance(frame, Stop):
                why = frame
            elif load is None:
                load = load_of(frame)
                if not load.passed:
                    break
            else:
                keep(frame)
            while load is not None and child.frames and len(replies) < len(calls):
                keep(child.frames.popleft())
            watch.lap()
            # A call has nothing to wait for: many that sleep a little are as bad as one that sleeps long.
            if watch.is_idle(_MOST_IDLE * limits.call_wall_time, queued):
                why = Stop.WALL if len(replies) < len(calls) else None
        cpu_time = watch.cpu_time()
        clean = why is not None or failed or watch.closes_cleanly(child)
    ending, used = _end(child, why)
    if ending is not None:
        if load is None:
            return ending, [], used
        return load, [*replies, replace(ending, cpu_time=0.0)], used
    assert load is not None
    if clean or not load.passed:
        return load, replies, cpu_time
    return load if replies else _FLOOD, [_FLOOD] * len(replies), cpu_time


def _end(child: Supervised, stop: Stop | None) -> tuple[TestResult | None, float]:
    """End a child: why it has stopped and the CPU time that it used; where it need not be ended, neither is known."""
    if stop is None:
        child.dismiss()
        return None, 0.0
    ended = child.end()
    return outcome_of(child.stop or stop, ended), child.used(ended)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the program's process answered to a call, not read yet."""

    frame: bytes
    cpu_time: float


def read(
    reply: Reply | CallResult, meter: codec.Meter, numpy: codec.Numpy | None = None
) -> CallResult:
    """Return the result of a call, decoded.

    Args:
        reply: What came, or why nothing did.
        meter: What reading it, and others of the same run, may cost.
        numpy: See `codec.decode`.

    Raises:
        BudgetError: The call returned, but to read its value here would cost too much.
    """
    if isinstance(reply, CallResult):
        return reply
    try:
        said = meaning_of(codec.decode(reply.frame, meter=meter, numpy=numpy))
    except codec.BudgetError:
        raise
    except codec.DecodeError as error:
        said = TestResult(Outcome.FORBIDDEN, f"a malformed reply: {error}")
    if not isinstance(said, TestResult) and len(said) != 1:
        said = TestResult(Outcome.FORBIDDEN, "a reply with a strange shape")
    if isinstance(said, TestResult):
        return _without_value(said, reply.cpu_time)
    return CallResult(Outcome.PASS, said[0], "", reply.cpu_time)


def readable(
    reply: Reply | CallResult, meter: codec.Meter, numpy: codec.Numpy | None = None
) -> CallResult:
    """Return the result of a call for somebody who wants the value, or why it cannot be read."""
    try:
        return read(reply, meter, numpy)
    except codec.BudgetError as error:
        why = f"the value costs too much to read: {error}"
        return CallResult(Outcome.OUTPUT_LIMIT, None, why, reply.cpu_time, limit=Limit.RESULT)


@dataclass(frozen=True)
class CallsReturned:
    """What became of some calls.

    Attributes:
        load: How loading the program ended.
        results: One per call: its reply, or why there is none.
        cpu_time: Seconds of CPU time used, of the run's limit.
        wall_time: Seconds that it took.
    """

    load: TestResult
    results: list[Reply | CallResult]
    cpu_time: float = 0.0
    wall_time: float = 0.0


def run_calls(
    slots: Slots, code: str, entry_point: str | None, calls: Sequence[bytes], limits: Limits
) -> CallsReturned:
    """Load a program and make calls, in order, in one process.

    A call that hangs or kills the process keeps the results before it; the calls after it go on in a new
    process, as long as the limits of the whole run allow.

    Args:
        slots: Where the processes come from.
        code: Program text.
        entry_point: A name that the program must define, or None.
        calls: Encoded calls (name, arguments, keyword arguments).
        limits: Per call and for all calls.
    """
    why = too_long(code)
    if why is not None:
        return CallsReturned(why, _missing(why, len(calls)))
    job = job_frame(code, entry_point, limits)
    results: list[Reply | CallResult] = []
    load: TestResult | None = None
    cpu_left, wall_left = limits.run_cpu_time, limits.run_wall_time
    while load is None or len(results) < len(calls):
        left = replace(limits, run_cpu_time=cpu_left, run_wall_time=wall_left)
        part = _replies(slots, job, calls[len(results) :], left)
        cpu_left -= part.cpu_time
        wall_left -= part.wall_time
        load = load or part.load
        results += part.results
        if not part.load.passed or cpu_left <= 0 or wall_left <= 0:
            break
    late = TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN)
    results += _missing(late if load.passed else load, len(calls) - len(results))
    return CallsReturned(
        load, results, limits.run_cpu_time - cpu_left, limits.run_wall_time - wall_left
    )


def _without_value(why: TestResult, cpu_time: float = 0.0) -> CallResult:
    return CallResult(why.outcome, cpu_time=cpu_time, **cause_of(why))


def _missing(why: TestResult, count: int) -> list[Reply | CallResult]:
    return [_without_value(why)] * count


def _replies(slots: Slots, job: bytes, calls: Sequence[bytes], limits: Limits) -> CallsReturned:
    """Load the program and make calls until one stops the process. The limits of a run are for what is left of it."""
    results: list[Reply | CallResult] = []
    load: TestResult | None = None
    stop: Stop | None = None
    cpu_time = 0.0
    held = 0

    def keep(frame: bytes, spent: float) -> None:
        """Return a reply, as long as those of the process are not too large together."""
        nonlocal held
        held += len(frame)
        if held <= _MOST_HELD:
            results.append(Reply(frame, spent))
        else:
            too_much = CallResult(Outcome.OUTPUT_LIMIT, None, _TOO_MUCH, spent, limit=Limit.RESULT)
            results.append(too_much)

    child = slots.take()
    with dismissed_on_error([child]):
        child.start(limits, job, *calls, may_send=1 + len(calls))
        watch = Watch(child)
        while load is None or len(results) < len(calls):
            if load is not None and len(calls) - len(results) > _MANY:
                time.sleep(_SHORT_GATHER)  # once for many replies, instead of waking up for each
            cpu = min(limits.call_cpu_time, limits.run_cpu_time - cpu_time)
            wall = min(limits.call_wall_time, limits.run_wall_time - watch.elapsed_unqueued())
            frame = watch.frame(child, cpu, wall)
            if isinstance(frame, Stop):
                stop = frame
                break
            spent = watch.lap()
            cpu_time += spent
            if load is None:
                load = load_of(frame, spent)
                if not load.passed:
                    break
            else:
                keep(frame, spent)
            # What has come together: their times cannot be told apart.
            while child.frames and len(results) < len(calls):
                keep(child.frames.popleft(), 0.0)
        clean = stop is not None or watch.closes_cleanly(child)
    wall_time = watch.elapsed_unqueued()
    why, used = _end(child, stop)
    if why is not None:
        cpu_time = max(cpu_time, used)
        spent = max(0.0, cpu_time - sum(result.cpu_time for result in results))
        if load is not None:
            results.append(_without_value(why, spent))
        return CallsReturned(load or why, results, cpu_time, wall_time)
    assert load is not None
    if not clean and load.passed:
        load, results = load if results else _FLOOD, _missing(_FLOOD, len(results))
    return CallsReturned(load, results, cpu_time, wall_time)
