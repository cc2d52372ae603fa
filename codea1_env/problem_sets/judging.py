"""The one judge of programs: runs a program on all tests of its problem.

Cases are calls whose values are compared outside of the program's process; where programs read standard input, what they
print is the value. A test module runs whole with the program, in one process, and its verdict says so (`judged == "inside"`): a
program that wants to be found right can make it so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import Future

from codea1_env.compare import Checker, look_at
from codea1_env.problem_sets.expected import encoded, expected_values
from codea1_env.problem_sets.problem import Problem
from codea1_env.reading.definitions import put_before
from codea1_env.sandbox import (
    MAX_INPUT,
    UNKNOWN,
    Comparison,
    EncodedCases,
    JobResult,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)
from codea1_env.sandbox.compare import default_atol
from codea1_env.sandbox.test_modules import NEEDS_PYTEST, has_pytest

MIN_SECONDS = 0.5  # CPU time that a mutant may take at least, for loading and all tests
_FACTOR = 4.0
_STEP = 0.5
_WALL_FACTOR = 10.0  # wall-clock limit over CPU limit: a busy machine must not decide
_LOADED = TestResult(Outcome.PASS)
_MEMORY = 4 << 30
"""Bytes: libraries, which test modules use, reserve much more than they use."""


def submit_to_tests(
    problem: Problem,
    code: str,
    limits: Limits,
    sandbox: Sandbox,
    *,
    hash_seed: int = 0,
    stop: bool = False,
) -> Future[JobResult]:
    """Start a program on the tests of its problem, behind the problem's preamble.

    Args:
        problem: It has tests.
        code: Any text that can be encoded.
        limits: What it may use.
        sandbox: Where it runs.
        hash_seed: See `Job.hash_seed`; only for cases.
        stop: Whether the first test that fails is the last.

    Returns:
        The results of all tests, or of those up to the first that failed. Those of a test module come last. Or a
        `NoValueError`, where the reference is asked for a value and gives none; a TypeError, where a case is no plain data.
    """
    return sandbox.submit(
        _run_tests, problem, code, limits, sandbox, hash_seed=hash_seed, stop=stop
    )


def _run_tests(
    problem: Problem, code: str, limits: Limits, sandbox: Sandbox, *, hash_seed: int, stop: bool
) -> JobResult:
    code = put_before(problem.preamble, code)
    if problem.kind == "program":
        limits = _with_room_to_print(problem, limits)
    result = JobResult(_LOADED, ())
    if problem.cases or not problem.test_module:
        known = encoded(problem, sandbox)
        if problem.checker:
            result = _run_checked(problem, code, known, limits, sandbox, hash_seed, stop)
        else:
            result = sandbox.judge_cases(
                code, problem.entry_point, known, comparison=comparison_of(problem),
                limits=limits, hash_seed=hash_seed, stop=stop,
            )  # fmt: skip
    if problem.test_module and (passes(result) or not stop):
        tests = (*result.tests, *run_module(problem, code, limits, sandbox))
        result = dataclasses.replace(result, tests=tests)
    return result


def comparison_of(problem: Problem) -> Comparison:
    """Return how the cases of a problem are compared."""
    if problem.kind == "program":
        return Comparison(problem.compare, problem.atol, 0.0)
    return Comparison(problem.compare, problem.atol or default_atol(problem.compare))


def checker_of(problem: Problem) -> str:
    """Return the text of a checker that takes the arguments of a case: one of programs takes the text that they read."""
    return problem.checker + (_OF_INPUTS if problem.checker and problem.kind == "program" else "")


_OF_INPUTS = """

def check(args, output, expected, _of_input=check):
    return _of_input(args[0], output, expected)
"""


def checker_fault(problem: Problem, sandbox: Sandbox, *, accepting: bool = False) -> str:
    """Say what is wrong with the checker of a problem, by its golden tests; "" for nothing, or where there is none.

    Args:
        problem: Of its tests those of unknown values are left out.
        sandbox: Where the checker runs.
        accepting: Whether one that finds no expected output right is wrong, too. In the game it is: what is expected there is the
            reference's own output.
    """
    known = [(n, case) for n, case in enumerate(problem.cases, 1) if case.expected is not UNKNOWN]
    if not (problem.checker and known):
        return ""
    look = look_at(checker_of(problem), [(case.args, case.expected) for _, case in known], sandbox)
    if look.hangs is not None:
        return f"no answer on test {known[look.hangs][0]}"
    return (
        "" if look.accepts or not accepting else f"True for none of {len(known)} expected outputs"
    )


_ROOM = 1 << 16
"""Bytes that a program may print beyond twice what is expected."""


def _with_room_to_print(problem: Problem, limits: Limits) -> Limits:
    printed = [case.expected for case in problem.cases if isinstance(case.expected, str)]
    longest = max((len(text.encode()) for text in printed), default=0)
    return dataclasses.replace(limits, output=max(limits.output, 2 * longest + _ROOM))


def passes(result: JobResult) -> bool:
    """Whether a program loads and passes all tests that were run."""
    return result.load.passed and all(test.passed for test in result.tests)


def is_unjudged(result: JobResult) -> bool:
    """Whether the sandbox failed at a program, or at a test of it."""
    return Outcome.UNJUDGED in (result.load.outcome, *(test.outcome for test in result.tests))


def seconds_of(result: JobResult) -> float:
    """Seconds of CPU time of loading and all tests."""
    return result.cpu_time or result.load.cpu_time + sum(test.cpu_time for test in result.tests)


def limits_beside(reference: JobResult, least: float = MIN_SECONDS) -> Limits:
    """Limits of another program on the same tests: at least so many seconds, or four times what the reference took."""
    took = seconds_of(reference)
    # In steps, so that a little more or less time changes nothing.
    seconds = max(least, math.ceil(_FACTOR * took / _STEP) * _STEP)
    wall = _WALL_FACTOR * seconds
    return Limits(seconds, wall, seconds, wall, calls_per_test=1)


def _run_checked(
    problem: Problem,
    code: str,
    known: EncodedCases,
    limits: Limits,
    sandbox: Sandbox,
    hash_seed: int,
    stop: bool,
) -> JobResult:
    calls = [(case.args, dict(case.kwargs)) for case in problem.cases]
    last = (lambda value: False) if stop else None
    answers = sandbox.call(
        code, problem.entry_point, calls, limits=limits, hash_seed=hash_seed, stop=last
    )
    right = [
        (case.args, value, value)
        for case, value in zip(problem.cases, expected_values(problem, known), strict=True)
    ]
    questions = [
        (args, each.value, value)
        for (args, _, value), each in zip(right, answers, strict=False)
        if each.outcome is Outcome.PASS
    ]
    said = iter(Checker(checker_of(problem), sandbox, right).ask(questions, stop=stop))
    tests: list[TestResult] = []
    for each in answers:
        if each.outcome is not Outcome.PASS:
            tests.append(TestResult(each.outcome, cpu_time=each.cpu_time, **each.cause))
        elif (verdict := next(said, None)) is not None:
            tests.append(dataclasses.replace(verdict, cpu_time=each.cpu_time))
        else:
            break
    return JobResult(_LOADED, tuple(tests))


def run_module(
    problem: Problem, code: str, limits: Limits, sandbox: Sandbox
) -> Sequence[TestResult]:
    """Run the test module of a problem with a program; every result is judged inside. Without pytest one says so."""
    if not has_pytest():
        return [NEEDS_PYTEST]
    limits = dataclasses.replace(limits, memory=_MEMORY)
    return list(sandbox.run_test_module(code, problem.test_module, limits=limits))


def too_large(problem: Problem) -> str:
    """Why a problem's inputs cannot be given to a program; "" if they can."""
    for number, case in enumerate(problem.cases if problem.kind == "program" else (), 1):
        size = len(case.args[0].encode())
        if size > MAX_INPUT:
            return f"the input of test {number} has {size:,} bytes, and a program can read {MAX_INPUT:,}"
    return ""
