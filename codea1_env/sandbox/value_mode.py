"""Calls of a program with plain data: the program's process gets names and arguments, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from .inside import codec
from .results import CallResult, Limits, Outcome, TestResult
from .slots import Slots
from .supervise import Stop, Watch, cpu_backstop, outcome_of, reply_of
from .worker import WorkerDiedError


def job_frame(
    code: str,
    entry_point: str | None,
    limits: Limits,
    names: Sequence[str] = (),
    *,
    proxy: bool = False,
) -> bytes:
    """What a candidate's process is told."""
    return codec.encode(
        {
            "code": code,
            "entry_point": entry_point,
            "names": list(names),
            "proxy": proxy,
            "memory": int(limits.memory),
            "cpu_seconds": cpu_backstop(limits),
            "result": int(limits.result),
        }
    )


def run_calls(
    slots: Slots, code: str, entry_point: str | None, calls: Sequence[bytes], limits: Limits
) -> tuple[TestResult, list[CallResult]]:
    """Loads a program and makes calls, in order, in one process.

    A call that hangs or kills the process keeps the results before it; the calls after it go on in a new
    process, as long as the limits of the whole run allow.

    Args:
        slots: Where the processes come from.
        code: Program text.
        entry_point: A name that the program must define, or None.
        calls: Encoded calls (name, arguments, keyword arguments).
        limits: Per call and for all calls.

    Returns:
        How loading ended, and one result per call.
    """
    job = job_frame(code, entry_point, limits)
    results: list[CallResult] = []
    load: TestResult | None = None
    cpu_left, wall_left = limits.run_cpu_time, limits.run_wall_time
    while load is None or len(results) < len(calls):
        left = replace(limits, run_cpu_time=cpu_left, run_wall_time=wall_left)
        part = _Part(slots, left)
        loaded, some = part.run(job, calls[len(results) :])
        load = load or loaded
        results += some
        cpu_left -= part.cpu_time
        wall_left -= part.wall_time
        if loaded.outcome is not Outcome.PASS or cpu_left <= 0 or wall_left <= 0:
            break
    why = load if load.outcome is not Outcome.PASS else None
    if why is None and len(results) < len(calls):
        why = TestResult(Outcome.TIMEOUT, "the limit of the whole run was reached")
    if why is not None:
        missing = CallResult(why.outcome, None, why.message)
        results += [missing] * (len(calls) - len(results))
    return load, results


class _Part:
    """The calls that one process answers."""

    def __init__(self, slots: Slots, limits: Limits) -> None:
        self.limits = limits
        self.cpu_time = 0.0
        self.wall_time = 0.0
        self._slots = slots
        self._child = slots.take(with_test=False).without_test()

    def _frame(self) -> bytes | Stop:
        limits = self.limits
        cpu = min(limits.call_cpu_time, limits.run_cpu_time - self.cpu_time)
        wall = min(limits.call_wall_time, limits.run_wall_time - self._watch.elapsed())
        return self._watch.frame(self._child, cpu, wall)

    def run(self, job: bytes, calls: Sequence[bytes]) -> tuple[TestResult, list[CallResult]]:
        """Loads the program and makes calls until one stops the process."""
        results: list[CallResult] = []
        load = TestResult(Outcome.PASS)
        stop: Stop | None = None
        try:
            self._child.start(self.limits, job, *calls)
            self._watch = Watch(self._child)
            self._slots.prepare()
            for index in range(len(calls) + 1):
                frame = self._frame()
                if isinstance(frame, Stop):
                    stop = frame
                    break
                spent = self._watch.lap()
                self.cpu_time += spent
                outcome, content = reply_of(frame)
                if index == 0:
                    load = TestResult(outcome, "" if outcome is Outcome.PASS else content, spent)
                    if outcome is not Outcome.PASS:
                        break
                else:
                    results.append(_call_result(outcome, content, spent))
            clean = stop is not None or self._watch.closes_cleanly(self._child)
        except BaseException:
            with contextlib.suppress(WorkerDiedError):
                self._child.dismiss()
            raise
        self.wall_time = self._watch.elapsed()
        if stop is None:
            self._child.dismiss()
        else:
            ended = self._child.end()
            self.cpu_time = max(self.cpu_time, self._child.used(ended))
            stop = self._child.stop or stop
            why = outcome_of(stop, ended, self.limits)
            if not results and index == 0:
                return why, []
            spent = max(0.0, self.cpu_time - sum(result.cpu_time for result in results))
            return load, [*results, CallResult(why.outcome, None, why.message, spent)]
        if not clean:
            forged = "it wrote to the channel that carries its results"
            return load, [CallResult(Outcome.FORBIDDEN, None, forged)] * len(results)
        return load, results


def _call_result(outcome: Outcome, content: object, spent: float) -> CallResult:
    if outcome is not Outcome.PASS:
        return CallResult(outcome, None, str(content), spent)
    assert isinstance(content, tuple)
    if len(content) != 1:
        return CallResult(Outcome.FORBIDDEN, None, "a reply with a strange shape", spent)
    return CallResult(Outcome.PASS, content[0], "", spent)
