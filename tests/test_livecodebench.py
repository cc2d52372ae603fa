"""LiveCodeBench rows: both kinds of problems, and every way in which a row can be wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from problem_rows import CLASS, CONTEST, contest_tests, packed

from codea1_env.problem_sets.judging import submit_to_tests, too_large
from codea1_env.problem_sets.livecodebench import PREAMBLE
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import Problem, ProblemsError
from codea1_env.sandbox import Case, Limits, Outcome, Sandbox, difference


def problem_of(row: dict[str, Any]) -> Problem:
    return to_problem(Row(row, "set.jsonl, line 1", "v6"))


def outcomes(problem: Problem, code: str, sandbox: Sandbox) -> list[str]:
    result = submit_to_tests(problem, code, Limits(), sandbox, stop=True).result()
    return [test.outcome.value for test in result.tests]


def test_programs_that_read_input(sandbox: Sandbox) -> None:
    problem = problem_of(CONTEST)
    assert (problem.task_id, problem.entry_point) == ("LiveCodeBench/abc900_a", "")
    assert problem.cases == (
        Case(("1\n2\n",), {}, "3\n"), Case(("-1\n1",), {}, "0"), Case(("7\n8",), {}, "15"),
    )  # fmt: skip
    assert problem.compare == "loose-lines"
    assert not problem.playable
    told = {"platform": "atcoder", "difficulty": "easy", "contest_date": "2024-05-04T00:00:00"}
    assert problem.metadata == {"source": "livecodebench", "split": "v6", **told}
    assert outcomes(problem, "print(int(input()) + int(input()))", sandbox) == ["pass"] * 3
    # Imports that contest programs take for granted; judging ends with the first wrong answer.
    short = "a, b = map(int, stdin.read().split())\nprint(abs(a) + abs(reduce(add, [b])))"
    assert outcomes(problem, short, sandbox) == ["pass", "fail"]
    guarded = "def main():\n    print(int(input()) + int(input()))\nif __name__ == '__main__':\n    main()"
    assert outcomes(problem, guarded, sandbox) == ["pass"] * 3


def test_programs_that_complete_a_class(sandbox: Sandbox) -> None:
    problem = problem_of(CLASS)
    assert problem.entry_point == "Solution.turned"
    assert problem.cases[0] == Case(([1, 2], 3), {}, [6, 3])
    assert len(problem.cases) == 3
    assert "class Solution:" in problem.prompt
    start = "class Solution:\n    def turned(self, nums: List[int], k: int) -> List[int]:\n"
    for body, expected in (
        ("        return [k * n for n in nums[::-1]]", ["pass"] * 3),
        ("        return tuple(k * n for n in nums[::-1])", ["pass"] * 3),
        ("        return [k * n for n in nums]", ["fail"]),
        ("        return [k * n for n in nums[::-1]] or None", ["pass", "fail"]),
        ("        return 1 / 0", ["error"]),
    ):
        assert outcomes(problem, start + body, sandbox) == expected


def test_values_of_every_kind_survive(sandbox: Sandbox) -> None:
    cases = [
        ('{"a": [null, true, 1.5, "\\u00e9\\n\'"]}', '{"a": [null, true, 1.5, "\\u00e9\\n\'"]}')
    ]
    row = {**CLASS, "public_test_cases": contest_tests("functional", *cases)}
    problem = problem_of({**row, "private_test_cases": "[]"})
    same = "class Solution:\n    def turned(self, x): return x"
    assert outcomes(problem, same, sandbox) == ["pass"]
    other = "class Solution:\n    def turned(self, x): return {'a': [None, 1, 1.5, 'e']}"
    assert outcomes(problem, other, sandbox) == ["fail"]


DIGITS = "1" + "0" * 40_000


@pytest.mark.slow
def test_integers_of_more_digits_than_python_prints(sandbox: Sandbox) -> None:
    """LiveCodeBench's evaluator allows 50,000."""
    row = {**CONTEST, "public_test_cases": contest_tests("stdin", ("40000", DIGITS))}
    printing = problem_of({**row, "private_test_cases": "[]"})
    assert outcomes(printing, "print(10 ** int(input()))", sandbox) == ["pass"]
    assert outcomes(printing, "print(len(str(10 ** int(input()))))", sandbox) == ["fail"]
    row = {**CLASS, "public_test_cases": contest_tests("functional", (DIGITS, f"-{DIGITS}"))}
    returning = problem_of({**row, "private_test_cases": "[]"})
    start = "class Solution:\n    def turned(self, n):\n        return "
    assert returning.cases == (Case((10**40_000,), {}, -(10**40_000)),)
    assert outcomes(returning, f"{start}-n", sandbox) == ["pass"]
    assert outcomes(returning, f"{start}-int(str(n))", sandbox) == ["pass"]
    assert outcomes(returning, f"{start}-n + 1", sandbox) == ["fail"]


def test_a_class_that_is_not_there(sandbox: Sandbox) -> None:
    problem = problem_of(CLASS)
    for code in ("def turned(nums, k): return nums", "class Solution: pass", "Solution = 3"):
        result = submit_to_tests(problem, code, Limits(), sandbox, stop=True).result()
        assert "does not define 'Solution.turned'" in result.load.message


def test_the_preamble_runs_and_offers_what_contests_use(sandbox: Sandbox) -> None:
    names = "List deque heappush bisect_left gcd lru_cache Counter defaultdict inf cache permutations sys math"
    code = f"{PREAMBLE}\nfor name in {names.split()!r}: eval(name)\nprint(open(0).read(), pow(2, 5, 7), datetime.__name__)"
    result = sandbox.run_script(code)
    assert result.message == ""
    assert result.stdout == " 4 datetime\n"  # `open`, `pow` are not those of os and math


HUGE = "[" * 100_000
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"public_test_cases": "{"}, "Expect 'public_test_cases' to be JSON, actually: "),
    ({"public_test_cases": HUGE}, "Expect 'public_test_cases' to be JSON, actually: "),
    ({"public_test_cases": '[{"input": "1"}]'}, "to have the texts input, output and testtype"),
    ({"public_test_cases": contest_tests("other", ("1", "2"))}, "(stdin or functional)"),
    ({"public_test_cases": contest_tests("functional", ("1", "2"))}, "Expect tests of one kind, actually: functional, stdin"),
    ({"public_test_cases": "[]", "private_test_cases": "[]"}, "actually: no tests"),
    ({"private_test_cases": "!"}, "Expect 'private_test_cases' to be JSON or packed JSON. Expect base64"),
    ({"private_test_cases": packed(contest_tests("stdin", ("\ud800", "2")))}, "lone surrogate"),
    (
        {"public_test_cases": contest_tests("stdin", ("5", "2")), "private_test_cases": contest_tests("stdin", ("5\n", "3"))},
        "Expect one output for each input, actually cases 1 and 2 have the same input, and the outputs '2' and '3'",
    ),
    ({"question_id": 7}, "Expect 'question_id' to be text"),
]  # fmt: skip
BROKEN_CLASS: list[tuple[dict[str, Any], str]] = [
    (
        {"public_test_cases": contest_tests("functional", ("[1]\n2", "2")), "private_test_cases": contest_tests("functional", ("[1]\n2", "3"))},
        "Expect one value for each call, actually cases 1 and 2 have the same arguments, and the values 2 and 3",
    ),
    ({"metadata": "{}"}, "to name the method of functional tests as func_name, actually: dict {}"),
    ({"metadata": json.dumps({"func_name": "f(); import os"})}, "as func_name"),
    ({"public_test_cases": contest_tests("functional", ("__import__('os')", "2"))}, "Expect 'input' to be JSON"),
    ({"public_test_cases": contest_tests("functional", ("1", "NaN"))}, "NaN is no JSON"),
    ({"public_test_cases": contest_tests("functional", ("9" * 50_001, "1"))}, "Expect 'input' to be JSON"),
    ({"public_test_cases": contest_tests("functional", (HUGE, "1"))}, "Expect 'input' to be JSON"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "message"),
    [
        *[({**CONTEST, **change}, message) for change, message in BROKEN],
        *[({**CLASS, **change}, message) for change, message in BROKEN_CLASS],
    ],
)
def test_broken_rows_are_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        problem_of(row)
    assert str(caught.value).startswith("set.jsonl, line 1: ")
    assert message in str(caught.value)


def test_the_same_test_twice_is_no_fault() -> None:
    for row, kind, cases in (
        (CONTEST, "stdin", [("5", "2"), ("5\n", "2.0\n")]),
        (CLASS, "functional", [("[1]\n2", "2"), ("[1]\n2", "2.0")]),
    ):
        tests = contest_tests(kind, *cases)
        assert len(problem_of({**row, "public_test_cases": tests, "private_test_cases": "[]"}).cases) == 2  # fmt: skip


def test_a_row_without_private_tests_is_no_row() -> None:
    row = {name: value for name, value in CONTEST.items() if name != "private_test_cases"}
    with pytest.raises(ProblemsError, match="layout, livecodebench, also has: private_test"):
        problem_of(row)


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
    assert difference(printed, expected, loose=True) == ""


@pytest.mark.parametrize(
    ("printed", "expected", "atol", "alike"),
    [
        ("a", "a\n", 0, True),
        ("a  \nb\t\n\n", "a\nb", 0, True),
        ("a\r\nb", "a\nb\n", 0, True),
        (" a", "a", 0, False),
        ("\na", "a", 0, False),
        ("a\n\nb", "a\nb", 0, False),
        ("2.50", "2.5", 0, False),
        ("2.50", "2.5", 1e-9, True),
        ("x is 2.5000001", "x is 2.5", 1e-6, True),
        ("  2.5000001", "2.5", 1e-6, False),
        ("y is 2.5", "x is 2.5", 1e-6, False),
        ("1 2", "1  2", 0, False),
        ("1  2.5000001", "1 2.5", 1e-6, False),
        ("1\t2.5000001", "1 2.5", 1e-6, False),
        ("1  2.5000001", "1  2.5", 1e-6, True),
        *((odd, "1", 1, False) for odd in ("1_0", "nan", "inf", "+1", "\u0661", "0x1", "1e", "--1", "1,0", "1.0.0", ".")),
        ("1", "nan", 1, False),
        ("1e0 -0 .5 1. nan", "1 0 0.5 1 nan", 1e-9, True),
        ("1e999999999999999999", "2", 1, False),
    ],
)  # fmt: skip
def test_lines(printed: str, expected: str, atol: float, alike: bool) -> None:
    assert (difference(printed, expected, atol) == "") is alike


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
    assert difference(printed, expected, loose=True).startswith(message)


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
    assert (difference(printed, expected, atol=1e-6, loose=True) == "") is same


def test_not_a_number_is_no_number_but_as_text() -> None:
    assert difference("nan", "nan") == ""
    assert difference("nan", "NaN") != ""


def problem_with(*tests: tuple[str, str]) -> Problem:
    cases = tuple(Case((stdin,), {}, stdout) for stdin, stdout in tests)
    return Problem("p", "Double it.", "", "print(2 * int(input()))", cases=cases)


TESTS = (("3", "6"), ("0", "0"), ("-2", "-4"))


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
        ("print(2 *", []),
        ("while True: pass", ["timeout"]),
        ("import sys\nsys.exit(1)", ["exited"]),
        ("print('x' * 2_000_000)", ["output_limit"]),
    ],
)
def test_judging_ends_with_the_first_wrong_answer(code, outcomes, sandbox):
    limits = Limits(call_cpu_time=0.5, call_wall_time=5.0)
    found = submit_to_tests(problem_with(*TESTS), code, limits, sandbox, stop=True).result()
    assert [result.outcome.value for result in found.tests] == outcomes
    assert all(result.message for result in found.tests if not result.passed)
    assert found.load.outcome is (Outcome.PASS if outcomes else Outcome.SYNTAX_ERROR)


def test_large_outputs_are_allowed_where_they_are_expected(sandbox: Sandbox) -> None:
    lines = "12345678\n" * 200_000  # more than the usual limit
    problem = problem_with(("", lines))
    assert outcomes(problem, f"print('12345678\\n' * {200_000})", sandbox) == ["pass"]


def test_inputs_that_are_too_large_are_named() -> None:
    large = "é" * (8 << 20)
    assert too_large(problem_with((large, "1"))) == ""
    assert too_large(problem_with((large, "1"), (f"{large}1", "1"))) == (
        "the input of test 2 has 16,777,217 bytes, and a program can read 16,777,216"
    )
