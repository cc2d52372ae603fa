"""Outcomes of tests on programs, some of which never end."""

from __future__ import annotations

import pytest

from codea1_env.mutation import Mutant
from codea1_env.mutation.kills import limits_beside
from codea1_env.sandbox import JobResult, Outcome, TestResult

RIGHT = "def f(n):\n    return n\n"
ENDLESS_ABOVE_1 = "def f(n):\n    while n > 1:\n        pass\n    return n\n"
WRONG_AT_3 = "def f(n):\n    return 0 if n == 3 else n\n"


def test_kills_of_mutants_some_of_which_never_end(sandbox):
    find_kills = pytest.importorskip("mutator_agreement").find_kills
    codes = [RIGHT, WRONG_AT_3, ENDLESS_ABOVE_1, "def f(n):\n    return -n\n", "def f("]
    mutants = [Mutant(code, "CRP", 1, "") for code in codes]
    tests = ["assert f(1) == 1", "for i in [2]:\n    assert f(i) == i", "assert f(3) == 3"]
    assert find_kills(RIGHT, "f", tests, mutants, sandbox) == {1, 2, 3, 4}
    assert find_kills(RIGHT, "f", tests[:1], mutants, sandbox) == {3, 4}
    assert find_kills(RIGHT, "f", [], mutants, sandbox) == frozenset()


def test_limits_follow_the_reference_in_steps():
    def took(*seconds: float) -> JobResult:
        tests = tuple(TestResult(Outcome.PASS, cpu_time=each) for each in seconds)
        return JobResult(TestResult(Outcome.PASS, cpu_time=0.01), tests)

    assert limits_beside(took(0.001)).run_cpu_time == 0.5
    assert limits_beside(took(0.2, 0.1)).run_cpu_time == 1.5
    assert limits_beside(took(0.2, 0.12)) == limits_beside(took(0.2, 0.1))
