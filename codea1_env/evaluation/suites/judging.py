"""Judges suites of tests: which tests are right, and what the right ones are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from codea1_env.evaluation.program_verdicts import MIN_TIME_LIMIT, unusable_text
from codea1_env.evaluation.suites import ruling
from codea1_env.evaluation.suites.samples import SuiteSample, SuiteTest, read_suite
from codea1_env.evaluation.task import ProblemFault, Stored
from codea1_env.mutation import generate_mutants
from codea1_env.mutation.kills import MIN_SECONDS, limits_beside
from codea1_env.oracle import gather
from codea1_env.problem_sets.judging import is_unjudged, passes, submit_to_tests
from codea1_env.problems import Problem
from codea1_env.sandbox import AnalysisError, Limits, Sandbox


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
    """What came of one suite. All of it follows from the suite and its problem."""

    excluded: str = ""
    """Why the problem cannot be used; empty if it can."""
    tests: tuple[ruling.JudgedTest, ...] = ()
    """The tests that count, in the order of the suite."""
    late: int = 0
    dropped: tuple[str, ...] = ()
    """Why parts of an answer that were meant as tests are none."""
    empty: str = ""
    """Why an answer has no test; empty if it has some."""
    mutants: int = 0
    killed: tuple[int, ...] = ()
    """For each place of a suite, how many mutants the test there kills that no right test before it kills."""
    pool: PoolRuns = PoolRuns()

    def right(self, k: int) -> int:
        """Right tests among the first k."""
        return sum(not test.fault for test in self.tests[:k])

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return what `row` made."""
        tests = tuple(ruling.JudgedTest(**each) for each in row.get("tests", ()))
        pool = PoolRuns(**row.get("pool", {}))
        return super().of({**row, "tests": tests, "pool": pool})


MAX_POOL = 20
"""Mutants of a problem that are taken as wrong programs where none are given."""
_PATIENT = Limits(60, 600, 60, 600, calls_per_test=1)
"""What a reference may use on the golden tests of its problem."""
_REMEMBERED = 32


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
        self._ruler = ruling.TestRuler(sandbox)
        self._mutants = lru_cache(_REMEMBERED)(self._make_mutants)
        self._candidates = lru_cache(_REMEMBERED)(self._make_candidates)

    def check(self, problem: Problem) -> ProblemCheck:
        """Find out whether tests of a problem can be judged, and which programs are wrong."""
        found = ruling.reference_fault(problem, self._sandbox, lambda: self._candidates(problem))
        if found.fault:
            return ProblemCheck(problem.task_id, found.fault, unjudged=found.unjudged)
        if not (problem.cases or problem.test_module):
            return ProblemCheck(problem.task_id, "")
        golden = submit_to_tests(problem, problem.reference, _PATIENT, self._sandbox).result()
        if not passes(golden):
            return ProblemCheck(problem.task_id, "", unjudged=is_unjudged(golden))
        limits = limits_beside(golden, self._min_seconds)
        jobs = [
            submit_to_tests(problem, each, limits, self._sandbox, stop=True)
            for each in self._candidates(problem)
        ]
        wrong = tuple(i for i, result in enumerate(gather(jobs)) if not passes(result))
        return ProblemCheck(problem.task_id, "", wrong)

    def judge(self, problem: Problem, check: ProblemCheck, sample: SuiteSample) -> SuiteScore:
        """Judge a suite."""
        if check.fault:
            return SuiteScore(check.fault)
        try:
            mutants = self._mutants(problem.reference)
        except AnalysisError as error:
            return SuiteScore(f"its reference has no mutants: {error}")
        name, sandbox = problem.entry_point, self._sandbox
        suite = read_suite(sample, name, self._num_tests, sandbox)
        tests = self._ruler.rule(problem, suite.tests)
        places = [place for place, test in enumerate(tests) if not test.fault]
        right = [suite.tests[place] for place in places]
        room = sandbox.limits.with_room_for(tests=len(right))
        limits = limits_beside(ruling.run_once(problem.reference, right, name, room, sandbox))
        killed = [0] * self._num_tests
        for first in ruling.first_failures(mutants, right, name, limits, sandbox):
            if first is not None:
                killed[places[first]] += 1
        return SuiteScore(
            tests=tests,
            late=suite.late,
            dropped=suite.dropped,
            empty=suite.empty,
            mutants=len(mutants),
            killed=tuple(killed),
            pool=self._run_pool(problem, check, suite.tests, tests, limits),
        )

    def _run_pool(
        self,
        problem: Problem,
        check: ProblemCheck,
        tests: Sequence[SuiteTest],
        judged: Sequence[ruling.JudgedTest],
        limits: Limits,
    ) -> PoolRuns:
        programs = self._wrong_programs(problem, check)
        # A text that is no Python passes on nothing, and need not be tried.
        tried = [
            number
            for number, each in enumerate(judged)
            if tests[number].fault is None and (each.fails or not each.fault)
        ]
        texts = [tests[number] for number in tried]
        rows = ruling.run_on_each(programs, texts, problem.entry_point, limits, self._sandbox)
        passed = {True: 0, False: 0}  # by right and wrong tests
        for row in rows:
            for number, each in zip(tried, row, strict=True):
                passed[not judged[number].fault] += each is not None and each.passed
        right = sum(not each.fault for each in judged)
        wrong = sum(each.fails for each in judged)
        count = len(programs)
        return PoolRuns(count, count * right, passed[True], count * wrong, passed[False])

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
