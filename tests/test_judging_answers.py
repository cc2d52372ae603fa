"""Answers to several problems are judged at once, and what fails among them leaves a referee that works."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading

import pytest

from codea1_env import Referee, Sandbox
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


@pytest.fixture(scope="module")
def judges(sandbox: Sandbox) -> Referee:
    return Referee(sandbox)


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
