"""Outcomes of tests on programs, some of which never end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from codea1_env.mutation.kills import Part, limits_beside, run_on_each, until_settled
from codea1_env.sandbox import JobResult, Limits, Outcome, TestResult

QUICK = Limits(0.2, 2.0, 0.2, 2.0, calls_per_test=1)
RIGHT = "def f(n):\n    return n\n"
ENDLESS_ABOVE_1 = "def f(n):\n    while n > 1:\n        pass\n    return n\n"
SLOW = "def f(n):\n    while n == 0:\n        pass\n    return n\n"
WRONG_AT_3 = "def f(n):\n    return 0 if n == 3 else n\n"


def in_a_loop(n: int) -> str:
    """A test that runs as a program of its own."""
    return f"for i in [{n}]:\n    assert f(i) == i"


def equality(n: int) -> str:
    return f"assert f({n}) == {n}"


def first_failures(programs, tests, entry_point, limits, sandbox):
    """The number of the first test that each program does not pass; None if it passes all."""

    def fails(result: TestResult) -> bool:
        return not result.passed

    rows = run_on_each(programs, tests, entry_point, limits, sandbox, settles=fails)
    return [next((i for i, each in enumerate(row) if each and fails(each)), None) for row in rows]


def passes(programs, tests, entry_point, limits, sandbox):
    rows = run_on_each(programs, tests, entry_point, limits, sandbox)
    return [[each is not None and each.passed for each in row] for row in rows]


@pytest.mark.parametrize("write", [equality, in_a_loop])
def test_the_first_failure_of_each_program(write, sandbox):
    tests = [write(n) for n in (1, 2, 3)]
    programs = [RIGHT, WRONG_AT_3, ENDLESS_ABOVE_1, "def f(n):\n    return -n\n", "def f("]
    assert first_failures(programs, tests, "f", QUICK, sandbox) == [None, 2, 1, 0, 0]


def test_a_test_is_not_blamed_for_the_time_that_others_took(sandbox):
    # Plain equalities run first: the endless one leaves no time to the first test.
    tests = [in_a_loop(1), equality(0), in_a_loop(2), equality(5)]
    assert first_failures([SLOW, RIGHT], tests, "f", QUICK, sandbox) == [1, None]
    assert passes([SLOW], tests, "f", QUICK, sandbox) == [[True, False, True, True]]


def test_every_test_that_never_ends_is_told(sandbox):
    tests = [equality(n) for n in (2, 0, 3)] + [in_a_loop(2), in_a_loop(1)]
    [row] = passes([ENDLESS_ABOVE_1], tests, "f", QUICK, sandbox)
    assert row == [False, True, False, False, True]


def test_a_message_that_lies_about_the_limit_is_a_failure(sandbox):
    text = "assert f(1) == 2, 'the limit of the whole run was reached'"
    assert passes([RIGHT], [text, equality(1)], "f", QUICK, sandbox) == [[False, True]]


def test_a_program_that_never_loads_passes_nothing(sandbox):
    program = "while True:\n    pass\n"
    tests = [equality(1), in_a_loop(1)]
    assert first_failures([program], tests, "f", QUICK, sandbox) == [0]
    assert passes([program], tests, "f", QUICK, sandbox) == [[False, False]]


def test_a_program_that_waits_is_given_up_behind_the_item_that_it_waits_in():
    def run(parts: Sequence[Part]) -> list[list[str]]:
        return [
            ["done" if n < 2 or len(items) == 1 else "waits" for n in items] for _, items in parts
        ]

    found = until_settled(
        1, 5, run, late=lambda each: each == "waits", settles=lambda _: False, waits=lambda _: True
    )
    assert found == [["done", "done", "done", None, None]]


def test_without_tests_nothing_runs(sandbox):
    assert first_failures([RIGHT], [], "f", QUICK, sandbox) == [None]
    assert passes([RIGHT], [], "f", QUICK, sandbox) == [[]]
    assert first_failures([], [equality(1)], "f", QUICK, sandbox) == []


def test_limits_follow_the_reference_in_steps():
    def took(*seconds: float) -> JobResult:
        tests = tuple(TestResult(Outcome.PASS, cpu_time=each) for each in seconds)
        return JobResult(TestResult(Outcome.PASS, cpu_time=0.01), tests)

    assert limits_beside(took(0.001)).run_cpu_time == 0.5
    assert limits_beside(took(0.2, 0.1)).run_cpu_time == 1.5
    assert limits_beside(took(0.2, 0.12)) == limits_beside(took(0.2, 0.1))
