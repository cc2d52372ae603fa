"""What a reference says of tests: which are right, and why others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from codea1_env.evaluation.suites.running import run_once
from codea1_env.evaluation.suites.samples import StatedCase, SuiteTest
from codea1_env.judging.comparison import Returned
from codea1_env.oracle import NON_DETERMINISTIC, Oracle, Subject, Truth, explained
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import AnalysisError, Sandbox, TestResult, equal
from codea1_env.sandbox.compare import FLOAT_ATOL, short

REFERENCE_SHARE = 0.25
"""A right test takes at most this share of a program's time on the reference."""
# Programs that do nothing of what was asked; a test that passes on both tests nothing.
_RAISES = (
    "{}\n\nclass _Null(Exception): pass\n\ndef _null(*args, **kwargs): raise _Null\n\n{} = _null\n"
)
_RETURNS = "{}\n\ndef _null(*args, **kwargs): return object()\n\n{} = _null\n"


class Ruling(NamedTuple):
    """What the reference says of a test."""

    fault: InvalidReason | None = None
    """Why it is not right; None if it is."""
    reason: str = ""
    missing_module: str | None = None
    """The module that it imports and that is not there."""


RIGHT = Ruling()


class TestRuler:
    """Rules on tests by asking the references of their problems. Safe to use from several threads.

    Args:
        sandbox: Where references run.
    """

    __test__ = False  # pytest would collect a class of this name

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._limits = replace(sandbox.limits.times(REFERENCE_SHARE), calls_per_test=1)
        self._oracle = Oracle(sandbox, self._limits)

    def rule(self, problem: Problem, tests: Sequence[SuiteTest]) -> list[Ruling]:
        """Rule on tests of a problem.

        Raises:
            codea1_env.oracle.BrokenReferenceError: The reference does not run.
            InfraError: The sandbox failed.
        """
        subject = Subject.of(problem)._replace(code=problem.reference)
        # A suite each: what one costs is not taken from another.
        asked = [[case.call] for test in tests for case in test.cases]
        truths = self._oracle.ask({subject: asked})[subject] if asked else {}
        inside = iter(self._run(problem, [test for test in tests if test.judged == "inside"]))
        return [
            next(inside)
            if test.judged == "inside"
            else next(
                (each for case in test.cases if (each := _ruled(case, truths)).fault),
                Ruling(test.fault, test.reason),
            )
            for test in tests
        ]

    def _run(self, problem: Problem, tests: Sequence[SuiteTest]) -> list[Ruling]:
        """Run texts on the reference twice, and on programs that do nothing."""
        name, code = problem.entry_point, problem.reference
        first, second = (self._trial(code, tests, name) for _ in range(2))
        found = []
        for one, other in zip(first, second, strict=True):
            if one.vacuous:
                found.append(Ruling(InvalidReason.NEVER_CALLS, f"never calls {name}"))
            elif not one.passed:
                reason, fault = explained(one, f"ends with {one.outcome.value} on the reference")
                found.append(Ruling(fault, reason, one.missing_module))
            elif not other.passed:
                found.append(Ruling(InvalidReason.NON_DETERMINISTIC, NON_DETERMINISTIC))
            else:
                found.append(RIGHT)
        left = [number for number, ruling in enumerate(found) if ruling.fault is None]
        for program in (_RAISES, _RETURNS):
            null = program.format(code, name)
            results = self._trial(null, [tests[number] for number in left], name)
            left = [number for number, each in zip(left, results, strict=True) if each.passed]
        for number in left:
            found[number] = Ruling(InvalidReason.TESTS_NOTHING, f"passes whatever {name} does")
        return found

    def _trial(self, code: str, tests: Sequence[SuiteTest], name: str) -> Sequence[TestResult]:
        limits = self._limits.with_room_for(tests=len(tests))
        return run_once(code, tests, name, limits, self._sandbox).tests


def _ruled(case: StatedCase, truths: Mapping[str, Truth]) -> Ruling:
    truth = truths[case.call.call_text]
    if truth.reason:
        return Ruling(truth.fault, truth.reason)
    value = truth.read
    assert isinstance(value, Returned)
    if equal(value.value, case.value, case.absolute or FLOAT_ATOL):
        return RIGHT
    return Ruling(
        InvalidReason.WRONG_VALUE,
        f"predicts {short(case.value)}, the reference returns {short(value.value)}",
    )


def reference_fault(problem: Problem, sandbox: Sandbox, parse: Callable[[], object]) -> str:
    """Why tests of a problem cannot be judged by its reference; "" if they can.

    Args:
        problem: The problem.
        sandbox: Where the reference runs.
        parse: Raises an `AnalysisError` if the reference cannot be parsed.

    Raises:
        InfraError: The sandbox failed.
    """
    if not problem.playable:
        return "it has no reference whose function tests can call"
    load = sandbox.submit_encoded(problem.reference, problem.entry_point, []).result().load
    if not load.passed:
        return f"its reference does not run: {load.outcome.value}, {load.message}"
    try:
        parse()
    except AnalysisError as error:
        return f"its reference cannot be parsed: {error}"
    return ""
