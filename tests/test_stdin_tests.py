"""Outputs compared, and programs run on inputs."""

from __future__ import annotations

import pytest

from codea1_env.problem_sets.judging import difference, run_stdin_tests, too_large
from codea1_env.problems import Problem, StdinTest
from codea1_env.sandbox import Limits, Outcome, Sandbox


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("", ""),
        ("\n", ""),
        ("a", "a\n"),
        ("  a  \n b", "a\nb \n\n"),
        ("1.0 2", "1 2.00"),
        ("1e3", "1000"),
        ("-0", "0"),
        ("1\t2", "1 2"),
        ("50000000000000000", "50000000000000000.0"),
        ("é", "é"),
    ],
)
def test_alike(printed: str, expected: str) -> None:
    assert difference(printed, expected) == ""


@pytest.mark.parametrize(
    ("printed", "expected", "message"),
    [
        ("", "1", "line 1: printed '', expected '1'"),
        ("1\n2\n3", "1\n2", "printed 3 lines, expected 2"),
        ("50000000000000001", "50000000000000000", "line 1: "),
        ("0.33333333", "0.33333334", "line 1: "),
        ("a  b", "a b", "line 1: "),  # only numbers are compared word by word
        ("sNaN", "1", "line 1: "),
        ("1e999999999999999999", "2", "line 1: "),
        ("x" * 1000, "\u202e", f"line 1: printed '{'x' * 60}...', expected '\\u202e'"),
    ],
)
def test_different(printed: str, expected: str, message: str) -> None:
    assert difference(printed, expected).startswith(message)


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("0.333333", "0.333333333333", True),
        ("1 0.5\n2.0000009", "1 0.5\n2", True),
        ("0.33333", "0.333333333333", False),
        ("1000000.1", "1000000.2", False),  # absolute stays absolute
        ("inf nan 1.0", "inf nan 1.0000001", True),
        ("inf", "1e400", False),
        ("nan 1.0", "1 1.0", False),
        ("1e999999999999 1", "1e999999999998 1", False),
        ("1e-999999999999999 1", "0 1", True),
    ],
)
def test_numbers_within_a_tolerance(printed: str, expected: str, same: bool) -> None:
    assert (difference(printed, expected, atol=1e-6) == "") is same


def test_not_a_number_is_no_number_but_as_text() -> None:
    assert difference("nan", "nan") == ""
    assert difference("nan", "NaN") != ""


def problem_with(*tests: StdinTest) -> Problem:
    return Problem("p", "Double it.", "main", "print(2 * int(input()))", stdin_tests=tests)


TESTS = (StdinTest("3", "6"), StdinTest("0", "0"), StdinTest("-2", "-4"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "outcomes"),
    [
        ("print(2 * int(input()))", ["pass", "pass", "pass"]),
        ("print(abs(2 * int(input())))", ["pass", "pass", "fail"]),
        ("print(6)", ["pass", "fail"]),
        ("import os\nprint(2 * int(input()), flush=True)\nos._exit(0)", ["pass", "pass", "pass"]),
        ("import os\nos._exit(0)", ["fail"]),
        ("print(6 // int(input()) * 3)", ["pass", "error"]),
        ("print(2 *", ["syntax_error"]),
        ("while True: pass", ["timeout"]),
        ("import sys\nsys.exit(1)", ["exited"]),
        ("print('x' * 2_000_000)", ["output_limit"]),
    ],
)
def test_judging_ends_with_the_first_wrong_answer(code, outcomes, sandbox):
    limits = Limits(call_cpu_time=0.5, call_wall_time=5.0)
    results = run_stdin_tests(problem_with(*TESTS), code, limits, sandbox)
    assert [result.outcome.value for result in results] == outcomes
    assert all(result.message for result in results if not result.passed)


def test_large_outputs_are_allowed_where_they_are_expected(sandbox: Sandbox) -> None:
    lines = "12345678\n" * 200_000  # more than the usual limit
    problem = problem_with(StdinTest("", lines))
    (result,) = run_stdin_tests(problem, f"print('12345678\\n' * {200_000})", Limits(), sandbox)
    assert result.outcome is Outcome.PASS


def test_inputs_that_are_too_large_are_named() -> None:
    large = StdinTest("é" * (8 << 20), "1")
    assert too_large([large]) == ""
    assert too_large([large, StdinTest(f"{large.stdin}1", "1")]) == (
        "the input of test 2 has 16,777,217 bytes, and a program can read 16,777,216"
    )
