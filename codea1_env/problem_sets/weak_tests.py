"""Whether the tests of a problem tell its reference from programs with one small fault."""

from __future__ import annotations

from collections.abc import Callable

from codea1_env.mutation import generate_mutants
from codea1_env.mutation.kills import limits_beside
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problem_sets.problem import Problem
from codea1_env.sandbox import AnalysisError, JobResult, Sandbox

_MUTANTS = 8
"""Spread over the reference: enough to find tests that say next to nothing, and no more than a check of a set may cost."""
_SECONDS = 2.0
"""CPU time of the reference above which its mutants would take too long."""


def submit_to_mutants(
    problem: Problem, reference: JobResult, sandbox: Sandbox
) -> Callable[[], str]:
    """Start to run the tests of a problem on mutants of its reference.

    Args:
        problem: Its reference passes all tests.
        reference: What came of that.
        sandbox: Where it runs.

    Returns:
        What waits for them, and says what is wrong with the tests; empty text if more than half of the mutants fail.
    """
    seconds = sum(test.cpu_time for test in reference.tests)
    if problem.stdin_tests or problem.in_one_process or seconds > _SECONDS:
        return str
    try:
        mutants = generate_mutants(problem.reference, sandbox, limit=_MUTANTS)
    except AnalysisError:
        return str  # it runs; that it cannot be taken apart is no finding
    limits = limits_beside(reference)
    runs = [(each, submit_to_tests(problem, each.code, limits, sandbox)) for each in mutants]

    def said() -> str:
        results = [(mutant, run.result()) for mutant, run in runs]
        alive = [
            mutant
            for mutant, result in results
            if result.load.passed and all(test.passed for test in result.tests)
        ]
        if not alive or 2 * len(alive) < len(runs):
            return ""
        return (
            f"Expect the tests to fail most programs with one small fault, actually {len(alive)} of {len(runs)} pass "
            f"them, such as with {' '.join(alive[0].description.split()):.80} in line {alive[0].line}. Add tests, or "
            "assert more."
        )

    return said
