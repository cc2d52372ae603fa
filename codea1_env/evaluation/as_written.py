"""Tests on programs as they are written: a program passes if it returns what the test predicts. No reference is asked."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.oracle import gather
from codea1_env.problem_sets.judging import comparison_of
from codea1_env.problems import Problem
from codea1_env.responses import Test, yielding
from codea1_env.sandbox import RETURNED, Comparison, EncodedCases, Limits, Sandbox, TestResult
from codea1_env.subjects import Subject


def run_as_written(
    programs: Sequence[str],
    tests: Sequence[Test],
    problem: Problem,
    limits: Limits,
    sandbox: Sandbox,
) -> list[list[TestResult]]:
    """Run the same tests on many programs. Returns a row of results for each program."""
    places: dict[Comparison, list[int]] = {}
    for place, test in enumerate(tests):
        places.setdefault(_comparison(test, problem), []).append(place)
    name = Subject.of(problem, yields=yielding([problem], sandbox)[0]).called
    groups = [
        (
            comparison,
            EncodedCases(
                tuple(tests[place].call for place in some),
                tuple(RETURNED + tests[place].predicted for place in some),
            ),
        )
        for comparison, some in places.items()
    ]
    started = [
        sandbox.submit(sandbox.judge_cases, code, name, cases, comparison=rule, limits=limits)
        for code in programs
        for rule, cases in groups
    ]
    results = iter(gather(started))
    rows = []
    for _ in programs:
        found: dict[int, TestResult] = {}
        for some in places.values():
            result = next(results)
            found |= zip(some, result.tests or (result.load,) * len(some), strict=True)
        rows.append([found[place] for place in range(len(tests))])
    return rows


def _comparison(test: Test, problem: Problem) -> Comparison:
    """Of tolerances, those of the problem and of the test, the widest counts."""
    own = comparison_of(problem)
    return own._replace(
        atol=max(own.atol, test.absolute or 0.0), rtol=max(own.rtol, test.relative or 0.0)
    )
