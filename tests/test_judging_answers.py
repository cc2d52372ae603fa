"""A referee that has answers judged in several places."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from codea1_env import Referee, Sandbox
from codea1_env.judging.spread import Reply, SpreadReferee, answer
from codea1_env.judging.verdicts import AttackAnswers, Judged
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem, load_problems
from codea1_env.responses import Program

PROBLEMS = load_problems("starter", "train")[:3]
HOSTILE = ["", "nonsense(", "assert f(\0) == 1", "assert is_even(2) == 3\n" * 9, "[" * 10_000]
SLOW = Problem("slow", "def f(n):", "f", "def f(n):\n    return n")


def answers(problems=PROBLEMS, hostile=HOSTILE):
    """Two programs for each problem, the reference and one that is wrong; its own tests and hostile ones."""
    asked = [problem for problem in problems for _ in range(2)]
    programs = [
        Program(code)
        for problem in problems
        for code in (problem.reference, f"def {problem.entry_point}(*args):\n    return args")
    ]
    attacks = [text for problem in asked for text in ("\n".join(problem.tests), *hostile)]
    history = {problem.task_id: problem.tests[:2] for problem in problems[::2]}
    return asked, programs, attacks, history


def timeless(judged: list[Judged]) -> list[Judged]:
    """Without the CPU time of a program, which is not the same twice."""
    return [
        (suites, dataclasses.replace(verdict, load=dataclasses.replace(verdict.load, cpu_time=0.0)))
        for suites, verdict in judged
    ]


class Here:
    """A place in this process. The real ones are actors of a cluster, see tests/cluster."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._referee = Referee(sandbox)
        self._lock = threading.Lock()

    def ask(self, part: AttackAnswers) -> Reply:
        with self._lock:
            reply = answer(self._referee, part)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ready(self) -> bool:
        return True

    def hang_up(self) -> None:
        return None

    def close(self) -> None:
        return None


@pytest.fixture(scope="module")
def judges(sandbox: Sandbox) -> Iterator[SpreadReferee]:
    with SpreadReferee(sandbox, None, [Here(sandbox), Here(sandbox)]) as made:
        yield made


def test_verdicts_and_counters_are_those_of_one_place(sandbox, judges):
    referee = Referee(sandbox)
    expected = referee.judge_answers(*answers())
    before = dataclasses.replace(judges.counters)
    found = judges.judge_answers(*answers())
    assert repr(timeless(found)) == repr(timeless(expected))
    for name in ("programs", "tests", "timeouts", "errors"):
        done = getattr(judges.counters, name) - getattr(before, name)
        assert done == getattr(referee.counters, name)
    assert referee.counters.tests > 50
    assert judges.judge_answers([], [], [], {}) == []


def test_errors_of_the_data_come_out(judges):
    broken = Problem("broken", "def f(n): ...", "f", "raise ValueError")
    program = Program("def f(n): return n")
    asked = [PROBLEMS[0], broken, SLOW], [program] * 3, ["assert f(1) == 1"] * 3, {}
    with pytest.raises(BrokenReferenceError, match="problem 'broken' to run"):
        judges.judge_answers(*asked)
    assert len(judges.judge_answers(*answers())) == 2 * len(PROBLEMS)


def test_an_interrupt_leaves_judges_that_work(judges):
    sleeps = Program("import time\ndef f(n):\n    time.sleep(0.5)\n    return n")
    slow = [dataclasses.replace(SLOW, task_id=f"slow/{i}") for i in range(8)]
    asked = slow, [sleeps] * 8, ["assert f(1) == 1"] * 8, {}
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        judges.judge_answers(*asked)
    timer.join()
    assert len(judges.judge_answers(*answers())) == 2 * len(PROBLEMS)
