"""Calls of a program with plain data: the program's process gets names and arguments, and nothing else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .endings import RUN_LIMIT, Limit, Outcome
from .inside import codec
from .limits import Limits
from .outcomes import Stop, cpu_backstop, load_of, meaning_of, outcome_of
from .planner import too_long
from .results import CallResult, TestResult, cause_of
from .slots import Slots
from .watch import Watch
from .worker import WorkerDiedError

_MANY = 8
_GATHER = 0.0005
_MOST_HELD = 64 << 20
_TOO_MUCH = (
    f"the values that one process has returned are larger than {_MOST_HELD >> 20} MiB together"
)


@dataclass(frozen=True)
class OverBudget:
    """A call returned, but to read its value here would cost too much."""

    reason: str
    cpu_time: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What the program's process answered to a call, not read yet."""

    frame: bytes
    cpu_time: float

    def read(self, meter: codec.Meter, numpy: codec.Numpy | None = None) -> CallResult | OverBudget:
        """Decode it.

        Args:
            meter: What reading it, and others of the same run, may cost.
            numpy: See `codec.decode`.
        """
        try:
            said = meaning_of(codec.decode(self.frame, meter=meter, numpy=numpy))
        except codec.BudgetError as error:
            return OverBudget(str(error), self.cpu_time)
        except codec.DecodeError as error:
            return self._forbidden(f"a malformed reply: {error}")
        if isinstance(said, TestResult):
            return _without_value(said, self.cpu_time)
        if len(said) != 1:
            return self._forbidden("a reply with a strange shape")
        return CallResult(Outcome.PASS, said[0], "", self.cpu_time)

    def _forbidden(self, why: str) -> CallResult:
        return CallResult(Outcome.FORBIDDEN, None, why, self.cpu_time)


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


def job_frame(
    code: str,
    entry_point: str | None,
    limits: Limits,
    names: Sequence[str] = (),
    *,
    serving: bool = False,
    capture: bool = False,
    stdin: bytes | None = None,
) -> bytes:
    """What a candidate's process is told."""
    return codec.encode(
        {
            "code": code,
            "entry_point": entry_point,
            "names": list(names),
            "serves_a_test": serving,
            "capture": capture,
            "stdin": stdin,
            "memory": int(limits.memory),
            "cpu_seconds": cpu_backstop(limits),
            "result": int(limits.result),
        }
    )


def run_calls(
    slots: Slots,
    code: str,
    entry_point: str | None,
    calls: Sequence[bytes],
    limits: Limits,
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
        part = _Part(slots, left)
        loaded, some = part.run(job, calls[len(results) :])
        cpu_left -= part.cpu_time
        wall_left -= part.wall_time
        load = load or loaded
        results += some
        if loaded.outcome is not Outcome.PASS or cpu_left <= 0 or wall_left <= 0:
            break
    late = TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN)
    why = load if load.outcome is not Outcome.PASS else late
    results += _missing(why, len(calls) - len(results))
    return CallsReturned(
        load, results, limits.run_cpu_time - cpu_left, limits.run_wall_time - wall_left
    )


def _without_value(why: TestResult, cpu_time: float = 0.0) -> CallResult:
    return CallResult(why.outcome, cpu_time=cpu_time, **cause_of(why))


def _missing(why: TestResult, count: int) -> list[Reply | CallResult]:
    return [_without_value(why)] * count


def call_values(
    slots: Slots,
    code: str,
    entry_point: str,
    calls: Sequence[bytes],
    limits: Limits,
    numpy: codec.Numpy | None = None,
) -> list[CallResult]:
    """Make calls as `run_calls` does, for somebody who wants the values."""
    meter = codec.Meter(codec.VALUES)
    returned = run_calls(slots, code, entry_point, calls, limits)
    return [readable(result, meter, numpy) for result in returned.results]


def readable(
    result: Reply | CallResult, meter: codec.Meter, numpy: codec.Numpy | None = None
) -> CallResult:
    """The result of a call for somebody who wants the value, or why it cannot be read."""
    value = result.read(meter, numpy) if isinstance(result, Reply) else result
    if isinstance(value, OverBudget):
        why = f"the value costs too much to read: {value.reason}"
        return CallResult(Outcome.OUTPUT_LIMIT, None, why, value.cpu_time, limit=Limit.RESULT)
    return value


class _Part:
    """The calls that one process answers.

    Args:
        slots: Where the process comes from.
        limits: Per call, and for what is left of the run.
    """

    def __init__(self, slots: Slots, limits: Limits) -> None:
        self.limits = limits
        self.cpu_time = 0.0
        self.wall_time = 0.0
        self._held = 0
        self._child = slots.take(with_test=False).without_test()

    def _frame(self) -> bytes | Stop:
        limits = self.limits
        cpu = min(limits.call_cpu_time, limits.run_cpu_time - self.cpu_time)
        wall = min(limits.call_wall_time, limits.run_wall_time - self._watch.elapsed_unqueued())
        return self._watch.frame(self._child, cpu, wall)

    def _kept(self, frame: bytes, spent: float) -> Reply | CallResult:
        """A reply, as long as those of the process are not too large together."""
        self._held += len(frame)
        if self._held > _MOST_HELD:
            return CallResult(Outcome.OUTPUT_LIMIT, None, _TOO_MUCH, spent, limit=Limit.RESULT)
        return Reply(frame, spent)

    def run(
        self, job: bytes, calls: Sequence[bytes]
    ) -> tuple[TestResult, list[Reply | CallResult]]:
        """Load the program and make calls until one stops the process."""
        results: list[Reply | CallResult] = []
        load: TestResult | None = None
        stop: Stop | None = None
        try:
            self._child.start(self.limits, job, *calls, may_send=1 + len(calls))
            self._watch = Watch(self._child)
            while load is None or len(results) < len(calls):
                if load is not None and len(calls) - len(results) > _MANY:
                    time.sleep(_GATHER)  # once for many replies, instead of waking up for each
                frame = self._frame()
                if isinstance(frame, Stop):
                    stop = frame
                    break
                spent = self._watch.lap()
                self.cpu_time += spent
                if load is None:
                    load = load_of(frame, spent)
                    if load.outcome is not Outcome.PASS:
                        break
                else:
                    results.append(self._kept(frame, spent))
                # What has come together: their times cannot be told apart.
                came = self._child.frames
                while came and len(results) < len(calls):
                    results.append(self._kept(came.popleft(), 0.0))
            clean = stop is not None or self._watch.closes_cleanly(self._child)
        except BaseException:
            with contextlib.suppress(WorkerDiedError):
                self._child.dismiss()
            raise
        self.wall_time = self._watch.elapsed_unqueued()
        if stop is None:
            self._child.dismiss()
        else:
            ended = self._child.end()
            self.cpu_time = max(self.cpu_time, self._child.used(ended))
            stop = self._child.stop or stop
            why = outcome_of(stop, ended, self.limits)
            if load is None:
                return why, []
            spent = max(0.0, self.cpu_time - sum(result.cpu_time for result in results))
            return load, [*results, _without_value(why, spent)]
        assert load is not None
        if clean or load.outcome is not Outcome.PASS:
            return load, results
        why = TestResult(Outcome.FORBIDDEN, Stop.FLOOD.value)
        return (load if results else why), _missing(why, len(results))
