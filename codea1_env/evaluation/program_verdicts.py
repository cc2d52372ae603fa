"""Judges whole programs on whole problems: right, or wrong and why. And programs on tests as these are written."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.compare import CheckerFault
from codea1_env.evaluation.task import ProblemFault, Stored
from codea1_env.oracle import gather
from codea1_env.problem_sets import judging
from codea1_env.problem_sets.expected import NoValueError, ask_reference, unknown_cases
from codea1_env.problems import Problem
from codea1_env.responses import Test, yielding
from codea1_env.sandbox import (
    RETURNED,
    Comparison,
    EncodedCases,
    JobResult,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)
from codea1_env.sandbox.packages import locate
from codea1_env.sandbox.results import Judged
from codea1_env.subjects import Subject

MIN_TIME_LIMIT = 2.0
"""Seconds of CPU time that every program may take for loading and all tests of its problem together."""
TIME_LIMIT_FACTOR = 4.0
"""Where the reference needs long, a program may take so many times as long."""
TIME_LIMIT_WITHOUT_REFERENCE = 6.0
"""Seconds of CPU time for each test where there is no reference to compare with: LiveCodeBench's limit."""
_WALL_FACTOR = 3.0
"""Wall-clock limit over CPU limit: a busy machine must not decide."""
_REFERENCE_SECONDS = 60.0
_EXCLUDED = "excluded"
"""Outcome of programs for a problem that cannot be used."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@dataclass(frozen=True)
class ReferenceRun(ProblemFault):
    """How the reference did on the problem's own tests, and what follows for other programs."""

    time_limit: float
    """Seconds of CPU time for a program: for all tests together, or for each where they are inputs to read or
    where there is no reference."""


@dataclass(frozen=True)
class CodeVerdict(Stored):
    """What came of one program."""

    outcome: str
    """Value of the `Outcome` of the first test that it did not pass, "pass", or "excluded"."""
    message: str
    base: bool | None = None
    """Whether it passes the base tests; None where the data does not tell them from the others."""
    judged: Judged = "outside"
    """Whether all of it was judged outside of the program's process; "inside": a hostile program can forge it."""

    @property
    def passed(self) -> bool:
        """Whether it passes all tests."""
        return self.outcome == Outcome.PASS.value

    def row(self) -> dict[str, Any]:
        """As a row of a file, without `base` where it is None."""
        base = {} if self.base is None else {"base": self.base}
        return {"outcome": self.outcome, **base, "message": self.message, "judged": self.judged}


def run_reference(problem: Problem, sandbox: Sandbox) -> ReferenceRun:
    """Run the reference on its own tests, with generous limits."""
    fault = missing_packages(problem, sandbox) or judging.too_large(problem)
    if not problem.number_of_tests:
        fault = "it has no tests"
    if fault:
        return ReferenceRun(problem.task_id, fault, MIN_TIME_LIMIT)
    if not problem.reference.strip():
        return ReferenceRun(problem.task_id, "", TIME_LIMIT_WITHOUT_REFERENCE)
    limits = _limits(_REFERENCE_SECONDS)
    asks = len(unknown_cases(problem)) == len(problem.cases) and not problem.checker
    try:
        if asks and problem.cases and not problem.test_module:  # its answers are the expected ones
            seconds = ask_reference(problem, sandbox).seconds
            return ReferenceRun(problem.task_id, "", _time_limit(seconds))
        submitted = judging.submit_to_tests(problem, problem.reference, limits, sandbox, stop=True)
        result = submitted.result()
    except NoValueError as error:
        return ReferenceRun(problem.task_id, str(error), MIN_TIME_LIMIT, unjudged=error.unjudged)
    except TypeError as error:  # a case that is no plain data
        return ReferenceRun(problem.task_id, str(error), MIN_TIME_LIMIT)
    each = max((test.cpu_time for test in result.tests), default=0.0)
    seconds = each if problem.kind == "program" else judging.seconds_of(result)
    limit = _time_limit(seconds)
    if judging.passes(result):
        return ReferenceRun(problem.task_id, "", limit)
    verdict = _verdict(problem, result)
    fault = f"its own reference fails: {verdict.outcome}, {verdict.message}"
    if any(isinstance(test, CheckerFault) for test in result.tests):
        fault = f"its checker is wrong: {verdict.message}"
    return ReferenceRun(problem.task_id, fault, limit, unjudged=judging.is_unjudged(result))


def _time_limit(seconds: float) -> float:
    return max(MIN_TIME_LIMIT, math.ceil(TIME_LIMIT_FACTOR * seconds))


def judge_program(
    problem: Problem, code: str, reference: ReferenceRun, sandbox: Sandbox
) -> CodeVerdict:
    """Judge a program."""
    if reference.fault:
        return _failed(problem, _EXCLUDED, reference.fault)
    if problem.reference and code == problem.reference:  # it is known to pass
        judged: Judged = "inside" if problem.test_module else "outside"
        return CodeVerdict(Outcome.PASS.value, "", True if problem.base else None, judged)
    unusable = unusable_text(code)
    if unusable is not None:
        return _failed(problem, Outcome.SYNTAX_ERROR.value, unusable)
    limits = _limits(reference.time_limit)
    if problem.kind == "program" or not problem.reference.strip():  # the limit is that of each case
        limits = limits.with_room_for(len(problem.cases))
    return _verdict(
        problem, judging.submit_to_tests(problem, code, limits, sandbox, stop=True).result()
    )


def _verdict(problem: Problem, result: JobResult) -> CodeVerdict:
    if result.load.outcome is not Outcome.PASS:
        return _failed(problem, result.load.outcome.value, _steady(result.load.message))
    passed = [test.passed for test in result.tests]
    number = passed.index(False) if False in passed else len(passed)
    base = number >= problem.base if problem.base else None
    inside = any(test.judged == "inside" for test in result.tests)
    judged: Judged = "inside" if inside else "outside"
    if all(passed):
        return CodeVerdict(Outcome.PASS.value, "", base, judged)
    test, count = result.tests[number], problem.number_of_tests
    place = f"test {number + 1} of {count}: " if count > 1 and test.judged == "outside" else ""
    return CodeVerdict(test.outcome.value, place + _steady(test.message), base, judged)


def _failed(problem: Problem, outcome: str, message: str) -> CodeVerdict:
    return CodeVerdict(outcome, message, False if problem.base else None)


def _steady(message: str) -> str:
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


def missing_packages(problem: Problem, sandbox: Sandbox) -> str:
    """Why a problem cannot be judged in a sandbox for want of packages; "" if it can."""
    there = {*sys.stdlib_module_names, *sandbox.packages}
    missing = [name for name in problem.metadata.get("packages", "").split() if name not in there]
    if not missing:
        return ""
    installed = locate(missing)
    absent = [name for name in missing if name not in installed]
    needed, remedy = ", ".join(missing), f"add --packages {' '.join(missing)}"
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        return f"needs {needed}; {', '.join(absent)} {verb} not installed: install, and {remedy}"
    return f"needs {needed}, which programs may not use here: {remedy}"


def run_as_written(
    programs: Sequence[str],
    tests: Sequence[Test],
    problem: Problem,
    limits: Limits,
    sandbox: Sandbox,
) -> list[list[TestResult]]:
    """Run the same tests on many programs. A program passes one if it returns what the test predicts: no reference is asked.

    Returns a row of results for each program.
    """
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
    own = judging.comparison_of(problem)
    return own._replace(
        atol=max(own.atol, test.absolute or 0.0), rtol=max(own.rtol, test.relative or 0.0)
    )
