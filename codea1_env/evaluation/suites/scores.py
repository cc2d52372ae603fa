"""Scores suites of tests: the referee says which tests are right, and which mutants the right ones kill.

On the reference each test is a suite of its own, so that none depends on another. Wrong tests are tried on wrong programs
as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

from codea1_env.evaluation.program_verdicts import (
    MIN_TIME_LIMIT,
    run_as_written,
    unusable_text,
)
from codea1_env.evaluation.samples import SuiteSample
from codea1_env.evaluation.suites.reading import MAX_CALLS, ReadSuite, read_suite
from codea1_env.evaluation.task import ProblemFault, Stored
from codea1_env.judging.verdicts import GAME_LIMITS
from codea1_env.mutation import generate_mutants
from codea1_env.oracle import BrokenReferenceError, gather
from codea1_env.problem_sets.expected import NoValueError
from codea1_env.problem_sets.judging import (
    MIN_SECONDS,
    is_unjudged,
    limits_beside,
    passes,
    submit_to_tests,
)
from codea1_env.problems import Problem
from codea1_env.reading.examples import RUN
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig, Round, SuiteVerdict, TestVerdict
from codea1_env.responses import Suite, whole_program
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import AnalysisError, Limits, Outcome, Sandbox

_FIELDS = ("text", "status", "fault", "reason")
_FAULTS = {fault.value: fault for fault in InvalidReason}
_FAILS = frozenset([
    InvalidReason.UNPARSABLE, InvalidReason.UNREADABLE, InvalidReason.WRONG_VALUE, InvalidReason.RAISES,
    InvalidReason.NOT_INSTALLED, InvalidReason.TIMEOUT, InvalidReason.LIMIT, InvalidReason.UNENCODABLE,
    InvalidReason.NO_LITERAL,
])  # fmt: skip
"""Faults of tests that count as wrong. Tests with another one say nothing about programs, right or wrong."""
_NOT_TRIED = (
    InvalidReason.UNPARSABLE, InvalidReason.UNREADABLE, InvalidReason.TIMEOUT, InvalidReason.LIMIT,
)  # fmt: skip
"""Faults of wrong tests that pass on no program, or would cost too much there."""
MAX_POOL = 20
"""Mutants of a problem that are taken as wrong programs where none are given."""
_PATIENT = Limits(60, 120, 60, 180, calls_per_test=1)
"""What a reference may use on the golden tests of its problem. One that waits, and computes nothing, ends late, too."""
_AS_WRITTEN = replace(GAME_LIMITS, run_cpu_time=3 * GAME_LIMITS.call_cpu_time)
_REMEMBERED = 32


def is_right(test: TestVerdict) -> bool:
    """Whether the reference passes a test. It counts even if it repeats an earlier one."""
    return test.status in ("kept", "duplicate")


def kind_of(test: TestVerdict) -> str:
    """Why a test is not right: the value of its `InvalidReason`, or "not made" if nothing is known; "" if it is."""
    return test.fault.value if test.fault else "" if is_right(test) else test.status


def fails(test: TestVerdict) -> bool:
    """Whether a test counts as wrong. One that is neither right nor wrong says nothing."""
    return test.fault in _FAILS


@dataclass(frozen=True)
class ProblemCheck(ProblemFault):
    """Whether tests of a problem can be judged, and by which wrong programs."""

    wrong: tuple[int, ...] | None = None
    """Numbers of the wrong programs among the candidates: those that fail golden tests. None where the problem has
    no golden tests that could say it."""


@dataclass(frozen=True)
class PoolRuns:
    """Runs of tests on wrong programs, and how many of them passed."""

    programs: int = 0
    right_runs: int = 0
    right_passed: int = 0
    wrong_runs: int = 0
    wrong_passed: int = 0


@dataclass(frozen=True)
class SuiteScore(Stored):
    """Score of one suite. It follows from the suite and its problem alone."""

    excluded: str = ""
    """Why the problem cannot be used; empty if it can."""
    tests: tuple[TestVerdict, ...] = ()
    """The tests that count, in the order of the suite, each with its own text."""
    late: int = 0
    empty: str = ""
    """Why an answer has no test; empty if it has some."""
    mutants: int = 0
    killed: tuple[int, ...] = ()
    """For each place of a suite, how many mutants the test there kills that no right test before it kills."""
    pool: PoolRuns = PoolRuns()

    def right(self, k: int) -> int:
        """Right tests among the first k."""
        return sum(map(is_right, self.tests[:k]))

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        tests = [(each.text, each.status, kind_of(each), each.reason) for each in self.tests]
        return super().row() | {"tests": [dict(zip(_FIELDS, each, strict=True)) for each in tests]}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Read what `row` made."""
        found = ([each[name] for name in _FIELDS] for each in row.get("tests", ()))
        tests = tuple(
            TestVerdict(text, status, reason, fault=_FAULTS.get(fault))
            for text, status, fault, reason in found
        )
        pool = PoolRuns(**row.get("pool", {}))
        return super().of({**row, "tests": tests, "pool": pool})


class _ProgramCalls(NamedTuple):
    """Calls of a program, by the text that is the same for equal ones: those that it passed, and those that broke it."""

    passed: set[str]
    broke: set[str]


class SuiteJudge:
    """Judges the first `num_tests` tests of suites. Safe to use from several threads.

    Wrong programs are looked for among `programs` (task -> texts), or among mutants.
    """

    def __init__(
        self, sandbox: Sandbox, num_tests: int, programs: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._sandbox = sandbox
        self._num_tests = num_tests
        self._programs = programs
        self._min_seconds = MIN_SECONDS if programs is None else MIN_TIME_LIMIT
        most = MAX_CALLS * num_tests
        rewards = RewardConfig(num_tests=most)
        config = RefereeConfig(rewards, "drop", limits=GAME_LIMITS, max_suite_tests=most)
        self._referee = Referee(sandbox, config)
        self._mutants = lru_cache(_REMEMBERED)(self._make_mutants)
        self._candidates = lru_cache(_REMEMBERED)(self._make_candidates)

    def check(self, problem: Problem) -> ProblemCheck:
        """Find out whether tests of a problem can be judged, and which programs are wrong."""
        fault, unjudged = self._reference_fault(problem)
        if fault:
            return ProblemCheck(problem.task_id, fault, unjudged=unjudged)
        if not (problem.cases or problem.test_module):
            return ProblemCheck(problem.task_id, "")
        try:
            golden = submit_to_tests(
                problem, problem.reference, _PATIENT, self._sandbox, stop=True
            ).result()
        except NoValueError as error:
            return ProblemCheck(problem.task_id, str(error), unjudged=error.unjudged)
        except TypeError as error:  # a case that is no plain data
            return ProblemCheck(problem.task_id, str(error))
        if late := [each for each in golden.tests if each.outcome is Outcome.TIMEOUT]:
            fault = f"its reference ends late on a golden test: {late[0].message}"
            return ProblemCheck(problem.task_id, fault)
        if not passes(golden):
            return ProblemCheck(problem.task_id, "", unjudged=is_unjudged(golden))
        limits = limits_beside(golden, self._min_seconds)
        jobs = [
            submit_to_tests(problem, each, limits, self._sandbox, stop=True)
            for each in self._candidates(problem)
        ]
        wrong = tuple(i for i, result in enumerate(gather(jobs)) if not passes(result))
        return ProblemCheck(problem.task_id, "", wrong)

    def _reference_fault(self, problem: Problem) -> tuple[str, bool]:
        """Why a reference can judge no tests ("" if it can), and whether that is the sandbox's failure."""
        if not problem.playable:
            return "it has no reference", False
        load = self._sandbox.run_calls(problem.reference, problem.entry_point, []).load
        if not load.passed:
            fault = f"its reference does not run: {load.outcome.value}, {load.message}"
            return fault, load.outcome is Outcome.UNJUDGED
        try:
            self._candidates(problem)
        except AnalysisError as error:
            return f"its reference cannot be parsed: {error}", False
        return "", False

    def judge(self, problem: Problem, check: ProblemCheck, sample: SuiteSample) -> SuiteScore:
        """Judge a suite."""
        if check.fault:
            return SuiteScore(check.fault)
        try:
            mutants = self._mutants(problem.reference)
        except AnalysisError as error:
            return SuiteScore(f"its reference has no mutants: {error}")
        suite = read_suite(sample, problem, self._num_tests, self._sandbox)
        try:
            return self._score(problem, suite, mutants, self._wrong_programs(problem, check))
        except BrokenReferenceError as error:
            return SuiteScore(str(error))

    def _score(
        self, problem: Problem, suite: ReadSuite, mutants: Sequence[str], wrong: Sequence[str]
    ) -> SuiteScore:
        reference, *programs = (
            whole_program(problem, each) for each in (problem.reference, *mutants, *wrong)
        )
        [ruled] = self._referee.judge([Round(problem, reference, suite.tests)])
        tests = _ruled(suite, ruled.suites, problem.entry_point)
        right = [place for place, test in enumerate(tests) if is_right(test)]
        calls = [{call.same_as for call in suite.tests[place].tests} for place in right]
        runs = self._run(problem, programs, [suite.tests[place] for place in right])
        killed = [0] * self._num_tests
        for run in runs[: len(mutants)]:
            first = next(
                (place for place, own in zip(right, calls, strict=True) if own & run.broke), None
            )
            if first is not None:
                killed[first] += 1
        failing = [place for place, test in enumerate(tests) if fails(test)]
        tried = [suite.tests[place] for place in failing if tests[place].fault not in _NOT_TRIED]
        pool = PoolRuns(
            len(wrong),
            right_runs=len(wrong) * len(right),
            right_passed=sum(own <= run.passed for run in runs[len(mutants) :] for own in calls),
            wrong_runs=len(wrong) * len(failing),
            wrong_passed=self._slipped(problem, programs[len(mutants) :], tried),
        )
        return SuiteScore("", tests, suite.late, suite.empty, len(mutants), tuple(killed), pool)

    def _run(
        self, problem: Problem, programs: Sequence[str], right: Sequence[Suite]
    ) -> list[_ProgramCalls]:
        """Run programs on right tests, all of a program in one run: it costs little, however many of them hang."""
        calls = [call for suite in right for call in suite.tests]
        if not calls:
            return [_ProgramCalls(set(), set())] * len(programs)
        rounds = [Round(problem, code, [Suite(tuple(calls))]) for code in programs]
        runs = []
        for verdict in self._referee.judge(rounds):
            pairs = list(zip(calls, verdict.suites[0].tests, strict=True))
            passed = {call.same_as for call, test in pairs if test.passed}
            runs.append(_ProgramCalls(passed, {call.same_as for call, test in pairs if test.broke}))
        return runs

    def _slipped(self, problem: Problem, programs: Sequence[str], suites: Sequence[Suite]) -> int:
        """How often programs pass tests as they are written, with the reference's fault in them."""
        calls = [test for suite in suites for test in suite.tests]
        rows = run_as_written(programs, calls, problem, _AS_WRITTEN, self._sandbox)
        numbers = iter(range(len(calls)))
        groups = [[next(numbers) for _ in suite.tests] for suite in suites]
        return sum(all(row[each].passed for each in group) for row in rows for group in groups)

    def _wrong_programs(self, problem: Problem, check: ProblemCheck) -> list[str]:
        if check.wrong is not None:
            candidates = self._candidates(problem)
            return [candidates[number] for number in check.wrong]
        # Of given programs nobody knows which are wrong; of mutants, most are.
        return [] if self._programs is not None else self._candidates(problem)

    def _make_mutants(self, source: str) -> list[str]:
        return [mutant.code for mutant in generate_mutants(source, self._sandbox)]

    def _make_candidates(self, problem: Problem) -> list[str]:
        if self._programs is not None:
            given = dict.fromkeys(self._programs.get(problem.task_id, ()))
            return [code for code in given if unusable_text(code) is None]
        mutants = generate_mutants(problem.reference, self._sandbox, MAX_POOL)
        return [mutant.code for mutant in mutants]


def _ruled(
    suite: ReadSuite, verdicts: Sequence[SuiteVerdict], entry_point: str
) -> tuple[TestVerdict, ...]:
    """One verdict for each test. Where several calls make a test, each must be right."""
    ruled: list[TestVerdict] = []
    right: set[tuple[str, ...]] = set()
    for text, test, verdict in zip(suite.texts, suite.tests, verdicts, strict=True):
        lost = next((each for each in test.dropped if each.invalid), None)
        wrong = next((each for each in verdict.tests if not is_right(each)), None)
        calls = tuple(each.same_as for each in test.tests)
        if lost:
            ruled.append(TestVerdict(text, "invalid", lost.reason, fault=lost.fault))
        elif not calls:
            ruled.append(_no_call(text, test.dropped[0].reason, entry_point))
        elif wrong:
            ruled.append(TestVerdict(text, wrong.status, wrong.reason, fault=wrong.fault))
        else:
            ruled.append(TestVerdict(text, "duplicate" if calls in right else "kept"))
            right.add(calls)
    return tuple(ruled)


def _no_call(text: str, reason: str, entry_point: str) -> TestVerdict:
    name = entry_point.rpartition(".")[2] or RUN
    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        return TestVerdict(text, "invalid", reason, fault=InvalidReason.UNREADABLE)
    reason = f"never calls {entry_point or RUN}"
    return TestVerdict(text, "invalid", reason, fault=InvalidReason.NEVER_CALLS)
