"""Evaluates suites of tests on a problem set: what `codea1 eval tests` does.

First the references are tried, which finds problems that cannot be used, and wrong programs are looked for. Then
suites come, from a file or batch by batch from an agent, and are judged while the agent writes the next ones
(`codea1_env.evaluation.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.running import (
    AgentOf,
    EvaluationPlan,
    check_problems,
    generate,
    given,
    judge,
)
from codea1_env.evaluation.suites.judging import SuiteJudge
from codea1_env.evaluation.suites.samples import SuiteSample, suite_key, suite_sample
from codea1_env.evaluation.suites.score import ProblemCheck, SuiteScore
from codea1_env.evaluation.test_programs.answers import python_blocks
from codea1_env.problems import Problem
from codea1_env.reading.fences import answer_in
from codea1_env.rollout import Agent, ask
from codea1_env.spaces import observe

Watch = Callable[[SuiteSample, SuiteScore], None]
"""Told of every score, in order; also of those that were known before a resume."""


class SuiteEvaluation:
    """One evaluation in one folder.

    Args:
        problems: The problem set.
        suite_judge: Judges suites.
        folder: Where everything is kept.
        stop: Whether to stop as soon as the suites that are being judged are done.
        threads: Suites that are judged at the same time. Has no influence on the results.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        suite_judge: SuiteJudge,
        folder: ResultFolder,
        stop: Callable[[], bool] = lambda: False,
        threads: int = 2,
    ) -> None:
        self.problems = {problem.task_id: problem for problem in problems}
        self._suite_judge = suite_judge
        self._folder = folder
        self._stop = stop
        self._threads = threads
        self.checks: dict[str, ProblemCheck] = {}

    def run_checks(self, watch: Callable[[], None] = lambda: None) -> dict[str, ProblemCheck]:
        """Look at every problem; `watch` is called after each.

        Raises:
            Stopped: It was asked to stop.
        """
        with ThreadPoolExecutor(self._threads, "check") as threads:
            self.checks = check_problems(
                self.problems.values(),
                self._folder,
                lambda problem: threads.submit(self._suite_judge.check, problem),
                lambda _, check: check.row(),
                ProblemCheck.of,
                watch,
                self._stop,
            )
        return self.checks

    def judge_file(self, samples: Sequence[SuiteSample], watch: Watch) -> None:
        """Judge suites made elsewhere.

        Raises:
            Stopped: It was asked to stop.
        """
        with ThreadPoolExecutor(self._threads, "judge") as threads:
            self._judge(threads, given(samples, self._folder), watch)

    def judge_agent(
        self, tester: AgentOf, plan: EvaluationPlan, watch: Watch, *, rounds: int | None = None
    ) -> None:
        """Let an agent write suites, and judge them. It is shown each problem with its reference.

        Args:
            tester: Writes the tests.
            plan: How many suites.
            watch: Told of every score.
            rounds: Ask so many times for one test, and show those that it has written before; None asks once
                for all tests.

        Raises:
            Stopped: It was asked to stop.
        """

        def write(batch: Sequence[Problem], seed: int) -> list[Mapping[str, Any]]:
            agent = tester(seed)
            if rounds is not None:
                return _ask_in_rounds(agent, batch, rounds)
            seen = [observe(problem, code=problem.reference, turn=1) for problem in batch]
            return [
                {"task_id": problem.task_id, "answer": answer}
                for problem, answer in zip(batch, ask(agent, "tester", seen), strict=True)
            ]

        usable = [each for name, each in self.problems.items() if not self.checks[name].fault]
        batches = generate(usable, plan, self._folder, write, suite_sample, self._stop)
        with ThreadPoolExecutor(self._threads, "judge") as threads:
            self._judge(threads, batches, watch)

    def _judge(
        self, threads: ThreadPoolExecutor, batches: Iterator[Sequence[SuiteSample]], watch: Watch
    ) -> None:
        judged: dict[tuple[str, str], Future[SuiteScore]] = {}

        def submit(sample: SuiteSample) -> Future[SuiteScore]:
            key = suite_key(sample)
            if key not in judged:  # equal suites are judged once
                problem, check = self.problems[sample.task_id], self.checks[sample.task_id]
                judged[key] = threads.submit(self._suite_judge.judge, problem, check, sample)
            return judged[key]

        judge(batches, self._folder, submit, score_row, SuiteScore.of, watch, self._stop)


def _ask_in_rounds(agent: Agent, batch: Sequence[Problem], rounds: int) -> list[Mapping[str, Any]]:
    written: list[list[str]] = [[] for _ in batch]
    for _ in range(rounds):
        seen = [
            observe(problem, code=problem.reference, tests="\n\n".join(map(_code, answers)), turn=1)
            for problem, answers in zip(batch, written, strict=True)
        ]
        for answers, answer in zip(written, ask(agent, "tester", seen), strict=True):
            answers.append(answer)
    return [
        {"task_id": problem.task_id, "tests": answers}
        for problem, answers in zip(batch, written, strict=True)
    ]


def _code(answer: str) -> str:
    """The code in an answer, as the next question shows it."""
    answer = answer_in(answer)
    return "\n".join(python_blocks(answer) or [answer]).strip()


def score_row(sample: SuiteSample, score: SuiteScore) -> dict[str, Any]:
    """A row of verdicts.jsonl."""
    return {"task_id": sample.task_id, "sample": sample.index, **score.row()}
