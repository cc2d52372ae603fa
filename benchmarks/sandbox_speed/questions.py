"""Verdicts per second on whole questions, beside one new Python process for each program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np

from codea1_env.judging.verdicts import Round, TestVerdict
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.responses import Program
from codea1_env.sandbox import Sandbox, encoded_arguments
from codea1_env.sandbox.jobs import HASH_SEEDS
from sandbox_speed.baselines import PYTHON, SLIM_PYTHON, judge_in_new_process
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure
from sandbox_speed.jobs import Question, questions

TIMES = 2.9
_RULES = RefereeConfig(domain="any", float_tolerance=0)
"""As Python judges the same asserts."""
_WAITS = "import time\ndef f():\n    time.sleep(0.5)\n"
MAIN_CPU = 60.0
"""Microseconds of the main process for each test, at most."""

Verdicts = list[str]
"""One text for each program of a batch, one letter per test as `judge_in_new_process` has them."""


def measure(
    problems: Sequence[Problem], config: SpeedConfig, level: str | None, progress: Progress
) -> Iterator[SpeedFigure]:
    """Judge batches of questions in turn: by new processes, and by the game."""
    workers = config.pool_size
    with (
        Sandbox(workers, level=level) as sandbox,
        ThreadPoolExecutor(workers) as threads,
    ):
        progress("questions: making programs and tests")
        rng = np.random.default_rng(config.seed)
        with Sandbox(workers, level=level) as other:
            made = questions(problems, other, rng, 1 + config.questions)
        if not made:
            yield SpeedFigure("questions", "verdicts", None, note="no problem gives enough calls")
            return
        fresh = partial(_fresh, threads)
        game = _Game(sandbox)
        ways: dict[str, Callable[[Sequence[Question]], Verdicts]] = {
            "python": partial(fresh, PYTHON),
            "game": game.judge,
            "python -I -S": partial(fresh, SLIM_PYTHON),
        }
        _warm_up(sandbox)
        _meet(made, sandbox)
        # Under a name of its own: nothing of what follows is remembered.
        game.judge([replace(made[0], problem=replace(made[0].problem, task_id="0"))])
        game.cpu.clear()
        found = _in_turn(ways, made[1:] or made, config.batch, progress)
    yield from _figures(*found, game.cpu, made[1:] or made, workers, config.batch)


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
    cpu: list[float],
    made: Sequence[Question],
    workers: int,
    batch: int,
) -> Iterator[SpeedFigure]:
    of_each = [
        [test for number in range(len(question.programs)) for test in question.tests(number)]
        for question in made
    ]
    total = sum(map(len, of_each))
    yield SpeedFigure(
        "questions", "asserts, different in a question", 100 * sum(len({*tests}) for tests in of_each) / total, "%",
        note=f"{len(made)} questions, {batch} at a time, {total} verdicts, {workers} processes at a time",
    )  # fmt: skip
    same = f"{differ['game']} verdicts DIFFER" if differ["game"] else "same verdicts"
    notes = {
        "python": f"{same}; as many processes at a time as workers",
        "python -I -S": "the quickest way to start a new process",
    }
    for python, note in notes.items():
        yield SpeedFigure(
            "questions", f"game, tests never seen / {python}", median(rates["game"]), "verdicts/s",
            median(rates[python]), at_least=TIMES if python == "python" else None, note=note,
        )  # fmt: skip
    yield SpeedFigure(
        "questions", "game, CPU of the main process for a test", 1e6 * median(cpu), "us", at_most=MAIN_CPU,
    )  # fmt: skip


def _fresh(
    threads: ThreadPoolExecutor, python: Sequence[str], batch: Sequence[Question]
) -> Verdicts:
    jobs = [
        threads.submit(
            judge_in_new_process,
            python,
            question.problem.reference,
            program,
            question.tests(number),
        )
        for question in batch
        for number, program in enumerate(question.programs)
    ]
    return [job.result() for job in jobs]


def _warm_up(sandbox: Sandbox) -> None:
    """Start all processes that judging needs, which stay for as long as the sandbox."""
    waiting = [
        sandbox.submit(sandbox.run_calls, _WAITS, "f", [encoded_arguments([], {})], hash_seed=seed)
        for seed in range(HASH_SEEDS)
        for _ in range(sandbox.workers)
    ]
    for each in waiting:
        each.result()


def _meet(made: Sequence[Question], sandbox: Sandbox) -> None:
    """Let each reference be loaded and looked at, as the first step with a problem does: its tests to come are new."""
    problems = [question.problem for question in made]
    Referee(sandbox, _RULES).judge([Round(each, each.reference, []) for each in problems])


class _Game:
    """All that training asks for: answers are read, tests ruled on, programs run, both players paid.

    Args:
        sandbox: Where programs run. Each batch has a referee of its own.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.cpu: list[float] = []
        """Seconds of CPU time of this process for each test of a batch."""

    def judge(self, batch: Sequence[Question]) -> Verdicts:
        """Return the verdicts on a batch."""
        answers = [
            "```python\n{}\n```".format("\n".join(suite))
            for question in batch
            for suites in question.suites
            for suite in suites
        ]
        programs = [Program(program) for question in batch for program in question.programs]
        problems = [question.problem for question in batch for _ in question.programs]
        begin = time.process_time()
        judged = Referee(self._sandbox, _RULES).judge_answers(problems, programs, answers, {})
        spent = time.process_time() - begin
        letters = [
            "".join(_letter(test) for suite in verdict.suites for test in suite.tests)
            for _, verdict in judged
        ]
        self.cpu.append(spent / sum(map(len, letters)))
        return letters


def _letter(test: TestVerdict) -> str:
    if test.status != "kept":
        return "x"
    return "F" if test.broke else "."
