"""Writes a suite for every problem of a set, with the answers of a tester: what `codea1 testgen --problems` does.

All answers of a problem together are one suite: right tests stay, wrong predictions get the reference's value, and
the fewest tests are kept that kill the same mutants of the reference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from codea1_env.compare import Returned, read_reply
from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.samples import SampleFile
from codea1_env.evaluation.statistics import written
from codea1_env.evaluation.suites.ruling import REFERENCE_SHARE, reference_fault
from codea1_env.evaluation.suites.samples import SuiteSample, texts_of
from codea1_env.evaluation.task import ProblemAnswers, ProblemFault, Stored
from codea1_env.mutation import generate_mutants
from codea1_env.mutation.kills import find_kills
from codea1_env.oracle import Oracle, Subject, Truth
from codea1_env.problem_sets.schemas import row_of
from codea1_env.problems import Problem
from codea1_env.responses import Test, parse_suites
from codea1_env.sandbox import RETURNED, Sandbox, equal
from codea1_env.sandbox.compare import FLOAT_ATOL, FLOAT_RTOL
from codea1_env.testgen.search import reduce_suite

PROBLEMS = "problems.jsonl"
_NUMBERS = ("written", "right", "corrected", "distinct", "mutants", "killed_before", "killed")
_COLUMNS = ("written", "right", "corrected", "kept", "mutants", "killed")
_SHOWN = 20  # Problems that are printed


@dataclass(frozen=True)
class ProblemSuite(Stored):
    """The suite of one problem."""

    written: int
    """Tests in the answers; with what was meant as tests and cannot be read."""
    right: int
    """Tests that the reference passes."""
    corrected: int
    """Tests with a wrong value, in whose place the reference's was put."""
    distinct: int
    """Right and corrected tests that say something else than those before them."""
    mutants: int
    killed_before: int
    """Mutants that the distinct tests kill."""
    killed: int
    """Mutants that the kept ones kill, run on their own."""
    tests: tuple[str, ...]
    """What is kept."""

    @property
    def score(self) -> float:
        """Share of the mutants that are killed; 1 if there are none."""
        return self.killed / self.mutants if self.mutants else 1.0

    def counts(self) -> dict[str, int]:
        """All numbers, and how many tests are kept."""
        return {name: getattr(self, name) for name in _NUMBERS} | {"kept": len(self.tests)}


@dataclass(kw_only=True, eq=False)
class ProblemSuites(TestEvaluation[ProblemAnswers, ProblemSuite]):
    """Write a suite for every problem of a set with a tester: right, and as small as it can be.

    Tests that predict a wrong value get the reference's. Of all tests the fewest are kept that kill the same mutants of
    the reference. problems.jsonl in the result folder has the problems with these tests in the place of their own:
    `codea1 train --problems DIR/problems.jsonl`.
    """

    kind = "suites"
    kind_setting = "writes"  # as folders have it since before it was an evaluation
    judged_together = True
    figure = "mutation score"
    verdict_type = ProblemSuite
    defaults = {"num_samples": 8}  # noqa: RUF012  never changed
    help = {  # noqa: RUF012  never changed
        "samples": 'Suites made elsewhere: {"task_id", "tests": [TEXT, ...]} or {"task_id", "answer": TEXT}.',
    }

    num_tests: Annotated[int, tyro.conf.arg(metavar="K")] = 8
    """Tests that an agent is asked for in an answer."""

    def settings(self, asked: bool) -> dict[str, Any]:
        """How many tests an agent is asked for."""
        return {"num_tests": self.num_tests} if asked else {}

    def begin(self, sandbox: Sandbox) -> None:
        """Make what rules tests."""
        super().begin(sandbox)
        self._oracle = Oracle(sandbox, sandbox.limits.times(REFERENCE_SHARE))

    def check(self, problem: Problem) -> ProblemFault:
        """Find out whether a problem can have a suite."""
        fault = reference_fault(
            problem, self.sandbox, lambda: generate_mutants(problem.reference, self.sandbox, 1)
        )
        return ProblemFault(problem.task_id, fault)

    def shown(self, problem: Problem, index: int) -> str:
        """Return the reference, as the program under test."""
        return problem.reference

    def read_file(self, path: Path, problems: Sequence[Problem]) -> SampleFile[SuiteSample]:
        """Read suites, and put them in the order of the problems."""
        file = super().read_file(path, problems)
        place = {problem.task_id: number for number, problem in enumerate(problems)}
        ordered = sorted(file.samples, key=lambda each: place[each.task_id])
        return dataclasses.replace(file, samples=tuple(ordered))

    def judge(self, problem: Problem, sample: ProblemAnswers) -> ProblemSuite:
        """Make the suite of a problem."""
        texts = [text for each in sample.samples for text in texts_of(each)]
        suites = parse_suites([(text, problem) for text in texts], self.sandbox)
        tests = [test for suite in suites for test in suite.tests]
        dropped = sum(each.invalid for suite in suites for each in suite.dropped)
        asked = [test for test in tests if test.fault is None]
        subject = Subject.of(problem)
        # A suite each: what one costs is not taken from another.
        truths = self._oracle.ask({subject: [[test] for test in asked]})[subject] if asked else {}
        usable = [test for test in asked if truths[test.call_text].source is not None]
        right = sum(_is_right(test, truths[test.call_text]) for test in usable)
        distinct = {
            test.same_as: f"assert {test.call_text} == {truths[test.call_text].source}"
            for test in reversed(usable)
        }
        kept = list(reversed(distinct.values()))
        mutants = generate_mutants(problem.reference, self.sandbox)
        program, name = problem.reference, problem.entry_point
        before = find_kills(program, name, kept, mutants, self.sandbox)
        few = tuple(kept[number] for number in reduce_suite(before.by_test, kept))
        after = find_kills(program, name, few, mutants, self.sandbox)
        if after.killed != before.killed:  # the program remembers earlier calls
            few, after = tuple(kept), before
        return ProblemSuite(
            written=len(tests) + dropped,
            right=right,
            corrected=len(usable) - right,
            distinct=len(kept),
            mutants=len(mutants),
            killed_before=len(before.killed),
            killed=len(after.killed),
            tests=few,
        )

    @property
    def suites(self) -> dict[str, ProblemSuite]:
        """Task -> its suite."""
        return {task: suite for task, (suite,) in self.verdicts.items()}

    def so_far(self) -> list[float]:
        """Return the mutation scores."""
        return [suite.score for suite in self.suites.values()]

    def left_out(self) -> dict[str, str]:
        """Also problems without a test that can be used."""
        return self.faults() | {
            task: f"none of {suite.written} tests can be used"
            if suite.written
            else "no test was written"
            for task, suite in self.suites.items()
            if not suite.tests
        }

    def summary(self) -> dict[str, Any]:
        """How many tests there are of each kind, and the mutation score."""
        counts = [suite.counts() for suite in self.suites.values()]
        score = self.estimate()
        return {
            "problems": len(self.problems),
            "scored": sum(each["kept"] > 0 for each in counts),
            "tests": {name: sum(each[name] for each in counts) for name in (*_NUMBERS, "kept")},
            "figures": {} if score is None else {"mutation_score": dataclasses.asdict(score)},
        }

    def result(self, task: str) -> dict[str, Any]:
        """Return the numbers of one suite."""
        return self.suites[task].counts()

    def write_files(self, folder: ResultFolder, by: str) -> None:
        """Write the problems with these suites."""
        suites = self.suites
        folder.write_lines(
            PROBLEMS,
            [
                with_suite(problem, suites[task].tests, by)
                for task, problem in self.problems.items()
                if task in suites and suites[task].tests
            ],
        )

    def table(self, report: Mapping[str, Any]) -> list[list[str]]:
        """Return a row for each of the first problems, and one for all."""
        rows = [*report["results"].items()]
        shown = [[name, *(str(row[each]) for each in _COLUMNS)] for name, row in rows[:_SHOWN]]
        if len(rows) > _SHOWN:
            shown.append([f"and {len(rows) - _SHOWN} more", *("" for _ in _COLUMNS)])
        total = ["all", *(str(report["tests"][each]) for each in _COLUMNS)]
        return [["tests", *_COLUMNS], *shown, total]

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Return what the kept tests kill."""
        tests = report["tests"]
        return [
            f"{tests['kept']} of {tests['distinct']} different tests kill {tests['killed']} of {tests['mutants']} "
            f"mutants; all of them kill {tests['killed_before']}",
            f"Mutation score, mean over problems: {written(report['figures'].get('mutation_score'))}",
            f"{PROBLEMS} has {report['scored']} of {report['problems']} problems",
        ]


def _is_right(test: Test, truth: Truth) -> bool:
    """Whether a prediction is the value, and the value can be written down."""
    found, said = truth.read if not truth.reason else None, read_reply(RETURNED + test.predicted)
    if not isinstance(found, Returned) or not isinstance(said, Returned) or truth.source is None:
        return False
    atol, rtol = test.absolute or FLOAT_ATOL, test.relative or FLOAT_RTOL
    return equal(found.value, said.value, atol, rtol)


def with_suite(problem: Problem, tests: Sequence[str], source: str) -> dict[str, Any]:
    """Return the row of a problem file: the problem with these tests in the place of its own.

    Args:
        problem: The problem.
        tests: The tests.
        source: Who wrote them.

    Example:
        >>> problem = Problem("a/1", "def f():", "f", "def f(): return 1", ["assert f() == 1"])
        >>> row = with_suite(problem, ["assert f() == 1"], "boundary")
        >>> row["tests"], row["metadata"]
        (['assert f() == 1'], {'tests_by': 'boundary'})
    """
    suite = dataclasses.replace(
        problem,
        tests=list(tests),
        metadata={**problem.metadata, "tests_by": source},
        cases=(),
        compare="equal",
        atol=0.0,
        checker="",
        test_module="",
        base=0,
    )
    return row_of(suite)
