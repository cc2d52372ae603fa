"""Judges whole programs on whole problems: right, or wrong and why."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from codea1_env.evaluation.programs.needed_packages import missing_packages
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problem_sets.stdin_tests import too_large
from codea1_env.problems import Problem
from codea1_env.sandbox import JobResult, Limits, Outcome, Sandbox

MIN_TIME_LIMIT = 2.0
"""Seconds of CPU time that every program may take for loading and all tests of its problem together."""
TIME_LIMIT_FACTOR = 4.0
"""Where the reference needs long, a program may take so many times as long."""
TIME_LIMIT_WITHOUT_REFERENCE = 6.0
"""Seconds of CPU time for each test where there is no reference to compare with: LiveCodeBench's limit."""
_WALL_FACTOR = 3.0
"""Wall-clock limit over CPU limit: a busy machine must not decide."""
_REFERENCE_SECONDS = 60.0
EXCLUDED = "excluded"
"""Outcome of programs for a problem that cannot be used."""
_T = TypeVar("_T")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass(frozen=True)
class ReferenceRun:
    """How the reference did on the problem's own tests, and what follows for other programs."""

    task_id: str
    fault: str
    """Why the problem cannot be used; empty if it can."""
    time_limit: float
    """Seconds of CPU time for a program: for all tests together, or for each where they are inputs to read or
    where there is no reference."""

    def row(self) -> dict[str, Any]:
        """As a row of a file."""
        return asdict(self)


@dataclass(frozen=True)
class CodeVerdict:
    """What came of one program."""

    outcome: str
    """Value of the `Outcome` of the first test that it did not pass, "pass", or "excluded"."""
    message: str
    base: bool | None
    """Whether it passes the base tests; None where the data does not tell them from the others."""

    @property
    def passed(self) -> bool:
        """Whether it passes all tests."""
        return self.outcome == Outcome.PASS.value


class PendingVerdict(Generic[_T]):
    """Something that is being judged.

    Args:
        job: What the sandbox is at.
        read: Says what its result means.
    """

    def __init__(self, job: Future[Any], read: Callable[[Any], _T]) -> None:
        self._job = job
        self._read = read

    def result(self, timeout: float | None = None) -> _T:
        """Wait for it.

        Raises:
            CancelledError: It was cancelled.
            TimeoutError: It takes longer than this many seconds.
            InfraError: The sandbox failed three times.
        """
        return self._read(self._job.result(timeout))

    def cancel(self) -> None:
        """Do not begin to judge it."""
        self._job.cancel()


def has_base(problem: Problem) -> bool:
    """Whether the problem has tests of the original data set, and a larger test program beside them."""
    return bool(problem.tests) and problem.test_program is not None


def submit_reference(problem: Problem, sandbox: Sandbox) -> PendingVerdict[ReferenceRun]:
    """Start the reference on its own tests, with generous limits."""
    fault = missing_packages(problem, sandbox) or too_large(problem.stdin_tests)
    if not (problem.all_tests or problem.stdin_tests):
        fault = "it has no tests"
    if fault:
        return _known(ReferenceRun(problem.task_id, fault, MIN_TIME_LIMIT))
    if not problem.reference.strip():
        return _known(ReferenceRun(problem.task_id, "", TIME_LIMIT_WITHOUT_REFERENCE))
    job = submit_to_tests(problem, problem.reference, _limits(_REFERENCE_SECONDS), sandbox)
    return PendingVerdict(job, lambda result: _reference_run(problem, result))


def submit_program(
    problem: Problem, code: str, time_limit: float, sandbox: Sandbox
) -> PendingVerdict[CodeVerdict]:
    """Start judging a program.

    Args:
        problem: What it should solve.
        code: Any text.
        time_limit: Seconds of CPU time, see `ReferenceRun`.
        sandbox: Where it runs.
    """
    unusable = unusable_text(code)
    if unusable is not None:
        return _known(_failed(problem, Outcome.SYNTAX_ERROR.value, unusable))
    job = submit_to_tests(problem, code, _limits(time_limit), sandbox)
    return PendingVerdict(job, lambda result: _verdict(problem, result))


def accept(problem: Problem) -> PendingVerdict[CodeVerdict]:
    """The verdict on the reference itself, which is known to pass."""
    base = True if has_base(problem) else None
    return _known(CodeVerdict(Outcome.PASS.value, "", base))


def exclude(problem: Problem, fault: str) -> PendingVerdict[CodeVerdict]:
    """The verdict on a program for a problem that cannot be used."""
    return _known(_failed(problem, EXCLUDED, fault))


def _known(value: _T) -> PendingVerdict[_T]:
    done: Future[_T] = Future()
    done.set_result(value)
    return PendingVerdict(done, lambda result: result)


def _verdict(problem: Problem, result: JobResult) -> CodeVerdict:
    if result.load.outcome is not Outcome.PASS:
        return _failed(problem, result.load.outcome.value, _steady(result.load.message))
    passed = [test.passed for test in result.tests]
    base = all(passed[: len(problem.tests)]) if has_base(problem) else None
    if all(passed):
        return CodeVerdict(Outcome.PASS.value, "", base)
    number = passed.index(False)
    test, count = result.tests[number], len(problem.all_tests) + len(problem.stdin_tests)
    place = f"test {number + 1} of {count}: " if count > 1 else ""
    return CodeVerdict(test.outcome.value, place + _steady(test.message), base)


def _reference_run(problem: Problem, result: JobResult) -> ReferenceRun:
    times = [test.cpu_time for test in result.tests]
    seconds = max(times) if problem.stdin_tests else result.load.cpu_time + sum(times)
    limit = max(MIN_TIME_LIMIT, math.ceil(TIME_LIMIT_FACTOR * seconds))
    verdict = _verdict(problem, result)
    if verdict.passed:
        return ReferenceRun(problem.task_id, "", limit)
    fault = f"its own reference fails: {verdict.outcome}, {verdict.message}"
    return ReferenceRun(problem.task_id, fault, limit)


def _failed(problem: Problem, outcome: str, message: str) -> CodeVerdict:
    return CodeVerdict(outcome, message, False if has_base(problem) else None)


def _steady(message: str) -> str:
    """A message without addresses, which differ from run to run."""
    return _ADDRESS.sub("0x...", message)


def unusable_text(code: str) -> str | None:
    """Why a text cannot be handed to Python at all."""
    if "\0" in code:
        return "the program has a null byte"
    try:
        code.encode()
    except UnicodeEncodeError as error:
        return f"the program has a lone surrogate (U+{ord(code[error.start]):04X})"
    return None


def _limits(seconds: float) -> Limits:
    return Limits(
        call_cpu_time=seconds,
        call_wall_time=_WALL_FACTOR * seconds,
        run_cpu_time=seconds,
        run_wall_time=_WALL_FACTOR * seconds,
        calls_per_test=1,
    )
