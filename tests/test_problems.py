"""Problems: construction, every layout of rows, every error in a row, the public data sets."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from problem_rows import LAYOUTS, OWN, SOLUTION, judged, public_set

import codea1_env
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import row_of, to_problem
from codea1_env.problems import Problem, ProblemsError, check_playable, load_problems
from codea1_env.sandbox import UNKNOWN, Case, Outcome, Sandbox

# Problem


def test_problem_is_immutable_hashable_and_can_be_copied() -> None:
    problem = Problem(**OWN)
    assert problem.tests == ("assert double(2) == 4", "assert double(0) == 0")
    assert problem.cases == (Case((2,), {}, 4), Case((0,), {}, 0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.prompt = "other"  # type: ignore[misc]
    for twin in (copy.deepcopy(problem), copy.copy(problem), pickle.loads(pickle.dumps(problem))):
        assert twin == problem
        assert hash(twin) == hash(problem)
        assert twin.tests == problem.tests
    assert json.loads(json.dumps(row_of(problem))) == OWN


@pytest.mark.parametrize(
    ("field", "value", "error", "message"),
    [
        ("entry_point", "f(x); import os", ValueError, "entry_point to be a Python name"),
        ("tests", "assert f(1)", TypeError, "tests to be a list or tuple of str"),
        ("compare", "alike", ValueError, "compare to be one of equal, exact, set, not-none, lines"),
        ("checker", "def right(x): ...", ValueError, "checker to define check"),
        ("prompt", "\ud800", ValueError, r"prompt to be text .* lone surrogate '\\ud800' at 0"),
    ],
)
def test_wrong_fields_are_refused(field, value, error, message):
    with pytest.raises(error, match=f"Expect Problem.{message}"):
        Problem(**{**OWN, field: value})


def test_a_reference_may_be_unknown_where_there_are_tests() -> None:
    assert not Problem(**{**OWN, "reference": " "}).playable
    assert Problem(**OWN).playable
    with pytest.raises(ValueError, match="reference not to be empty where there are no tests"):
        Problem(**{**OWN, "reference": " ", "tests": []})


PROGRAM = {
    "task_id": "own/inc",
    "prompt": "Print the next number.",
    "reference": "print(int(input()) + 1)",
}


def printed(stdin: str, stdout: object) -> Case:
    return Case((stdin,), {}, stdout)


def test_programs_that_read_input() -> None:
    problem = Problem(**PROGRAM, entry_point="", cases=[printed("1", "2")])
    assert (problem.kind, problem.compare, problem.playable) == ("program", "lines", True)
    assert problem.tests == ("assert run('1') == '2'",)
    assert problem == Problem(**PROGRAM, entry_point="", kind="program", cases=problem.cases)
    assert problem == Problem(**PROGRAM, entry_point="", tests=["assert run('1') == '2'"])
    assert hash(problem) != hash(Problem(**PROGRAM, entry_point=""))
    for changes, said in (
        ({"kind": "program", "entry_point": "f"}, "entry_point to be empty where kind is program"),
        ({"kind": "script"}, "kind to be"),
        ({"compare": "set"}, "compare to be lines or loose-lines where programs print"),
        ({"test_module": "import solution"}, "test_module to be empty"),
        ({"contract": "assert stdin"}, r"contract of a program to define check\(stdin\)"),
        ({"cases": [Case(("1", "2"), {}, "3")]}, "case 1: stdin to be a str"),
        ({"cases": [printed("1", "2"), printed("1", 2)]}, "case 2: stdout to be a str"),
        ({"cases": [printed("\ud800", "2")]}, "case 1: stdin to be text in UTF-8"),
        (
            {"cases": [printed("1", "2\0")]},
            "case 1: stdout to be text without NUL, actually: 'one at 1'",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            Problem(**{**PROGRAM, "entry_point": "", **changes})
    with pytest.raises(ValueError, match="compare to be lines or loose-lines where programs print"):
        Problem(**{**OWN, "compare": "lines"})


def test_rows_of_programs() -> None:
    cases = [{"stdin": "1\n", "stdout": "2\n"}, {"stdin": "7\n"}]
    row = {**PROGRAM, "kind": "program", "cases": cases, "metadata": {"split": "train"}}
    problem = to_problem(Row(row, ""))
    assert problem.cases == (printed("1\n", "2\n"), printed("7\n", UNKNOWN))
    assert row_of(problem) == row
    assert to_problem(Row({**row, "entry_point": "", "kind": None}, "")) == problem
    for wrong, said in (
        ([{"stdout": "1"}], "case 1 of a program to be an object with stdin and stdout"),
        (
            [{"stdin": "1\n", "stdout": "2"}, {"stdin": "1", "stdout": "3"}],
            "cases 1 and 2 have the same input",
        ),
        ([{"stdin": "1", "stdout": "2", "x": 3}], "case 1 of a program"),
        ([3], "case 1 of a program"),
        ("x", "'cases' to be a list of objects"),
        (
            [{"stdin": "1", "stdout": "2"}, {"stdin": ["1"], "stdout": "2"}],
            "stdin of case 2 to be text",
        ),
        ([{"stdin": "1", "stdout": None}], "stdout of case 1 to be text"),
        (
            [{"stdin": "1 " * 5_000_000, "stdout": "2"}],
            "at most 8,388,608 bytes, actually: 10,000,000",
        ),
        ([{"stdin": "1\0", "stdout": "2"}], "text without NUL"),
        ([{"stdin": "\udc80", "stdout": "2"}], "lone surrogate"),
    ):
        with pytest.raises(ProblemsError, match=f"^set.jsonl, line 3: .*{said}"):
            to_problem(Row({**row, "cases": wrong}, "set.jsonl, line 3"))


def test_problems_that_cannot_be_played_are_refused_at_once() -> None:
    bare = Problem(**{**OWN, "task_id": "bare", "reference": ""})
    with pytest.raises(ProblemsError, match="actually bare has none, and 1 more"):
        codea1_env.parallel_env(problems=[Problem(**OWN), bare, replace(bare, task_id="other")])
    check_playable([Problem(**PROGRAM, entry_point="")])


# Layouts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tests_of_every_layout_tell_right_from_wrong(layout: str, sandbox: Sandbox) -> None:
    problem = to_problem(Row(LAYOUTS[layout], "here"))
    assert problem.entry_point == "double"
    assert "Double it." in problem.prompt
    assert problem.prompt.endswith('"""\n')
    assert bool(problem.number_of_tests) == (layout != "ult")
    if problem.number_of_tests:
        results = judged(problem, problem.reference, sandbox)
        assert [result.outcome for result in results] == [Outcome.PASS] * len(results)
        inside = layout in ("bigcodebench", "mbpp sanitized")
        assert {each.judged for each in results} == {"inside" if inside else "outside"}
        results = judged(problem, "import math\ndef double(x): return 3 * x + 1", sandbox)
        assert Outcome.PASS not in {result.outcome for result in results}


@pytest.mark.parametrize("layout", ["kodcode", "bigcodebench"])
def test_no_tests_are_not_a_pass(layout: str, sandbox: Sandbox) -> None:
    field = "test" if layout == "bigcodebench" else "test_code"
    empty = "import unittest\nclass TestCases(unittest.TestCase): pass\n"
    problem = to_problem(Row({**LAYOUTS[layout], field: empty}, "here"))
    (result,) = judged(problem, SOLUTION, sandbox)
    assert result.outcome is not Outcome.PASS


def test_function_called_check(sandbox: Sandbox) -> None:
    """The function of MBPP/56 has the name that the test program uses for itself."""
    row = {**LAYOUTS["mbpp+ release"], "entry_point": "check"}
    row["canonical_solution"] = "def check(n):\n    return n == 2\n"
    row["test"] = "def check(check):\n    assert check(*[2])\n    assert not check(*[3])\n"
    problem = to_problem(Row(row, "here"))
    assert problem.cases == (Case((2,), {}, True), Case((3,), {}, False))
    assert all(each.passed for each in judged(problem, problem.reference, sandbox))
    always = judged(problem, "def check(n): return True", sandbox)
    assert [each.passed for each in always] == [True, False]


def test_carriage_returns_of_mbpp_are_removed() -> None:
    problem = to_problem(Row(LAYOUTS["mbpp full"], "here"))
    assert "\r" not in problem.reference + problem.prompt + "".join(problem.tests)
    assert problem.tests == ("assert double(2) == 4", "assert double(-2) == -4")


@pytest.mark.parametrize(
    ("task_id", "split"),
    [(10, "prompt"), (11, "test"), (511, "validation"), (601, "train")],
)  # fmt: skip
def test_splits_of_mbpp(task_id: int, split: str) -> None:
    row = {**LAYOUTS["mbpp full"], "task_id": task_id}
    assert to_problem(Row(row, "here")).metadata == {"source": "mbpp", "split": split}
    assert to_problem(Row(row, "here", "theirs")).metadata["split"] == "theirs"


def test_description_cannot_end_the_docstring() -> None:
    row = {**LAYOUTS["ult"], "prompt": 'Ends """ early \\ and\r\n  goes on.'}
    namespace: dict[str, Any] = {}
    exec(to_problem(Row(row, "here")).prompt + "    return 1\n", namespace)
    # Python 3.13 takes the indentation away.
    assert inspect.cleandoc(namespace["double"].__doc__) == 'Ends """ early \\ and\ngoes on.'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 2], "Expect a JSON object, actually: list [1, 2]."),
        (None, "Expect a JSON object"),
        ({"task_id": "a", "prompt": "b", "entry_point": "c"}, "nearest layout, codea1, also has: reference"),
        ({**OWN, "tests": "assert double(1)"}, "Expect 'tests' to be a list of texts"),
        ({**LAYOUTS["mbpp full"], "test_list": ["assert g(1)"], "challenge_test_list": []}, "to call a function of the program (double)"),
        ({**LAYOUTS["kodcode"], "test_info": []}, "Expect 'test_info' to hold a function_name"),
    ],
)  # fmt: skip
def test_wrong_rows_name_place_and_remedy(row: object, message: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        to_problem(Row(row, "set.jsonl, line 3"))
    assert str(caught.value).startswith("set.jsonl, line 3: Expect")
    assert message in str(caught.value)
    assert caught.value.where == "set.jsonl, line 3"


# Public data sets


@pytest.mark.parametrize(
    ("file", "count", "source", "splits"),
    [
        ("humanevalplus", 164, "humaneval+", {"test"}),
        ("mbppplus", 378, "mbpp+", {"test"}),
        ("mbpp", 974, "mbpp", {"prompt", "test", "validation", "train"}),
        ("ult_lite", 200, "ult", {"test"}),
    ],
)
def test_public_data_set(file, count, source, splits, shared_data):
    problems = public_set(shared_data / f"{file}.jsonl.gz")
    assert len(problems) == count
    assert {problem.metadata["source"] for problem in problems} == {source}
    assert {problem.metadata["split"] for problem in problems} == splits
    assert all("\r" not in problem.reference for problem in problems)
    no_data = {"MBPP/367", "MBPP/533", "MBPP/596", "MBPP/601", "MBPP/927"}
    modules = {each.task_id for each in problems if each.test_module}
    assert modules == (no_data if file == "mbpp" else set())


def test_what_one_changes_of_a_bundled_problem_nobody_else_sees() -> None:
    one, other = (load_problems("starter")[0] for _ in range(2))
    assert one == other
    one.metadata["split"] = "none"  # type: ignore[index]
    assert other.metadata["split"] == load_problems("starter")[0].metadata["split"] == "train"
