"""Judges one job: what says what calls return is compared here, every other text runs together with the program."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .calls import Answers, Calls, answer_calls, less
from .compare import read_returned
from .inside import codec
from .inside.run.running import ITERATED
from .jobs import Job, Limits, WorkerKind
from .outcomes import too_long
from .planner import NotHereError, Planner, TextPlan, ValuePlan, evaluate
from .results import RUN_LIMIT, JobResult, Limit, Outcome, TestResult, cause_of
from .test_modules import NEEDS_PYTEST, ModuleJob, has_pytest, judge_text, room_for_a_test
from .workers import TaskRunner

_SMALL = 256  # bytes of an expression, or of a reply, that is worth keeping
_REMEMBERED = 4096
_NOTHING = 1e-9  # seconds: no time is left
_TOO_COSTLY = TestResult(
    Outcome.OUTPUT_LIMIT, "to judge the value would cost too much", limit=Limit.RESULT
)


def judge(
    run: TaskRunner, planner: Planner, job: Job, kind: WorkerKind, limits: Limits
) -> JobResult:
    """Judge the tests of a job."""
    plans = planner.plans(job.tests, job.entry_point)
    why = too_long(job.code)
    if why is not None:
        return JobResult(why, (why,) * len(plans))
    results: dict[int, TestResult] = {}
    valued: dict[int, ValuePlan] = {}
    texts: dict[int, TextPlan] = {}
    for index, plan in enumerate(plans):
        if isinstance(plan, TestResult):
            results[index] = plan
        elif isinstance(plan, TextPlan):
            texts[index] = plan
        elif job.entry_point is not None and not _only(plan, job.entry_point):
            results[index] = _undefined(plan.names, job.entry_point)
        else:
            valued[index] = plan
    load: TestResult | None = None
    left = limits
    if valued or not texts:
        started = time.monotonic()
        answers = _answers(run, job, kind, list(valued.values()), limits)
        load = replace(answers.load, cpu_time=answers.load_time)
        left = less(limits, answers.cpu_time, time.monotonic() - started)
        results |= _verdicts(job, valued, answers)
    if load is not None and not load.passed:
        results |= dict.fromkeys(texts, load)
    elif texts:
        loaded = _judge_texts(run, job, kind, texts, left, results)
        load = load or loaded
    assert load is not None
    return JobResult(load, tuple(results[index] for index in range(len(plans))))


def _only(plan: ValuePlan, entry_point: str) -> bool:
    return all(name.lstrip(ITERATED) == entry_point for name in plan.names)


def _answers(
    run: TaskRunner, job: Job, kind: WorkerKind, plans: Sequence[ValuePlan], limits: Limits
) -> Answers:
    names = tuple(name for plan in plans for name in plan.names)
    arguments = [call for plan in plans for call in plan.calls]
    calls = Calls(names[0] if len(set(names)) == 1 else names, arguments, job.entry_point)
    callers = kind._replace(calls_only=True, scratch=False)
    return run(callers, lambda slots: answer_calls(slots, job.code, calls, limits))


def _verdicts(job: Job, valued: dict[int, ValuePlan], answers: Answers) -> dict[int, TestResult]:
    meter = codec.Meter(codec.VALUES)
    found, at = {}, 0
    for index, plan in valued.items():
        end = at + len(plan.calls)
        replies = answers.replies[at:end]
        verdict = _verdict(plan.expression, replies, meter)
        cpu_time = sum(answers.times[at:end])
        if cpu_time:
            verdict = replace(verdict, cpu_time=cpu_time)
        found[index] = verdict if verdict.passed else _with_line(verdict, job.tests[index])
        at = end
    return found


def _judge_texts(
    run: TaskRunner,
    job: Job,
    kind: WorkerKind,
    texts: dict[int, TextPlan],
    limits: Limits,
    results: dict[int, TestResult],
) -> TestResult:
    """Judge texts one after the other, each in a process of its own, and return how loading the program ended."""
    left = room_for_a_test(limits)
    load = TestResult(Outcome.PASS, judged="inside")
    for index, plan in texts.items():
        if not load.passed:
            results[index] = load
            continue
        if min(left.run_cpu_time, left.run_wall_time) <= _NOTHING:
            results[index] = TestResult(
                Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN, judged="inside"
            )
            continue
        started = time.monotonic()
        load, results[index] = _run_text(run, job, kind, index, left, by_pytest=plan.by_pytest)
        left = less(left, results[index].cpu_time, time.monotonic() - started)
    return load


def _run_text(
    run: TaskRunner, job: Job, kind: WorkerKind, index: int, limits: Limits, *, by_pytest: bool
) -> tuple[TestResult, TestResult]:
    missing = by_pytest and not has_pytest()  # then the program is loaded, and nothing else
    by_pytest = by_pytest and not missing
    together = kind._replace(scratch=True, testing=by_pytest)
    test = "" if missing else job.tests[index]
    text = ModuleJob(job.code, test, text=True, entry_point=job.entry_point, pytest=by_pytest)
    load, verdict = run(together, lambda slots: judge_text(slots, text, limits))
    if missing and verdict.passed:
        return load, replace(NEEDS_PYTEST, cpu_time=verdict.cpu_time)
    return load, verdict


def _with_line(verdict: TestResult, test: str) -> TestResult:
    """Return a failed test of one assertion failed there."""
    lines = [line.lstrip() for line in test.split("\n")]
    asserting = (number for number, line in enumerate(lines, 1) if line.startswith("assert"))
    other = (number for number, line in enumerate(lines, 1) if line and not line.startswith("#"))
    return replace(verdict, line=next(asserting, next(other, 1)))


def _undefined(names: Sequence[str], entry_point: str) -> TestResult:
    other = next(name for each in names if (name := each.lstrip(ITERATED)) != entry_point)
    message = f"NameError: name {other!r} is not defined"
    return TestResult(Outcome.ERROR, message, error="NameError")


@functools.lru_cache(maxsize=_REMEMBERED)
def _small_expression(encoded: bytes) -> Any:
    return codec.decode(encoded)


@functools.lru_cache(maxsize=_REMEMBERED)
def _small_verdict(expression: bytes, frame: bytes) -> TestResult:
    """Return the verdict on one small reply: many programs answer a test alike, and most tests come again."""
    return _read_verdict(expression, (frame,), codec.Meter(codec.VALUES))


def _verdict(
    expression: bytes, replies: Sequence[bytes | TestResult], meter: codec.Meter
) -> TestResult:
    """Return the verdict on an assertion about values."""
    first = replies[0]
    if len(replies) > 1 or not isinstance(first, bytes) or len(first) > _SMALL:
        return _read_verdict(expression, replies, meter)
    return _small_verdict(expression, first)


def _read_verdict(
    expression: bytes, replies: Sequence[bytes | TestResult], meter: codec.Meter
) -> TestResult:
    values = []
    for reply in replies:
        found = read_returned(reply, meter) if isinstance(reply, bytes) else reply
        if isinstance(found, TestResult):
            return TestResult(found.outcome, cpu_time=found.cpu_time, **cause_of(found))
        values.append(found.value)
    nodes_of = _small_expression if len(expression) <= _SMALL else codec.decode
    try:
        return evaluate(nodes_of(expression), values)
    except NotHereError:
        return _TOO_COSTLY
