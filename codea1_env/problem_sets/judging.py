"""Runs a program on all tests of its problem, in the way that they need."""

from __future__ import annotations

from concurrent.futures import Future

from codea1_env.problem_sets.one_process import run_in_one_process
from codea1_env.problem_sets.problem import Problem
from codea1_env.problem_sets.stdin_tests import run_stdin_tests
from codea1_env.sandbox import Job, JobResult, Limits, Outcome, Sandbox, TestResult

_LOADED = TestResult(Outcome.PASS)


def submit_to_tests(
    problem: Problem, code: str, limits: Limits, sandbox: Sandbox, *, hash_seed: int = 0
) -> Future[JobResult]:
    """Start a program on the tests of its problem, behind the problem's preamble.

    Args:
        problem: It has tests.
        code: Any text that can be encoded.
        limits: What it may use. For inputs to read, and where there is no reference, they are for each test; there
            the first test that fails is the last, so that not every test of a program need time out.
        sandbox: Where it runs.
        hash_seed: See `Job.hash_seed`; only for tests that call the program from another process.

    Returns:
        The results of all tests, or of those up to the first that failed.
    """
    if problem.preamble:
        code = f"{problem.preamble}\n\n{code}"
    if problem.stdin_tests:
        return sandbox.in_background(
            lambda: _job_result(run_stdin_tests(code, problem.stdin_tests, limits, sandbox))
        )
    if problem.in_one_process:
        return sandbox.in_background(
            lambda: _job_result(
                [run_in_one_process(code, problem.all_tests, limits, sandbox, scratch=True)]
            )
        )
    if not problem.reference.strip():
        return sandbox.in_background(lambda: _job_result(_in_turn(problem, code, limits, sandbox)))
    return sandbox.submit(Job(code, problem.all_tests, problem.entry_point, limits, hash_seed))


def _in_turn(problem: Problem, code: str, limits: Limits, sandbox: Sandbox) -> list[TestResult]:
    results: list[TestResult] = []
    for test in problem.all_tests:
        results += sandbox.run_tests(code, [test], entry_point=problem.entry_point, limits=limits)
        if not results[-1].passed:
            break
    return results


def _job_result(tests: list[TestResult]) -> JobResult:
    return JobResult(_LOADED, tuple(tests))
