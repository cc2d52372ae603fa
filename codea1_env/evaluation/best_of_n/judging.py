"""Runs programs on tests that were written without a reference, to choose among the programs.

Tests come from a file or, batch by batch, from an agent. As soon as a problem has all its tests, every program of it
runs on every test. Nobody says which tests are right: where programs are chosen in earnest, nobody knows.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from codea1_env.evaluation.best_of_n.programs import JudgedProgram
from codea1_env.evaluation.programs.judging import PendingVerdict
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.running import AgentOf, EvaluationPlan, generate, given, judge
from codea1_env.evaluation.suites.samples import SuiteSample, read_suite, suite_sample
from codea1_env.problems import Problem
from codea1_env.rollout import ask
from codea1_env.sandbox import Job, JobResult, Limits, Sandbox
from codea1_env.spaces import observe

LIMITS = Limits(
    call_cpu_time=1.0, call_wall_time=5.0, run_cpu_time=5.0, run_wall_time=30.0, calls_per_test=1
)
"""What a program may use for a test, and for all tests of its problem together. Some programs never end."""


@dataclass(frozen=True)
class Tests:
    """The distinct tests of a problem, in the order in which they were first written."""

    __test__ = False  # pytest would collect a class of this name

    texts: tuple[str, ...]
    weights: tuple[int, ...]
    """How often each was written."""
    unusable: int
    """Tests that cannot be run, or that never call the program."""


@dataclass(frozen=True)
class ProgramRun:
    """One program, to be run on all tests of its problem."""

    task_id: str
    index: int
    """Number among the programs of its problem, from 0."""
    code: str
    right: bool
    tests: Tests
    programs: int
    """Programs of the problem."""
    row: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Unused: what is kept are the tests, and verdicts."""


Watch = Callable[[ProgramRun, str], None]
"""Told of every program, in order, with a "1" for each test that it passes and a "0" for each other."""


@dataclass(frozen=True)
class _Question:
    problem: Problem
    code: str
    """The program that the tester is shown; "" for none."""


class BestOfN:
    """One evaluation in one folder.

    Args:
        problems: The problem set.
        programs: Task -> its programs. Other tasks are left out.
        sandbox: Where programs and tests run.
        folder: Where everything is kept.
        num_tests: How many tests of an answer count.
        stop: Whether to stop as soon as the running programs are done.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        programs: Mapping[str, Sequence[JudgedProgram]],
        sandbox: Sandbox,
        folder: ResultFolder,
        num_tests: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problems = {each.task_id: each for each in problems if programs.get(each.task_id)}
        self._programs = programs
        self._sandbox = sandbox
        self._folder = folder
        self._num_tests = num_tests
        self._stop = stop

    def run_file(self, samples: Sequence[SuiteSample], watch: Watch) -> None:
        """Choose by tests made elsewhere; problems without tests are left out.

        Raises:
            Stopped: It was asked to stop.
        """
        counts = Counter(sample.task_id for sample in samples)
        tasks = {task: counts[task] for task in self.problems if counts[task]}
        self._run(self._runs(given(samples, self._folder), tasks), watch)

    def run_agent(
        self, tester: AgentOf, plan: EvaluationPlan, watch: Watch, *, white_box: bool
    ) -> None:
        """Choose by an agent's tests.

        Args:
            tester: Writes them.
            plan: How many answers per problem.
            watch: See `Watch`.
            white_box: Show it a program with each question: those of the problem in turn.

        Raises:
            Stopped: It was asked to stop.
        """

        def write(batch: Sequence[_Question], seed: int) -> list[Mapping[str, Any]]:
            seen = [observe(each.problem, code=each.code, turn=1) for each in batch]
            answers = ask(tester(seed), "tester", seen)
            return [
                {"task_id": each.problem.task_id, "answer": answer}
                for each, answer in zip(batch, answers, strict=True)
            ]

        def read(question: _Question, index: int, row: Mapping[str, Any]) -> SuiteSample:
            return suite_sample(question.problem, index, row)

        questions = [
            _Question(problem, programs[i % len(programs)].code if white_box else "")
            for task, problem in self.problems.items()
            for programs in [self._programs[task]]
            for i in range(plan.num_samples)
        ]
        each_once = dataclasses.replace(plan, num_samples=1)
        batches = generate(questions, each_once, self._folder, write, read, self._stop)
        self._run(self._runs(batches, dict.fromkeys(self.problems, plan.num_samples)), watch)

    def _runs(
        self, batches: Iterable[Sequence[SuiteSample]], expected: Mapping[str, int]
    ) -> Iterator[Sequence[ProgramRun]]:
        """The programs of each problem, in the order of the problems, as soon as all its tests are there."""
        suites: defaultdict[str, list[SuiteSample]] = defaultdict(list)
        left = list(expected)
        for batch in batches:
            for sample in batch:
                suites[sample.task_id].append(sample)
            while left and len(suites[left[0]]) == expected[left[0]]:
                task = left.pop(0)
                yield self._runs_of(task, suites.pop(task))

    def _runs_of(self, task: str, suites: Sequence[SuiteSample]) -> list[ProgramRun]:
        tests = self._tests(self.problems[task], suites)
        programs = self._programs[task]
        return [
            ProgramRun(task, index, each.code, each.right, tests, len(programs))
            for index, each in enumerate(programs)
        ]

    def _tests(self, problem: Problem, suites: Sequence[SuiteSample]) -> Tests:
        written: Counter[str] = Counter()
        unusable = 0
        for suite in suites:
            read = read_suite(suite, problem.entry_point, self._num_tests, self._sandbox)
            for test in read.tests:
                written[test.text] += test.fault is None
                unusable += test.fault is not None
            unusable += len(read.dropped)
        usable = {text: count for text, count in written.items() if count}
        return Tests(tuple(usable), tuple(usable.values()), unusable)

    def _run(self, batches: Iterator[Sequence[ProgramRun]], watch: Watch) -> None:
        judged: dict[tuple[str, str], PendingVerdict[str]] = {}

        def submit(run: ProgramRun) -> PendingVerdict[str]:
            key = (run.task_id, run.code)
            if key not in judged:  # equal programs run once
                judged[key] = self._submit(run)
            return judged[key]

        judge(batches, self._folder, submit, run_row, _read_run, watch, self._stop)

    def _submit(self, run: ProgramRun) -> PendingVerdict[str]:
        if not run.tests.texts:
            nothing: Future[str] = Future()
            nothing.set_result("")
            return PendingVerdict(nothing, str)
        problem = self.problems[run.task_id]
        code = f"{problem.preamble}\n\n{run.code}" if problem.preamble else run.code
        job = Job(code, run.tests.texts, problem.entry_point, LIMITS)
        return PendingVerdict(self._sandbox.submit(job), _signs)


def run_row(run: ProgramRun, passed: str) -> dict[str, Any]:
    """A row of verdicts.jsonl."""
    return {"task_id": run.task_id, "sample": run.index, "passed": passed}


def _read_run(row: Mapping[str, Any]) -> str:
    return str(row["passed"])


def _signs(result: JobResult) -> str:
    return "".join("1" if test.passed else "0" for test in result.tests)
