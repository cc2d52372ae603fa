"""Judges whole programs on whole problems: right, or wrong and why."""

from __future__ import annotations

import math
import re
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from codea1_env.problems import Problem
from codea1_env.sandbox import Job, JobResult, Limits, Outcome, Sandbox

MIN_TIME_LIMIT = 2.0
"""Seconds of CPU time that every program may take for loading and all tests of its problem together."""
TIME_LIMIT_FACTOR = 4.0
"""Where the reference needs long, a program may take so many times as long."""
_WALL_FACTOR = 3.0
"""Wall-clock limit over CPU limit: a busy machine must not decide."""
_REFERENCE_SECONDS = 60.0
EXCLUDED = "excluded"
"""Outcome of programs for a problem that cannot be used."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass(frozen=True)
class ReferenceRun:
    """How the reference did on the problem's own tests, and what follows for other programs."""

    task_id: str
    fault: str
    """Why the problem cannot be used; empty if it can."""
    time_limit: float
    """Seconds of CPU time for a program."""

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


def has_base(problem: Problem) -> bool:
    """Whether the problem has tests of the original data set, and a larger test program beside them."""
    return bool(problem.tests) and problem.test_program is not None


def submit_reference(problem: Problem, sandbox: Sandbox) -> Future[JobResult]:
    """Start the reference on its own tests, with generous limits."""
    job = Job(
        problem.reference, problem.all_tests, problem.entry_point, _limits(_REFERENCE_SECONDS)
    )
    return sandbox.submit(job)


def reference_run(problem: Problem, result: JobResult) -> ReferenceRun:
    """Read what became of a reference."""
    seconds = result.load.cpu_time + sum(test.cpu_time for test in result.tests)
    limit = max(MIN_TIME_LIMIT, math.ceil(TIME_LIMIT_FACTOR * seconds))
    if not problem.all_tests:
        return ReferenceRun(problem.task_id, "it has no tests", limit)
    verdict = _verdict(problem, result)
    if verdict.passed:
        return ReferenceRun(problem.task_id, "", limit)
    fault = f"its own reference fails: {verdict.outcome}, {verdict.message}"
    return ReferenceRun(problem.task_id, fault, limit)


class Pending:
    """A program that is being judged."""

    def __init__(self, problem: Problem, job: Future[JobResult] | CodeVerdict) -> None:
        self._problem = problem
        self._job = job

    def result(self) -> CodeVerdict:
        """Wait for the verdict.

        Raises:
            CancelledError: It was cancelled.
            InfraError: The sandbox failed three times.
        """
        if isinstance(self._job, Future):
            self._job = _verdict(self._problem, self._job.result())
        return self._job

    def cancel(self) -> None:
        """Do not begin to judge it."""
        job = self._job  # another thread may put the verdict in its place
        if isinstance(job, Future):
            job.cancel()


def submit_program(problem: Problem, code: str, time_limit: float, sandbox: Sandbox) -> Pending:
    """Start judging a program.

    Args:
        problem: What it should solve.
        code: Any text.
        time_limit: Seconds of CPU time, see `ReferenceRun`.
        sandbox: Where it runs.
    """
    unusable = _unusable(code)
    if unusable is not None:
        return Pending(problem, _failed(problem, Outcome.SYNTAX_ERROR.value, unusable))
    job = Job(code, problem.all_tests, problem.entry_point, _limits(time_limit))
    return Pending(problem, sandbox.submit(job))


def accept(problem: Problem) -> Pending:
    """The verdict on the reference itself, which is known to pass."""
    return Pending(
        problem, CodeVerdict(Outcome.PASS.value, "", base=True if has_base(problem) else None)
    )


def exclude(problem: Problem, fault: str) -> Pending:
    """The verdict on a program for a problem that cannot be used."""
    return Pending(problem, _failed(problem, EXCLUDED, fault))


def _verdict(problem: Problem, result: JobResult) -> CodeVerdict:
    if result.load.outcome is not Outcome.PASS:
        return _failed(problem, result.load.outcome.value, _steady(result.load.message))
    passed = [test.passed for test in result.tests]
    base = all(passed[: len(problem.tests)]) if has_base(problem) else None
    if all(passed):
        return CodeVerdict(Outcome.PASS.value, "", base)
    number = passed.index(False)
    test = result.tests[number]
    place = f"test {number + 1} of {len(passed)}: " if len(passed) > 1 else ""
    return CodeVerdict(test.outcome.value, place + _steady(test.message), base)


def _failed(problem: Problem, outcome: str, message: str) -> CodeVerdict:
    return CodeVerdict(outcome, message, False if has_base(problem) else None)


def _steady(message: str) -> str:
    """A message without addresses, which differ from run to run."""
    return _ADDRESS.sub("0x...", message)


def _unusable(code: str) -> str | None:
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
    )
