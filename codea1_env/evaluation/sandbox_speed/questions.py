"""Verdicts per second on whole questions, beside one new Python process for each program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

import numpy as np

from codea1_env.evaluation.sandbox_speed import fresh_python
from codea1_env.evaluation.sandbox_speed.config import Progress, SpeedConfig
from codea1_env.evaluation.sandbox_speed.figures import Figure
from codea1_env.evaluation.sandbox_speed.jobs import Question, questions
from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.sandbox import Job, Sandbox
from codea1_env.verdicts import Round, TestVerdict

TIMES = 5.0

Verdicts = list[str]
"""One text for each program of a batch, one letter per test as `fresh_python.judge` has them."""


def measure(
    problems: Sequence[Problem], config: SpeedConfig, level: str | None, progress: Progress
) -> Iterator[Figure]:
    """Judge batches of questions in turn: by new processes, by the referee, by the sandbox alone."""
    workers = config.pool_size
    with (
        Sandbox(workers, level=level) as first,
        # One of its own, so that neither profits from what the other has compiled.
        Sandbox(workers, level=level) as second,
        ThreadPoolExecutor(workers) as threads,
        ThreadPoolExecutor(1) as thread,
    ):
        progress("questions: making programs and tests")
        rng = np.random.default_rng(config.seed)
        with Sandbox(workers, level=level) as third:
            made = questions(problems, third, rng, 1 + config.questions)
        if not made:
            yield Figure("questions", "verdicts", None, note="no problem gives enough calls")
            return
        fresh = partial(_fresh, threads)
        referee, alone = partial(_referee, Referee(first)), _Alone(second)
        ways: dict[str, Callable[[Sequence[Question]], Verdicts]] = {
            "python": partial(fresh, fresh_python.PYTHON),
            "referee, new tests": partial(referee, "1"),
            "referee, known tests": partial(referee, "2"),
            "python -I -S": partial(fresh, fresh_python.SLIM_PYTHON),
            "python, one at a time": partial(_fresh, thread, fresh_python.PYTHON),
            "sandbox alone, new tests": partial(alone.judge, "1"),
            "sandbox alone, known tests": partial(alone.judge, "2"),
        }
        referee("0", made[:1])  # starts the processes; this question's tests are then known
        alone.judge("0", made[:1])
        found = _in_turn(ways, made[1:] or made, config.batch, progress)
    yield from _figures(*found, made[1:] or made, workers)


def _in_turn(
    ways: dict[str, Callable[[Sequence[Question]], Verdicts]],
    made: Sequence[Question],
    size: int,
    progress: Progress,
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Verdicts per second of each way on each batch, and how many verdicts are not the first way's."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    differ = dict.fromkeys(ways, 0)
    for start in range(0, len(made), size):
        batch = made[start : start + size]
        expected: Verdicts | None = None
        for name, judge in ways.items():
            progress(f"questions: {start}/{len(made)}, {name}")
            begin = time.perf_counter()
            verdicts = judge(batch)
            seconds = time.perf_counter() - begin
            rates[name].append(sum(map(len, verdicts)) / seconds)
            expected = expected or verdicts
            differ[name] += sum(
                one != other
                for ours, theirs in zip(verdicts, expected, strict=True)
                for one, other in zip(ours, theirs, strict=True)
            )
    return rates, differ


def _figures(
    rates: dict[str, list[float]],
    differ: dict[str, int],
    made: Sequence[Question],
    workers: int,
) -> Iterator[Figure]:
    tests = [
        test
        for question in made
        for program in range(len(question.programs))
        for test in question.tests(program)
    ]
    distinct = sum(len({test for i in range(len(q.programs)) for test in q.tests(i)}) for q in made)
    yield Figure(
        "questions",
        "asserts, different in a question",
        100 * distinct / len(tests),
        "%",
        note=f"{len(made)} questions, {len(tests)} verdicts, {workers} processes at a time",
    )
    for name, values in rates.items():
        if name.startswith("python"):
            continue
        same = f"{differ[name]} verdicts DIFFER" if differ[name] else "same verdicts"
        yield Figure(
            "questions",
            f"{name} / python",
            median(values),
            "verdicts/s",
            median(rates["python"]),
            note=f"{same}; as many processes at a time as workers",
        )
        if "known" in name:
            yield Figure(
                "questions",
                f"{name} / python, one at a time",
                median(values),
                "verdicts/s",
                median(rates["python, one at a time"]),
                at_least=TIMES,
                note="one new process after the other",
            )
    yield Figure(
        "questions",
        "referee, known tests / python -I -S",
        median(rates["referee, known tests"]),
        "verdicts/s",
        median(rates["python -I -S"]),
        note="the quickest way to start a new process",
    )


def _fresh(
    threads: ThreadPoolExecutor, python: Sequence[str], batch: Sequence[Question]
) -> Verdicts:
    jobs = [
        threads.submit(
            fresh_python.judge, python, question.problem.reference, program, question.tests(number)
        )
        for question in batch
        for number, program in enumerate(question.programs)
    ]
    return [job.result() for job in jobs]


def _referee(referee: Referee, label: str, batch: Sequence[Question]) -> Verdicts:
    """All that training asks for: also duplicates, corrections and rewards."""
    rounds = [
        Round(question.problem, program, suites)
        for question in batch
        for program, suites in zip(question.renamed(label), question.suites, strict=True)
    ]
    return [
        "".join(_letter(test) for suite in verdict.suites for test in suite.tests)
        for verdict in referee.judge(rounds)
    ]


def _letter(test: TestVerdict) -> str:
    if test.status != "kept":
        return "x"
    return "F" if test.broke else "."


class _Alone:
    """The sandbox without the referee: what the reference passes is remembered for each question."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._right: dict[str, dict[str, bool]] = {}

    def judge(self, label: str, batch: Sequence[Question]) -> Verdicts:
        """The verdicts on a batch."""
        new = [question for question in batch if question.problem.task_id not in self._right]
        jobs = []
        for question in new:
            tests = [test for i in range(len(question.programs)) for test in question.tests(i)]
            jobs.append(_job(question, question.problem.reference, list(dict.fromkeys(tests))))
        count = len(jobs)
        jobs += [
            _job(question, program, question.tests(number))
            for question in batch
            for number, program in enumerate(question.renamed(label))
        ]
        results = self._sandbox.run_many(jobs)
        for question, job, judged in zip(new, jobs, results, strict=False):
            right = [result.passed for result in judged]
            self._right[question.problem.task_id] = dict(zip(job.tests, right, strict=True))
        verdicts = []
        of = [question for question in batch for _ in question.programs]
        for question, job, judged in zip(of, jobs[count:], results[count:], strict=True):
            right_of = self._right[question.problem.task_id]
            letters = [
                ("." if result.passed else "F") if right_of[test] else "x"
                for test, result in zip(job.tests, judged, strict=True)
            ]
            verdicts.append("".join(letters))
        return verdicts


def _job(question: Question, program: str, tests: Sequence[str]) -> Job:
    return Job(program, tests, question.problem.entry_point)
