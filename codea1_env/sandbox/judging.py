"""Judges one job: what an assertion says of a call is compared here, every other text runs together with the program."""

from __future__ import annotations

import time
from dataclasses import replace

from .assertions import Assertion, AssertionReader, TextTest, verdict
from .calls import answer_calls
from .inside import codec
from .inside.run.running import ITERATED
from .jobs import Job, Limits, WorkerKind
from .outcomes import too_long
from .processes import Calls, less
from .results import RUN_LIMIT, JobResult, Limit, Outcome, TestResult
from .test_modules import NEEDS_PYTEST, ModuleJob, has_pytest, judge_text, room_for_a_test
from .workers import TaskRunner

_NOTHING = 1e-9  # seconds: no time is left


def judge(
    run: TaskRunner, reader: AssertionReader, job: Job, kind: WorkerKind, limits: Limits
) -> JobResult:
    """Judge the tests of a job."""
    tests = reader.read(job.tests, job.entry_point)
    why = too_long(job.code)
    if why is not None:
        return JobResult(why, (why,) * len(tests))
    results: dict[int, TestResult] = {}
    asserted: dict[int, Assertion] = {}
    texts: dict[int, TextTest] = {}
    for index, test in enumerate(tests):
        if isinstance(test, TestResult):
            results[index] = test
        elif isinstance(test, TextTest):
            texts[index] = test
        elif job.entry_point not in (None, name := test.name.lstrip(ITERATED)):
            message = f"NameError: name {name!r} is not defined"
            results[index] = TestResult(Outcome.ERROR, message, error="NameError")
        else:
            asserted[index] = test
    load: TestResult | None = None
    left = limits
    if asserted or not texts:
        started = time.monotonic()
        load, cpu_time = _judge_assertions(run, job, kind, asserted, limits, results)
        left = less(limits, cpu_time, time.monotonic() - started)
    if load is not None and not load.passed:
        results |= dict.fromkeys(texts, load)
    elif texts:
        loaded = _judge_texts(run, job, kind, texts, left, results)
        load = load or loaded
    assert load is not None
    return JobResult(load, tuple(results[index] for index in range(len(tests))))


def _judge_assertions(
    run: TaskRunner,
    job: Job,
    kind: WorkerKind,
    asserted: dict[int, Assertion],
    limits: Limits,
    results: dict[int, TestResult],
) -> tuple[TestResult, float]:
    """Make the calls, and return how loading the program ended, and the CPU time of all."""
    names = tuple(each.name for each in asserted.values())
    arguments = [each.call for each in asserted.values()]
    calls = Calls(names[0] if len(set(names)) == 1 else names, arguments, job.entry_point)
    callers = kind._replace(calls_only=True, scratch=False)
    answers = run(callers, lambda slots: answer_calls(slots, job.code, calls, limits))
    meter = codec.Meter(codec.VALUES)
    replies = zip(asserted.items(), answers.replies, answers.times, strict=True)
    for (index, test), reply, cpu_time in replies:
        found = verdict(test, reply, meter)
        line = None if found.passed else _line_of(job.tests[index])
        results[index] = replace(found, cpu_time=cpu_time or found.cpu_time, line=line)
    return replace(answers.load, cpu_time=answers.load_time), answers.cpu_time


def _line_of(test: str) -> int:
    """The line of the one statement of a test."""
    lines = [line.lstrip() for line in test.split("\n")]
    asserting = (number for number, line in enumerate(lines, 1) if line.startswith("assert"))
    other = (number for number, line in enumerate(lines, 1) if line and not line.startswith("#"))
    return next(asserting, next(other, 1))


def _judge_texts(
    run: TaskRunner,
    job: Job,
    kind: WorkerKind,
    texts: dict[int, TextTest],
    limits: Limits,
    results: dict[int, TestResult],
) -> TestResult:
    """Judge texts one after the other, each in a process of its own, and return how loading the program ended."""
    left = room_for_a_test(limits)
    load = TestResult(Outcome.PASS, judged="inside")
    for index, test in texts.items():
        if not load.passed:
            results[index] = load
            continue
        if min(left.run_cpu_time, left.run_wall_time) <= _NOTHING:
            results[index] = TestResult(
                Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN, judged="inside"
            )
            continue
        started = time.monotonic()
        load, results[index] = _run_text(run, job, kind, index, left, by_pytest=test.by_pytest)
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
