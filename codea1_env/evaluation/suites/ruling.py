"""Runs tests on programs, and what a reference says of them: which are right, and why others are not.

Cases are compared outside of the programs' processes, any other text runs inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from codea1_env.compare import Returned
from codea1_env.evaluation.suites.samples import StatedCase, SuiteTest
from codea1_env.evaluation.task import ProblemFault
from codea1_env.mutation.kills import Part, had_no_time, until_settled
from codea1_env.oracle import NON_DETERMINISTIC, Oracle, Subject, Truth, explained, gather
from codea1_env.problem_sets.judging import seconds_of
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import (
    AnalysisError,
    Comparison,
    EncodedCases,
    InfraError,
    Job,
    JobResult,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
    equal,
    expected_frame,
)
from codea1_env.sandbox.compare import FLOAT_ATOL, short
from codea1_env.sandbox.results import Judged


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
        future = sandbox.submit(
            sandbox.judge_cases, program, entry_point, cases, comparison=comparison, limits=limits
        )
        shares.append(_Share([place for place, _ in some], future))
    inside = [(place, test.text) for place, test in enumerate(tests) if not test.cases]
    if inside:
        job = Job(program, tuple(text for _, text in inside), entry_point, limits)
        shares.append(_Share([place for place, _ in inside], sandbox.submit(sandbox.judge, job)))
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


_FAILS = frozenset([
    InvalidReason.UNPARSABLE, InvalidReason.WRONG_VALUE, InvalidReason.RAISES, InvalidReason.NOT_INSTALLED,
    InvalidReason.TIMEOUT, InvalidReason.LIMIT, InvalidReason.UNENCODABLE,
])  # fmt: skip
"""Faults of tests that the reference does not pass. The others say nothing about programs, right or wrong."""
REFERENCE_SHARE = 0.25
"""A right test takes at most this share of a program's time on the reference."""
# Programs that do nothing of what was asked; a test that passes on both tests nothing.
_RAISES = (
    "{}\n\nclass _Null(Exception): pass\n\ndef _null(*args, **kwargs): raise _Null\n\n{} = _null\n"
)
_RETURNS = "{}\n\ndef _null(*args, **kwargs): return object()\n\n{} = _null\n"


@dataclass(frozen=True)
class JudgedTest:
    """One test of a suite."""

    text: str
    fault: str = ""
    """Value of a `InvalidReason`; empty if the test is right."""
    reason: str = ""
    repeats: bool = False
    """Whether it says the same as an earlier right test of the suite. It counts all the same."""
    missing_module: str | None = None
    """The module that it imports and that is not there."""
    judged: Judged = "outside"
    """"inside" if it ran in the process of the programs, where a hostile test or program can forge what comes of it."""

    @property
    def fails(self) -> bool:
        """Whether the reference does not pass it. Of tests that are not right, the others say nothing."""
        return bool(self.fault) and InvalidReason(self.fault) in _FAILS


_Found = tuple[InvalidReason | None, str, str | None]
"""What the reference says of a test: the fault and its reason, and a module that it misses."""
_RIGHT: _Found = (None, "", None)


class TestRuler:
    """Rules on tests by asking the references of their problems. Safe to use from several threads."""

    __test__ = False  # pytest would collect a class of this name

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._limits = replace(sandbox.limits.times(REFERENCE_SHARE), calls_per_test=1)
        self._oracle = Oracle(sandbox, self._limits)

    def rule(self, problem: Problem, tests: Sequence[SuiteTest]) -> tuple[JudgedTest, ...]:
        """Rule on the tests of a suite."""
        subject = Subject.of(problem)._replace(code=problem.reference)
        # A suite each: what one costs is not taken from another.
        asked = [[case.call] for test in tests for case in test.cases]
        truths = self._oracle.ask({subject: asked})[subject] if asked else {}
        inside = iter(self._run(problem, [test for test in tests if test.judged == "inside"]))
        judged: list[JudgedTest] = []
        right: set[str] = set()
        for test in tests:
            found: _Found = (test.fault, test.reason, None)
            if test.judged == "inside":
                found = next(inside)
            elif test.cases:
                said = (_ruled(case, truths[case.call.call_text]) for case in test.cases)
                found = next((each for each in said if each[0]), _RIGHT)
            fault, reason, module = found
            repeats = fault is None and test.same_as in right
            right |= {test.same_as} if fault is None else set()
            name = "" if fault is None else fault.value
            judged.append(JudgedTest(test.text, name, reason, repeats, module, test.judged))
        return tuple(judged)

    def _run(self, problem: Problem, tests: Sequence[SuiteTest]) -> list[_Found]:
        """Run texts on the reference twice, and on programs that do nothing."""
        name, code = problem.entry_point, problem.reference
        first, second = (self._trial(code, tests, name) for _ in range(2))
        found: list[_Found] = []
        for one, other in zip(first, second, strict=True):
            if one.vacuous:
                found.append((InvalidReason.NEVER_CALLS, f"never calls {name}", None))
            elif not one.passed:
                reason, fault = explained(one, f"ends with {one.outcome.value} on the reference")
                found.append((fault, reason, one.missing_module))
            elif not other.passed:
                found.append((InvalidReason.NON_DETERMINISTIC, NON_DETERMINISTIC, None))
            else:
                found.append(_RIGHT)
        left = [number for number, each in enumerate(found) if each is _RIGHT]
        for program in (_RAISES, _RETURNS):
            null = program.format(code, name)
            results = self._trial(null, [tests[number] for number in left], name)
            left = [number for number, each in zip(left, results, strict=True) if each.passed]
        for number in left:
            found[number] = (InvalidReason.TESTS_NOTHING, f"passes whatever {name} does", None)
        return found

    def _trial(self, code: str, tests: Sequence[SuiteTest], name: str) -> Sequence[TestResult]:
        limits = self._limits.with_room_for(tests=len(tests))
        return run_once(code, tests, name, limits, self._sandbox).tests


def _ruled(case: StatedCase, truth: Truth) -> _Found:
    if truth.reason:
        return truth.fault, truth.reason, None
    value = truth.read
    assert isinstance(value, Returned)
    if equal(value.value, case.value, case.absolute or FLOAT_ATOL):
        return _RIGHT
    reason = f"predicts {short(case.value)}, the reference returns {short(value.value)}"
    return InvalidReason.WRONG_VALUE, reason, None


def reference_fault(
    problem: Problem, sandbox: Sandbox, parse: Callable[[], object]
) -> ProblemFault:
    """Return why tests of a problem cannot be judged by its reference."""
    fault = partial(ProblemFault, problem.task_id)
    if not problem.playable:
        return fault("it has no reference whose function tests can call")
    load = sandbox.run_calls(problem.reference, problem.entry_point, []).load
    if not load.passed:
        said = f"its reference does not run: {load.outcome.value}, {load.message}"
        return fault(said, unjudged=load.outcome is Outcome.UNJUDGED)
    try:
        parse()
    except AnalysisError as error:
        return fault(f"its reference cannot be parsed: {error}")
    return fault("")
