"""Judges suites of tests: which tests are right, and what the right ones are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

from codea1_env.evaluation.program_verdicts import MIN_TIME_LIMIT, unusable_text
from codea1_env.evaluation.suites.coverage import Coverage, measure_coverage
from codea1_env.evaluation.suites.samples import ReadTest, SuiteSample, read_suite
from codea1_env.evaluation.task import ProblemFault, Stored
from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem
from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.kills import (
    MIN_SECONDS,
    first_failures,
    limits_beside,
    passes,
)
from codea1_env.oracle import gather
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import AnalysisError, Job, JobResult, Limits, Sandbox

_FAILS = frozenset(
    {
        InvalidReason.UNPARSABLE,
        InvalidReason.WRONG_VALUE,
        InvalidReason.RAISES,
        InvalidReason.NOT_INSTALLED,
        InvalidReason.TIMEOUT,
        InvalidReason.LIMIT,
        InvalidReason.UNENCODABLE,
    }
)
"""Faults of tests that the reference does not pass. The others say nothing about programs, right or wrong."""


@dataclass(frozen=True)
class ProblemCheck(ProblemFault):
    """Whether tests of a problem can be judged, and by which wrong programs."""

    wrong: tuple[int, ...] | None = None
    """Numbers of the wrong programs among the candidates: those that fail golden tests. None where the problem has
    no golden tests that could say it."""


@dataclass(frozen=True)
class JudgedTest:
    """One test of a suite."""

    text: str
    fault: str
    """Value of a `InvalidReason`; empty if the test is right."""
    reason: str
    repeats: bool = False
    """Whether it says the same as an earlier right test of the suite. It counts all the same."""
    missing_module: str | None = None
    """The module that it imports and that is not there; rows have it of such tests only."""

    @property
    def fails(self) -> bool:
        """Whether the reference does not pass it. Of tests that are not right, the others say nothing."""
        return bool(self.fault) and InvalidReason(self.fault) in _FAILS


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
    """What came of one suite. All of it follows from the suite and its problem."""

    excluded: str = ""
    """Why the problem cannot be used; empty if it can."""
    tests: tuple[JudgedTest, ...] = ()
    """The tests that count, in the order of the suite."""
    late: int = 0
    """Tests after those that count."""
    dropped: tuple[str, ...] = ()
    """Why parts of an answer that were meant as tests are none."""
    empty: str = ""
    """Why an answer has no test; empty if it has some."""
    mutants: int = 0
    killed: tuple[int, ...] = ()
    """For each place of a suite, how many mutants the test there kills that no right test before it kills."""
    coverage: tuple[Coverage, ...] = ()
    """For each place, what the right tests up to there cover of the reference together."""
    pool: PoolRuns = PoolRuns()

    def right(self, k: int) -> int:
        """Right tests among the first k."""
        return sum(not test.fault for test in self.tests[:k])

    def row(self) -> dict[str, Any]:
        """As a row of a file."""
        if self.excluded:
            return {"excluded": self.excluded}
        row = super().row()
        del row["excluded"]
        for test in row["tests"]:
            if test["missing_module"] is None:
                del test["missing_module"]
        return row

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return what `row` made."""
        tests = tuple(JudgedTest(**each) for each in row.get("tests", ()))
        coverage = tuple(Coverage(**each) for each in row.get("coverage", ()))
        pool = PoolRuns(**row.get("pool", {}))
        return super().of({**row, "tests": tests, "coverage": coverage, "pool": pool})


MAX_POOL = 20
"""Mutants of a problem that are taken as wrong programs where none are given."""
REFERENCE_SHARE = 0.25
"""A right test takes at most this share of a program's time on the reference."""
_PATIENT = Limits(60, 600, 60, 600, calls_per_test=1)
"""What a reference may use on the golden tests of its problem."""
_REMEMBERED = 32
Mutator = Callable[[str], Sequence[Mutant]]
"""Program text -> its mutants, always the same."""


def reference_fault(problem: Problem, reference: Reference, look: Callable[[], object]) -> str:
    """Why tests of a problem cannot be judged by its reference; "" if they can.

    Args:
        problem: The problem.
        reference: Runs it.
        look: Raises an `AnalysisError` if the reference cannot be parsed.

    Raises:
        InfraError: The sandbox failed.
    """
    if not problem.playable:
        return "it has no reference whose function tests can call"
    failure = reference.load_failure(RuledProblem.of(problem))
    if failure is not None:
        return f"its reference does not run: {failure.outcome.value}, {failure.message}"
    try:
        look()
    except AnalysisError as error:
        return f"its reference cannot be parsed: {error}"
    return ""


class SuiteJudge:
    """Judges suites of a problem set. Safe to use from several threads.

    Args:
        sandbox: Where everything runs.
        num_tests: How many tests of a suite count: the first ones.
        mutator: Makes the mutants that suites must kill; None for those of `generate_mutants`.
        programs: Task -> programs among which the wrong ones are looked for; None for mutants.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        num_tests: int,
        mutator: Mutator | None = None,
        programs: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._num_tests = num_tests
        self._mutator = mutator or (lambda source: generate_mutants(source, sandbox))
        self._programs = programs
        self._min_seconds = MIN_SECONDS if programs is None else MIN_TIME_LIMIT
        self._reference = Reference(sandbox, REFERENCE_SHARE)
        self._mutants = lru_cache(_REMEMBERED)(self._make_mutants)
        self._candidates = lru_cache(_REMEMBERED)(self._make_candidates)

    def check(self, problem: Problem) -> ProblemCheck:
        """Find out whether tests of a problem can be judged, and which programs are wrong.

        Raises:
            InfraError: The sandbox failed.
        """

        def look() -> None:
            """Find what will be asked of the reference later."""
            self._candidates(problem)
            measure_coverage(problem, [], self._sandbox)

        if fault := reference_fault(problem, self._reference, look):
            return ProblemCheck(problem.task_id, fault)
        golden = submit_to_tests(problem, problem.reference, _PATIENT, self._sandbox).result()
        if not problem.number_of_tests or not _passes(golden):
            return ProblemCheck(problem.task_id, "")
        limits = limits_beside(golden, self._min_seconds)
        jobs = [
            submit_to_tests(problem, each, limits, self._sandbox)
            for each in self._candidates(problem)
        ]
        wrong = tuple(i for i, result in enumerate(gather(jobs)) if not _passes(result))
        return ProblemCheck(problem.task_id, "", wrong)

    def judge(self, problem: Problem, check: ProblemCheck, sample: SuiteSample) -> SuiteScore:
        """Judge a suite.

        Raises:
            InfraError: The sandbox failed.
        """
        if check.fault:
            return SuiteScore(check.fault)
        try:
            mutants = self._mutants(problem.reference)
        except AnalysisError as error:
            return SuiteScore(f"its reference has no mutants: {error}")
        suite = read_suite(sample, problem.entry_point, self._num_tests, self._sandbox)
        while True:
            tests = self._rule(problem, suite.tests)
            right = [test.text for test in tests if not test.fault]
            limits = self._limits(problem, right)
            firsts = first_failures(mutants, right, problem.entry_point, limits, self._sandbox)
            killers = {right[first] for first in firsts if first is not None}
            # A test that decides by something else than the function's values gives itself away here.
            if not self._reference.confirm(RuledProblem.of(problem), killers):
                break
        killed = [0] * self._num_tests
        places = [place for place, test in enumerate(tests) if not test.fault]
        for first in firsts:
            if first is not None:
                killed[places[first]] += 1
        return SuiteScore(
            "",
            tests,
            suite.late,
            suite.dropped,
            suite.empty,
            len(mutants),
            tuple(killed),
            self._cover(problem, tests),
            self._run_pool(problem, check, tests, limits),
        )

    def _rule(self, problem: Problem, tests: Sequence[ReadTest]) -> tuple[JudgedTest, ...]:
        asked = [test.text for test in tests if test.fault is None]
        rulings = self._reference.rule(RuledProblem.of(problem), asked)
        judged = []
        keys: set[str] = set()
        for test in tests:
            if test.fault is not None:
                judged.append(JudgedTest(test.text, test.fault.value, test.reason))
                continue
            ruling = rulings[test.text]
            fault, module = ruling.fault, ruling.missing_module
            if fault is None:
                judged.append(JudgedTest(test.text, "", "", ruling.key in keys))
                keys.add(ruling.key)
            else:
                scored = JudgedTest(test.text, fault.value, ruling.reason, missing_module=module)
                judged.append(scored)
        return tuple(judged)

    def _limits(self, problem: Problem, right: Sequence[str]) -> Limits:
        limits = self._sandbox.limits.with_room_for(tests=len(right))
        job = Job(problem.reference, tuple(right), problem.entry_point, limits)
        [result] = self._sandbox.run_jobs([job])
        return limits_beside(result)

    def _cover(self, problem: Problem, tests: Sequence[JudgedTest]) -> tuple[Coverage, ...]:
        places = range(1, self._num_tests + 1)
        suites = [tuple(test.text for test in tests[:place] if not test.fault) for place in places]
        covered = measure_coverage(problem, suites, self._sandbox)
        # What runs when the program is loaded is no merit of tests that are not there.
        return tuple(
            each if suite else replace(each, lines_hit=0, branches_hit=0)
            for suite, each in zip(suites, covered, strict=True)
        )

    def _run_pool(
        self,
        problem: Problem,
        check: ProblemCheck,
        tests: Sequence[JudgedTest],
        limits: Limits,
    ) -> PoolRuns:
        """Run right tests, and those that the reference fails, on wrong programs."""
        programs = self._wrong_programs(problem, check)
        used = [test for test in tests if not test.fault or test.fails]
        # A text that is no Python passes on nothing, and need not be tried.
        texts = [test.text for test in used if test.fault != InvalidReason.UNPARSABLE.value]
        table = passes(programs, texts, problem.entry_point, limits, self._sandbox)
        passed = {text: sum(row[i] for row in table) for i, text in enumerate(texts)}
        right = [test.text for test in used if not test.fault]
        wrong = [test.text for test in used if test.fault]
        return PoolRuns(
            len(programs),
            len(programs) * len(right),
            sum(passed[text] for text in right),
            len(programs) * len(wrong),
            sum(passed.get(text, 0) for text in wrong),
        )

    def _wrong_programs(self, problem: Problem, check: ProblemCheck) -> list[str]:
        if check.wrong is not None:
            candidates = self._candidates(problem)
            return [candidates[number] for number in check.wrong]
        # Of given programs nobody knows which are wrong; of mutants, most are.
        return [] if self._programs is not None else self._candidates(problem)

    def _make_mutants(self, source: str) -> list[str]:
        return [mutant.code for mutant in self._mutator(source)]

    def _make_candidates(self, problem: Problem) -> list[str]:
        if self._programs is not None:
            given = dict.fromkeys(self._programs.get(problem.task_id, ()))
            return [code for code in given if unusable_text(code) is None]
        mutants = generate_mutants(problem.reference, self._sandbox, MAX_POOL)
        return [mutant.code for mutant in mutants]


def _passes(result: JobResult) -> bool:
    return result.load.passed and all(test.passed for test in result.tests)
