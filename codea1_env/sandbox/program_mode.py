"""A program as a whole: as a script that reads standard input and prints, or with a test that is a program, too.

The test runs in its own process and reaches the program's process through handles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .calls import Reply, readable
from .clocks import share_processor
from .inside import codec
from .jobs import Job, Limits
from .outcomes import Stop, bounds_of, job_frame, load_of, outcome_of, reply_of
from .planner import ProgramPlan
from .results import (
    NEVER_CALLED,
    CallResult,
    Outcome,
    ScriptResult,
    TestResult,
    cause_of,
    identifier,
    one_line,
)
from .supervise import Supervised, dismissed_on_error, end_all
from .watch import Watch
from .worker import Ended
from .workers import Slots

_VERDICTS = {
    outcome.value: outcome
    for outcome in (
        Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.EXITED, Outcome.MEMORY,
        Outcome.SYNTAX_ERROR, Outcome.UNENCODABLE,
    )
}  # fmt: skip

_SHAPES = ((str, str, int, str, str, str), (str, str, type(None), str, str, str))
_MAX_TRACEBACK = 4000
_MOST_LINES = 1 << 30


def run_script(slots: Slots, code: str, stdin: bytes, limits: Limits) -> ScriptResult:
    """Run a program once that reads standard input and prints, as in APPS and LiveCodeBench.

    Args:
        slots: Where the process comes from.
        code: Program text.
        stdin: What it reads.
        limits: The limits of one call are for the whole program.
    """
    try:
        job = job_frame(code, None, limits, stdin=stdin)
    except codec.SizeError:
        return ScriptResult(Outcome.SYNTAX_ERROR, message="the program is too large")
    child = slots.take()
    child.keep_output(is_answer=True)
    with dismissed_on_error([child]):
        child.start(limits, job, may_send=1)
        watch = Watch(child)
        frame = watch.frame(child, limits.call_cpu_time, limits.call_wall_time)
        stop = frame if isinstance(frame, Stop) else None
        if stop is None and not watch.closes_cleanly(child):
            stop = Stop.FLOOD
        child.read_all_output()
        if child.stop is Stop.OUTPUT:
            stop = Stop.OUTPUT
        spent = watch.lap()
    ended = child.end()
    stdout, stderr = child.printed()
    if stop is not None:
        if stop is Stop.CLOSED:  # `end` knows whether the process had ended, too
            stop = child.stop or stop
        why = outcome_of(stop, ended)
        spent = max(spent, child.used(ended))
    else:
        assert not isinstance(frame, Stop)
        why = load_of(frame)
    return ScriptResult(why.outcome, stdout, cpu_time=spent, stderr=stderr, **cause_of(why))


def run_test(
    slots: Slots, job: Job, test: str, plan: ProgramPlan, limits: Limits, final_call: bytes | None
) -> tuple[TestResult, TestResult, CallResult | None]:
    """Judge one test with a process for the program and a process for the test.

    Args:
        slots: Where both processes come from.
        job: The program, and what the test may use of it.
        test: Test text.
        plan: What the test uses.
        limits: The call limits are for loading, and again for the test.
        final_call: An encoded call of the program, made when the test's process has ended.

    Returns:
        How loading ended, the verdict, and what came of the final call.
    """
    program, tester = slots.take_pair()
    running = [tester, program]
    ended_test: Ended | None = None
    verdict: bytes | Stop | None = None
    final: bytes | Stop | None = None
    offered = [name for name in plan.names if job.entry_point in (None, name)]
    if job.capture_output:
        program.keep_output()
        tester.keep_output()
    with dismissed_on_error(running):
        told = job_frame(
            job.code, job.entry_point, limits, offered, serving=True, capture=job.capture_output
        )
        program.start(limits, told, may_send=2 if final_call is None else 3)
        tester.start(limits, may_send=1)
        share_processor(program.pid, tester.pid)
        watch = Watch(program, tester)
        loaded = watch.frame(program, limits.call_cpu_time, limits.call_wall_time)
        if isinstance(loaded, bytes):
            load, exports = _exports(loaded, offered)
            if load.passed:
                watch.lap()
                tester.send(_test_job(test, plan, exports, limits, capture=job.capture_output))
                verdict = watch.frame(tester, limits.call_cpu_time, limits.call_wall_time)
        if program.stop is None and isinstance(loaded, bytes):
            program.read()  # that it was called stands in its pipe: it said so before it answered
        if program.ended_by_itself():  # whatever the test says: a crash is never a pass
            program.stop = program.stop or Stop.CLOSED
        called = bool(program.frames)
        if isinstance(loaded, bytes) and [*program.frames] not in ([], [b"called"]):
            program.stop = Stop.FLOOD
        stop = program.stop
        if final_call is not None and stop is None and isinstance(verdict, bytes):
            # When the verdict is there. The test's process is ended first: it has no say.
            running.remove(tester)
            ended_test = tester.end()
            final = _called(program, final_call, limits)
    # Whether the test's process has ended because the program's process had: its end was noticed there first.
    lost = verdict is Stop.CLOSED and stop is None
    if lost and tester.ended_by_itself(1.0) and program.ended_by_itself(0.2):
        program.stop = stop = Stop.CLOSED
    *first, ended_program = end_all(*running)
    ended_test = ended_test or first[0]
    cpu = tester.used(ended_test) + program.used(ended_program)
    printed = [a + b for a, b in zip(program.printed(), tester.printed(), strict=True)]
    if isinstance(loaded, Stop):
        load = outcome_of(stop or loaded, ended_program)
    if not load.passed:
        return load, replace(load, cpu_time=cpu, stdout=printed[0], stderr=printed[1]), None
    if verdict in (Stop.CPU, Stop.WALL):
        result = outcome_of(verdict, ended_program)
    elif stop is not None:
        result = outcome_of(stop, ended_program)
    elif isinstance(verdict, bytes):
        result = _verdict(verdict)
    else:
        result = outcome_of(tester.stop or Stop.CLOSED, ended_test)
        result = replace(result, message=f"in the test: {result.message}")
    # A program cannot claim that a test has called it, and a test cannot claim to have called the program.
    called = called and result.called
    if result.passed and not called:
        result = TestResult(Outcome.ERROR, NEVER_CALLED, vacuous=True)
    result = replace(
        result,
        cpu_time=cpu,
        called=called,
        peak_memory=ended_program.memory,
        stdout=printed[0],
        stderr=printed[1],
    )
    if final_call is None:
        return load, result, None
    if isinstance(final, bytes):
        return load, result, readable(Reply(final, 0.0), codec.Meter(codec.VALUES))
    why = result if final is None else outcome_of(final, ended_program)
    return load, result, CallResult(why.outcome, **cause_of(why))


def _called(program: Supervised, call: bytes, limits: Limits) -> bytes | Stop:
    """Call a program that has served a test."""
    program.frames.clear()
    watch = Watch(program)
    watch.lap()
    program.send(call)
    while True:
        frame = watch.frame(program, limits.call_cpu_time, limits.call_wall_time)
        if frame != b"called":  # of a request that the test did not wait for
            return frame


def _test_job(
    test: str, plan: ProgramPlan, exports: list[Any], limits: Limits, *, capture: bool
) -> bytes:
    return codec.encode(
        {
            "test": "" if plan.code else test,
            "compiled": plan.code,
            "modules": list(plan.modules),
            "exports": exports,
            "capture": capture,
            **bounds_of(limits),
        }
    )


def _exports(frame: bytes, offered: Sequence[str]) -> tuple[TestResult, list[Any]]:
    said = reply_of(frame, codec.VALUES)
    if isinstance(said, TestResult):
        return said, []
    exports = said[0] if len(said) == 1 else None
    if type(exports) is list and all(
        type(item) is tuple and tuple(map(type, item)) == (str, bytes) for item in exports
    ):
        names = [item[0] for item in exports]
        # Another name, such as that of a builtin, could replace what the test judges with.
        if set(names) <= set(offered) and len(set(names)) == len(names):
            return TestResult(Outcome.PASS), exports
    return TestResult(Outcome.FORBIDDEN, "a load reply with a strange shape"), []


def _verdict(frame: bytes) -> TestResult:
    try:
        verdict = codec.decode(frame, meter=codec.Meter(codec.CHEAP))
    except codec.DecodeError:
        verdict = None
    if type(verdict) is tuple and tuple(map(type, verdict)) in _SHAPES:
        kind, message, line, trace, error, module = verdict
        if kind == "uncalled":
            return TestResult(Outcome.ERROR, NEVER_CALLED, called=False, vacuous=True)
        if kind in _VERDICTS:
            in_text = line is not None and 1 <= line <= _MOST_LINES
            shown = "\n".join(map(one_line, trace[:_MAX_TRACEBACK].split("\n")))
            return TestResult(
                _VERDICTS[kind],
                message,
                line=line if in_text else None,
                traceback=shown,
                error=identifier(error),
                missing_module=identifier(module),
            )
    return TestResult(Outcome.FORBIDDEN, "in the test: a malformed verdict")
