"""Judges one job: cheap comparisons here, everything else as a program of its own, within one run's limits."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .calls import Reply, read, readable, run_calls
from .inside import codec
from .jobs import Job, Limits
from .outcomes import too_long
from .planner import NotHereError, Planner, ProgramPlan, ValuePlan, evaluate
from .program_mode import run_test
from .results import (
    RUN_LIMIT,
    CallResult,
    JobResult,
    Limit,
    Outcome,
    TestResult,
    cause_of,
)
from .workers import Run, Slots

_SMALL = 256  # bytes of an expression, or of a reply, that is worth keeping
_REMEMBERED = 4096
_NOTHING = 1e-9  # seconds: no time is left


def judge(run: Run, planner: Planner, job: Job, limits: Limits) -> JobResult:
    """Judge the tests of a job.

    Args:
        run: Has a task done by a worker; what is done here needs none.
        planner: Says how each test is to be judged.
        job: The program and its tests.
        limits: What the job may use.
    """
    asked = limits
    plans = planner.plans(job.tests, job.entry_point)
    why = too_long(job.code)
    if why is not None:
        return JobResult(why, (why,) * len(plans))
    results: dict[int, TestResult] = {}
    valued: dict[int, ValuePlan] = {}
    programs: dict[int, ProgramPlan] = {}
    for index, plan in enumerate(plans):
        if isinstance(plan, TestResult):
            results[index] = plan
        elif isinstance(plan, ProgramPlan):
            programs[index] = plan
        elif job.entry_point is not None and set(plan.names) != {job.entry_point}:
            results[index] = _undefined(plan.names, job.entry_point)
        else:
            valued[index] = plan
    if programs:
        limits = replace(
            limits,
            run_cpu_time=max(limits.run_cpu_time, limits.test_cpu_time),
            run_wall_time=max(limits.run_wall_time, limits.test_wall_time),
        )
    load: TestResult | None = None
    final_call = None if job.final_call is None else codec.encode((job.final_call, [], {}))
    final: list[CallResult] = []
    if valued or not programs:
        calls = [call for plan in valued.values() for call in plan.calls]
        calls += [final_call] if final_call is not None else []
        returned = run(lambda slots: run_calls(slots, job.code, job.entry_point, calls, limits))
        load = returned.load
        limits = _less(limits, returned.cpu_time, returned.wall_time)
        meter = codec.Meter(codec.CHEAP)
        replies = iter(returned.results)
        for index, plan in valued.items():
            verdict = _verdict(plan, [next(replies) for _ in plan.calls], meter)
            if verdict is None or verdict.outcome is Outcome.UNENCODABLE:
                programs[index] = plan.as_program()
            if verdict is not None:
                results[index] = _with_line(verdict, job.tests[index])
        final += [readable(reply, codec.Meter(codec.VALUES)) for reply in replies]
    if load is not None and not load.passed:
        results |= dict.fromkeys(programs, load)
    elif programs:
        loaded, found, said = run(
            lambda slots: _run_tests(slots, job, sorted(programs.items()), limits, final_call)
        )
        load = load or loaded
        final += said
        for index, result in found.items():
            # As a program, a test may still list a generator. That it is false, since what came is no
            # data, is no answer: it stays what cannot be judged.
            if index not in results or result.outcome in (Outcome.PASS, Outcome.ERROR):
                results[index] = result
    assert load is not None
    # Tests that are judged by values are run again, each alone, only for what is printed then.
    alone = {index: plan.as_program() for index, plan in valued.items() if index not in programs}
    if job.capture_output and alone:
        once = replace(asked, calls_per_test=1).with_room_for(tests=len(alone))
        _, printed, _ = run(lambda slots: _run_tests(slots, job, alone.items(), once, None))
        for index, each in printed.items():
            results[index] = replace(results[index], stdout=each.stdout, stderr=each.stderr)
    return JobResult(load, tuple(results[index] for index in range(len(plans))), tuple(final))


def _less(limits: Limits, cpu_time: float, wall_time: float) -> Limits:
    """Return what is left of the run's limits; they stay positive, as limits must."""
    return replace(
        limits,
        run_cpu_time=max(limits.run_cpu_time - cpu_time, _NOTHING),
        run_wall_time=max(limits.run_wall_time - wall_time, _NOTHING),
    )


def _run_tests(
    slots: Slots,
    job: Job,
    tests: Iterable[tuple[int, ProgramPlan]],
    limits: Limits,
    final_call: bytes | None,
) -> tuple[TestResult, dict[int, TestResult], list[CallResult]]:
    """Run tests as programs, within the limits of one run.

    Returns:
        How the first loading ended, the verdicts, and what the final calls returned.
    """
    load: TestResult | None = None
    results: dict[int, TestResult] = {}
    final: list[CallResult] = []
    test_cpu_time, test_wall_time = limits.test_cpu_time, limits.test_wall_time
    late = TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN)
    for index, plan in tests:
        if load is not None and not load.passed:
            results[index] = load
            continue
        if min(limits.run_cpu_time, limits.run_wall_time) <= _NOTHING:
            slots.worker.ran_out = True  # in those before it
            load, results[index] = load or late, late
            continue
        left = replace(
            limits,
            call_cpu_time=min(test_cpu_time, limits.run_cpu_time),
            call_wall_time=min(test_wall_time, limits.run_wall_time),
        )
        started = time.monotonic()
        loaded, result, said = run_test(slots, job, job.tests[index], plan, left, final_call)
        final += [said] if said is not None else []
        cut = left.call_cpu_time < test_cpu_time or left.call_wall_time < test_wall_time
        if result.outcome is Outcome.TIMEOUT and cut:
            result = replace(result, message=RUN_LIMIT, limit=Limit.RUN)
        load, results[index] = load or loaded, result
        limits = _less(limits, result.cpu_time, time.monotonic() - started)
    assert load is not None
    return load, results, final


def _with_line(verdict: TestResult, test: str) -> TestResult:
    """Return a failed test of one assertion failed there."""
    if verdict.passed:
        return verdict
    lines = [line.lstrip() for line in test.split("\n")]
    asserting = (number for number, line in enumerate(lines, 1) if line.startswith("assert"))
    other = (number for number, line in enumerate(lines, 1) if line and not line.startswith("#"))
    return replace(verdict, line=next(asserting, next(other, 1)))


def _undefined(names: Sequence[str], entry_point: str) -> TestResult:
    other = next(name for name in names if name != entry_point)
    message = f"NameError: name {other!r} is not defined"
    return TestResult(Outcome.ERROR, message, called=False, error="NameError")


@functools.lru_cache(maxsize=_REMEMBERED)
def _small_expression(encoded: bytes) -> Any:
    """Return the expression of a usual test, which is read once."""
    return codec.decode(encoded)


@functools.lru_cache(maxsize=_REMEMBERED)
def _small_verdict(expression: bytes, frame: bytes) -> TestResult | None:
    """Return the verdict on one small reply: many programs answer a test alike, and most tests come again."""
    return _read_verdict(expression, (Reply(frame, 0.0),), codec.Meter(codec.CHEAP))


def _verdict(
    plan: ValuePlan, returned: Sequence[Reply | CallResult], meter: codec.Meter
) -> TestResult | None:
    """Return the verdict on an assertion about values; None where it costs too much to judge it here."""
    first = returned[0]
    if len(returned) > 1 or not isinstance(first, Reply) or len(first.frame) > _SMALL:
        return _read_verdict(plan.expression, returned, meter)
    verdict = _small_verdict(plan.expression, first.frame)
    if verdict is None or not first.cpu_time:
        return verdict
    return replace(verdict, cpu_time=first.cpu_time)


def _read_verdict(
    expression: bytes, returned: Sequence[Reply | CallResult], meter: codec.Meter
) -> TestResult | None:
    cpu_time = sum([result.cpu_time for result in returned])
    values = []
    try:
        for reply in returned:
            result = read(reply, meter)
            if result.outcome is not Outcome.PASS:
                return TestResult(result.outcome, cpu_time=cpu_time, **cause_of(result))
            values.append(result.value)
        nodes_of = _small_expression if len(expression) <= _SMALL else codec.decode
        return evaluate(nodes_of(expression), values, cpu_time)
    except (codec.BudgetError, NotHereError):
        return None
