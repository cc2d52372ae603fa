"""Tests on many programs: cases are compared outside of the programs' processes, any other text runs inside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from codea1_env.evaluation.suites.samples import SuiteTest
from codea1_env.mutation.kills import Part, had_no_time, until_settled
from codea1_env.oracle import gather
from codea1_env.problem_sets.judging import seconds_of
from codea1_env.sandbox import (
    Comparison,
    EncodedCases,
    InfraError,
    Job,
    JobResult,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
    expected_frame,
)
from codea1_env.sandbox.compare import FLOAT_ATOL


class _Share(NamedTuple):
    """Tests of a part that run together, and what becomes of them."""

    owners: list[int]
    """For each result the place of its test in the part."""
    results: Future[JobResult]


def run_on_each(
    programs: Sequence[str],
    tests: Sequence[SuiteTest],
    entry_point: str,
    limits: Limits,
    sandbox: Sandbox,
    settles: Callable[[TestResult], bool] = lambda result: False,
) -> list[list[TestResult | None]]:
    """Run the same tests on many programs; None behind the first result that settles a program."""

    def run(parts: Sequence[Part]) -> list[tuple[TestResult, ...]]:
        started = [
            _start(programs[number], [tests[each] for each in items], entry_point, limits, sandbox)
            for number, items in parts
        ]
        gather([share.results for shares in started for share in shares])
        return [
            _merged(shares, len(part.items)) for shares, part in zip(started, parts, strict=True)
        ]

    return until_settled(len(programs), len(tests), run, late=had_no_time, settles=settles)


def first_failures(
    programs: Sequence[str],
    tests: Sequence[SuiteTest],
    entry_point: str,
    limits: Limits,
    sandbox: Sandbox,
) -> list[int | None]:
    """For each program the number of the first test that it does not pass; None if it passes all."""
    rows = run_on_each(programs, tests, entry_point, limits, sandbox, _failed)
    return [next((i for i, each in enumerate(row) if each and _failed(each)), None) for row in rows]


def run_once(
    program: str, tests: Sequence[SuiteTest], entry_point: str, limits: Limits, sandbox: Sandbox
) -> JobResult:
    """Run tests on one program once."""
    shares = _start(program, tests, entry_point, limits, sandbox)
    found = gather([share.results for share in shares])
    return JobResult(_PASSED, _merged(shares, len(tests)), cpu_time=sum(map(seconds_of, found)))


def _start(
    program: str, tests: Sequence[SuiteTest], entry_point: str, limits: Limits, sandbox: Sandbox
) -> list[_Share]:
    shares = []
    for tolerance in sorted({case.absolute for test in tests for case in test.cases}):
        some = [
            (place, case)
            for place, test in enumerate(tests)
            for case in test.cases
            if case.absolute == tolerance
        ]
        cases = EncodedCases(
            tuple(case.call.call for _, case in some),
            tuple(expected_frame(case.value) for _, case in some),
        )
        comparison = Comparison(atol=tolerance or FLOAT_ATOL)
        future = sandbox.submit_cases(
            program, entry_point, cases, comparison=comparison, limits=limits
        )
        shares.append(_Share([place for place, _ in some], future))
    inside = [(place, test.text) for place, test in enumerate(tests) if not test.cases]
    if inside:
        job = Job(program, tuple(text for _, text in inside), entry_point, limits)
        shares.append(_Share([place for place, _ in inside], sandbox.submit(job)))
    return shares


def _merged(shares: Sequence[_Share], tests: int) -> tuple[TestResult, ...]:
    merged: list[TestResult] = [_PASSED] * tests
    for owners, future in shares:
        found = future.result()
        results = found.tests or (found.load,) * len(owners)
        for place, result in zip(owners, results, strict=True):
            if result.outcome is Outcome.INFRA_ERROR:
                raise InfraError(result.message)
            if merged[place].passed:
                merged[place] = result
    return tuple(merged)


_PASSED = TestResult(Outcome.PASS)


def _failed(result: TestResult) -> bool:
    """Whether a test says that a program is wrong; what could not be judged says nothing."""
    return not result.passed and result.outcome is not Outcome.UNJUDGED
