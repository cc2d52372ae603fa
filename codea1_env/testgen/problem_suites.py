"""Writes a suite for every problem of a set, with the answers of a tester: what `codea1 testgen --problems` does.

All answers of a problem together are one suite: right tests stay, wrong predictions get the reference's value, and
the fewest tests are kept that kill the same mutants of the reference. What is done is written at once
(`codea1_env.evaluation.running`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from codea1_env.evaluation.pass_at_k import mean_over_problems
from codea1_env.evaluation.result_folder import VERSION, ResultFolder
from codea1_env.evaluation.running import (
    AgentOf,
    EvaluationPlan,
    check_problems,
    generate,
    given,
    judge,
)
from codea1_env.evaluation.statistics import Estimate
from codea1_env.evaluation.suites.samples import SuiteSample, read_suite, suite_sample
from codea1_env.evaluation.test_programs.ruling import Reference, RuledProblem
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem
from codea1_env.rollout import ask
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.spaces import observe
from codea1_env.testgen.choosing import reduce_and_check

PROBLEMS = "problems.jsonl"
_REFERENCE_SHARE = 0.25
"""A right test takes at most this share of a program's time on the reference."""
_MAX_TESTS = 256
"""Tests of one answer that are looked at."""


@dataclass(frozen=True)
class SuiteAnswers:
    """All answers for one problem; a sample, as `running.judge` takes it."""

    task_id: str
    samples: tuple[SuiteSample, ...]
    index: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemSuite:
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

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ProblemSuite:
        """The suite in a row of verdicts.jsonl."""
        values = {each.name: row[each.name] for each in dataclasses.fields(cls)}
        return cls(**values | {"tests": tuple(row["tests"])})


Watch = Callable[[SuiteAnswers, ProblemSuite], None]
"""Told of every suite, in order; also of those that were known before a resume."""


@dataclass
class ProblemTally:
    """Collects the suites as they come."""

    suites: dict[str, ProblemSuite] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Suites so far."""
        return len(self.suites)

    def add(self, answers: SuiteAnswers, suite: ProblemSuite) -> None:
        """Take one more."""
        self.suites[answers.task_id] = suite

    def estimate(self) -> Estimate | None:
        """The mean mutation score so far."""
        scores = [suite.score for suite in self.suites.values()]
        return mean_over_problems(scores) if scores else None


class SuiteWriting:
    """Writes the suites of a problem set in one folder.

    Args:
        problems: The problem set.
        sandbox: Where everything runs.
        folder: Where everything is kept.
        stop: Whether to stop as soon as the suites that are at work are done.
        threads: Problems that are worked on at the same time. Has no influence on the results.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        sandbox: Sandbox,
        folder: ResultFolder,
        stop: Callable[[], bool] = lambda: False,
        threads: int = 2,
    ) -> None:
        self.problems = {problem.task_id: problem for problem in problems}
        self._sandbox = sandbox
        self._folder = folder
        self._stop = stop
        self._threads = threads
        self._reference = Reference(sandbox, _REFERENCE_SHARE)
        self.faults: dict[str, str] = {}
        """Task -> why it cannot be used; "" if it can."""

    def check(self, watch: Callable[[], None] = lambda: None) -> dict[str, str]:
        """Find the problems that cannot be used; `watch` is called after each.

        Raises:
            Stopped: It was asked to stop.
        """
        with ThreadPoolExecutor(self._threads, "check") as threads:
            self.faults = check_problems(
                self.problems.values(),
                self._folder,
                lambda problem: threads.submit(self._fault, problem),
                lambda problem, fault: {"task_id": problem.task_id, "fault": fault},
                lambda row: str(row["fault"]),
                watch,
                self._stop,
            )
        return self.faults

    def from_file(self, samples: Sequence[SuiteSample], watch: Watch) -> None:
        """Make suites of tests written elsewhere; `watch` is told of each.

        Raises:
            Stopped: It was asked to stop.
        """
        place = {name: number for number, name in enumerate(self.problems)}
        known = [each for each in samples if not self.faults[each.task_id]]
        ordered = sorted(known, key=lambda each: place[each.task_id])
        self._write(given(ordered, self._folder), watch)

    def from_agent(self, tester: AgentOf, plan: EvaluationPlan, watch: Watch) -> None:
        """Make suites of what a tester writes. It is shown each problem with its reference.

        Raises:
            Stopped: It was asked to stop.
        """

        def write(batch: Sequence[Problem], seed: int) -> list[Mapping[str, Any]]:
            seen = [observe(problem, code=problem.reference, turn=1) for problem in batch]
            answers = ask(tester(seed), "tester", seen)
            return [
                {"task_id": problem.task_id, "answer": answer}
                for problem, answer in zip(batch, answers, strict=True)
            ]

        usable = [each for name, each in self.problems.items() if not self.faults[name]]
        batches = generate(usable, plan, self._folder, write, suite_sample, self._stop)
        self._write(batches, watch)

    def _write(self, batches: Iterator[Sequence[SuiteSample]], watch: Watch) -> None:
        with ThreadPoolExecutor(self._threads, "suite") as threads:
            judge(
                ([answers] for answers in _by_problem(batches)),
                self._folder,
                lambda answers: threads.submit(self._suite, answers),
                suite_row,
                ProblemSuite.of,
                watch,
                self._stop,
            )

    def _fault(self, problem: Problem) -> str:
        if not problem.playable:
            return "it has no reference whose function tests can call"
        failure = self._reference.load_failure(RuledProblem.of(problem))
        if failure is not None:
            return f"its reference does not run: {failure.outcome.value}, {failure.message}"
        try:
            generate_mutants(problem.reference, self._sandbox, 1)
        except AnalysisError as error:
            return f"its reference cannot be parsed: {error}"
        return ""

    def _suite(self, answers: SuiteAnswers) -> ProblemSuite:
        problem = self.problems[answers.task_id]
        subject = RuledProblem.of(problem)
        texts: list[str] = []
        unread = 0
        for sample in answers.samples:
            suite = read_suite(sample, problem.entry_point, _MAX_TESTS, self._sandbox)
            texts += [test.text for test in suite.tests if test.fault is None]
            unread += len(suite.dropped) + sum(test.fault is not None for test in suite.tests)
            unread += suite.late
        rulings = self._reference.rule(subject, texts)
        valid = [rulings[text].text for text in texts if rulings[text].status != "invalid"]
        # What only seems to hold gives itself away when it is asked again.
        self._reference.rule(subject, valid)
        if self._reference.confirm(subject, valid):
            rulings |= self._reference.rule(subject, texts)
        right = [rulings[text] for text in texts if rulings[text].status != "invalid"]
        distinct = {ruling.key: ruling.text for ruling in reversed(right)}
        tests = list(reversed(distinct.values()))
        mutants = generate_mutants(problem.reference, self._sandbox)
        reduction = reduce_and_check(
            problem.reference, problem.entry_point, tests, mutants, self._sandbox
        )
        return ProblemSuite(
            written=len(texts) + unread,
            right=sum(ruling.status == "kept" for ruling in right),
            corrected=sum(ruling.status == "corrected" for ruling in right),
            distinct=len(tests),
            mutants=len(mutants),
            killed_before=len(reduction.before.killed),
            killed=len(reduction.after.killed),
            tests=tuple(tests[number] for number in reduction.chosen),
        )


def suite_row(answers: SuiteAnswers, suite: ProblemSuite) -> dict[str, Any]:
    """A row of verdicts.jsonl."""
    return {"task_id": answers.task_id, "sample": answers.index, **dataclasses.asdict(suite)}


def with_suite(problem: Problem, tests: Sequence[str], source: str) -> dict[str, Any]:
    """The row of a problem file: the problem with these tests in the place of its own.

    Args:
        problem: The problem.
        tests: The tests.
        source: Who wrote them.

    Example:
        >>> problem = Problem("a/1", "def f():", "f", "def f(): return 1", ["assert f() == 1"])
        >>> row = with_suite(problem, ["assert f() < 2"], "boundary")
        >>> row["tests"], row["metadata"]
        (['assert f() < 2'], {'tests_by': 'boundary'})
    """
    metadata = {key: value for key, value in problem.metadata.items() if key != "judging"}
    row = {
        "task_id": problem.task_id,
        "prompt": problem.prompt,
        "entry_point": problem.entry_point,
        "reference": problem.reference,
        "tests": list(tests),
        "metadata": metadata | {"tests_by": source},
    }
    return row | ({"preamble": problem.preamble} if problem.preamble else {})


def build_report(
    settings: Mapping[str, Any],
    faults: Mapping[str, str],
    tally: ProblemTally,
    unknown: Mapping[str, int],
) -> dict[str, Any]:
    """All that is known at the end, as report.json has it. Equal suites give equal reports.

    Args:
        settings: How the tests were made.
        faults: Task -> why it cannot be used; "" if it can.
        tally: The suites.
        unknown: Tasks of a file that the problem set has not.
    """
    suites = tally.suites
    numbers = ("written", "right", "corrected", "distinct", "mutants", "killed_before", "killed")
    score = tally.estimate()
    excluded = {name: fault for name, fault in faults.items() if fault}
    empty = {name: _why_empty(suite) for name, suite in suites.items() if not suite.tests}
    return {
        "version": VERSION,
        "settings": dict(settings),
        "problems": len(faults),
        "scored": sum(bool(suite.tests) for suite in suites.values()),
        "tests": {
            **{name: sum(getattr(suite, name) for suite in suites.values()) for name in numbers},
            "kept": sum(len(suite.tests) for suite in suites.values()),
        },
        "kind": "suites",
        "figures": {} if score is None else {"mutation_score": dataclasses.asdict(score)},
        "excluded": excluded | empty,
        "missing": [name for name, fault in faults.items() if not fault and name not in suites],
        "unknown": dict(unknown),
        "results": {
            name: {
                **{each: getattr(suite, each) for each in numbers},
                "kept": len(suite.tests),
            }
            for name, suite in suites.items()
        },
    }


def _why_empty(suite: ProblemSuite) -> str:
    return f"none of {suite.written} tests can be used" if suite.written else "no test was written"


def _by_problem(batches: Iterator[Sequence[SuiteSample]]) -> Iterator[SuiteAnswers]:
    """The answers of each problem together; they come one after the other."""
    samples = itertools.chain.from_iterable(batches)
    for task_id, some in itertools.groupby(samples, lambda sample: sample.task_id):
        yield SuiteAnswers(task_id, tuple(some))
