"""What tests do on many programs, where some programs never end.

All tests of a program share one limit, so that a program that never ends costs that limit once, and not once
for each test. A test that had no time left because of others is run again, so that every verdict is its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from codea1_env.sandbox import (
    InfraError,
    Job,
    JobResult,
    Limit,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)

MIN_SECONDS = 0.5
"""CPU time that a program may take at least, for loading and its tests."""
FACTOR = 4.0
"""A program may take so many times as long as the reference."""
_STEP = 0.5
_WALL_FACTOR = 10.0
"""Wall-clock limit over CPU limit: a busy machine must not decide."""


def limits_beside(reference: JobResult, least: float = MIN_SECONDS) -> Limits:
    """What a program may use on tests, judged by what the reference took on them.

    The time is rounded up, so that a little more or less of it changes nothing.

    Args:
        reference: The reference on the same tests.
        least: Seconds of CPU time that a program gets in any case.
    """
    seconds = reference.load.cpu_time + sum(test.cpu_time for test in reference.tests)
    seconds = max(least, math.ceil(FACTOR * seconds / _STEP) * _STEP)
    wall = _WALL_FACTOR * seconds
    return Limits(seconds, wall, seconds, wall, calls_per_test=1)


def first_failures(
    programs: Sequence[str],
    tests: Sequence[str],
    entry_point: str,
    limits: Limits,
    sandbox: Sandbox,
) -> list[int | None]:
    """For each program the number of the first test that it does not pass; None if it passes all.

    Args:
        programs: Program texts.
        tests: Test texts.
        entry_point: The function or class that the tests call.
        limits: What a program may use for all tests together.
        sandbox: Where they run.

    Raises:
        InfraError: The sandbox failed, so that nothing is known.
    """

    def open_tests(known: Mapping[int, bool]) -> list[int]:
        first = _first_failure(known)
        before = len(tests) if first is None else first
        return [number for number in range(before) if number not in known]

    settled = _settle(programs, tests, entry_point, limits, sandbox, open_tests)
    return [_first_failure(known) for known in settled]


def passes(
    programs: Sequence[str],
    tests: Sequence[str],
    entry_point: str,
    limits: Limits,
    sandbox: Sandbox,
) -> list[list[bool]]:
    """For each program whether it passes each test. See `first_failures`."""

    def open_tests(known: Mapping[int, bool]) -> list[int]:
        return [number for number in range(len(tests)) if number not in known]

    settled = _settle(programs, tests, entry_point, limits, sandbox, open_tests)
    return [[known[number] for number in range(len(tests))] for known in settled]


def _settle(
    programs: Sequence[str],
    tests: Sequence[str],
    entry_point: str,
    limits: Limits,
    sandbox: Sandbox,
    open_tests: Callable[[Mapping[int, bool]], list[int]],
) -> list[dict[int, bool]]:
    """Run tests until none is open: for each program, test -> whether it passed."""
    settled: list[dict[int, bool]] = [{} for _ in programs]
    while left := {i: numbers for i, each in enumerate(settled) if (numbers := open_tests(each))}:
        jobs = [
            Job(programs[i], tuple(tests[number] for number in numbers), entry_point, limits)
            for i, numbers in left.items()
        ]
        for (i, numbers), results in zip(left.items(), sandbox.run_many(jobs), strict=True):
            found = {
                number: _passed(result)
                for number, result in zip(numbers, results, strict=True)
                if result.limit is not Limit.RUN
            }
            # The first of them has had all the time there is, whatever it says of that.
            settled[i] |= found or {numbers[0]: False}
    return settled


def _first_failure(known: Mapping[int, bool]) -> int | None:
    return min((number for number, passed in known.items() if not passed), default=None)


def _passed(result: TestResult) -> bool:
    if result.outcome is Outcome.INFRA_ERROR:
        raise InfraError(result.message)
    return result.passed
