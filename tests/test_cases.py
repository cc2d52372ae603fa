"""Problems as data: statements that become cases, rules of comparison, checkers, values that the reference says."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest
from problem_rows import OWN, judged, template

from codea1_env import compare
from codea1_env.evaluation.program_verdicts import judge_program, run_reference
from codea1_env.problem_sets.evalplus import ROOT, read_list, read_template
from codea1_env.problem_sets.expected import NoValueError
from codea1_env.problem_sets.golden import read_statements
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import row_of, to_problem
from codea1_env.problems import Problem, ProblemsError, load_problems, register_source
from codea1_env.sandbox import UNKNOWN, Case, Limits, Sandbox


def problem_with(
    *cases: Case, reference: str = "def f(*xs): return xs[0]", **fields: Any
) -> Problem:
    return Problem("p", "def f(*xs):", "f", reference, cases=cases, **fields)


def passes(problem: Problem, code: str, sandbox: Sandbox) -> list[bool]:
    return [each.passed for each in judged(problem, code, sandbox)]


# Statements


def test_statements_are_a_view_of_the_cases():
    problem = problem_with(
        Case(([1, (2,)],), {"by": {"a": 1.5}}, {1, 2}),
        Case((1,)),
        Case(("x" * 30_000,), {}, 1),
        Case((float("inf"),), {}, None),
    )
    texts = ("assert f([1, (2,)], by={'a': 1.5}) == {1, 2}", "assert f(float('inf')) == None")
    view = problem.tests
    assert view == texts != view[:1]
    assert pickle.loads(pickle.dumps(view)) == copy.deepcopy(view) == view
    for fields in ({"compare": "set"}, {"checker": ROOT}):
        assert problem_with(Case((1,), {}, 1), **fields).tests == ()


@pytest.mark.parametrize(
    ("tests", "cases", "left"),
    [
        (["x = 3", "assert f(x) == x"], 1, 0),
        (["import math", "assert f(2) == 4"], 1, 0),
        (["assert f(2) == 4", "assert f(2) > 3", "assert f(3) == 9"], 2, 1),
        ([" "], 0, 0),
        (["assert set(f(2)) == {1}", "assert set(f(3)) == {2}"], 2, 0),
        (["assert set(f(2)) == {1}", "assert f(3) == [2]"], 1, 1),
        (["open('a', 'w').write('x')", "assert f('a') == 1"], 0, 2),
        (["assert f('open(1)') == 1  # open(1)"], 1, 0),
    ],
)
def test_what_is_no_data_goes_to_the_test_module(tests: list[str], cases: int, left: int) -> None:
    found = read_statements(tests, "f")
    assert (len(found.cases), found.test_module.count("def test_")) == (cases, left)
    ast.parse(found.test_module)


def test_rows_of_cases(sandbox: Sandbox) -> None:
    row = {
        **OWN,
        "tests": [],
        "cases": [{"args": [2], "expected": 4}, {"kwargs": {"x": 3}, "expected": 6}, {"args": [5]}],
    }
    problem = to_problem(Row(row, "here"))
    assert problem.cases == (Case((2,), {}, 4), Case((), {"x": 3}, 6), Case((5,), {}, UNKNOWN))
    assert passes(problem, problem.reference, sandbox) == [True] * 3
    wrong = "def double(x): return 2 * x if x < 5 else 0"
    assert passes(problem, wrong, sandbox) == [True, True, False]
    assert to_problem(Row(json.loads(json.dumps(row_of(problem))), "here")) == problem
    tuples = dataclasses.replace(problem, cases=(Case(((1,),), {}, UNKNOWN),))
    with pytest.raises(ValueError, match="a case that is a statement or JSON"):
        row_of(tuples)


# Checkers


CHECKER = """
def check(args, output, expected):
    low, high = args
    if output == "raise":
        raise ValueError("odd")
    if output == "loop":
        while True: pass
    if output == "none":
        return None
    return type(output) is int and low <= output <= high
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "passed", "message"),
    [
        ("3", True, ""),
        ("9", False, "the problem's checker says that the output is wrong"),
        ("'raise'", False, "the checker gave no answer: error, ValueError: odd"),
        ("'loop'", False, "the checker gave no answer: timeout"),
        ("'none'", False, "the checker returned NoneType, not True or False"),
    ],
)
def test_checkers(
    value: str, passed: bool, message: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "_CHECKER_LIMITS", Limits(call_cpu_time=0.3, call_wall_time=10.0))
    problem = problem_with(Case((1, 5), {}, 3), checker=CHECKER)
    (result,) = judged(problem, f"def f(low, high): return {value}", sandbox)
    assert (result.passed, result.judged) == (passed, "outside")
    assert message in result.message


SLOWLY = """
import time
def check(args, output, expected):
    end = time.process_time() + output
    while time.process_time() < end: pass
    return output == expected
"""


def test_a_checker_has_one_limit_for_all_that_a_program_returns(sandbox, monkeypatch):
    """Four times what it takes for the expected outputs, at least that of one question; it ends with the first wrong one."""
    limits = Limits(0.5, 10.0, run_cpu_time=0.5, run_wall_time=10.0)
    monkeypatch.setattr(compare, "_CHECKER_LIMITS", limits)
    slow = problem_with(*(Case((0.01,), {}, 0.01) for _ in range(10)), checker=SLOWLY)
    code = "def f(x): return {}"
    found = judged(slow, code.format("0.2"), sandbox)
    assert [each.passed for each in found] == [False] * 10
    assert "the checker gave no answer: timeout" in found[9].message
    [wrong] = submit_to_tests(slow, code.format("0.2"), limits, sandbox, stop=True).result().tests
    assert wrong.message == "the problem's checker says that the output is wrong"
    right = problem_with(*(Case((0.1,), {}, 0.1) for _ in range(6)), checker=SLOWLY)
    assert passes(right, code.format("x"), sandbox) == [True] * 6

    asked, call = [], Sandbox.call
    monkeypatch.setattr(
        Sandbox, "call", lambda *args, **kw: asked.append(args) or call(*args, **kw)
    )
    text = "def check(stdin, output, expected):\n    while output == expected and '2' in stdin: pass\n    return True"
    questions = [(f"{number}", "", "") for number in range(4)]
    checker = compare.Checker(text, sandbox, [("0", "", "")])
    assert [each.passed for each in checker.ask(questions[:2])] == [True] * 2
    assert [each.passed for each in checker.ask(questions[1:], stop=True)] == [True, False]
    assert len(asked) == 3  # the last looked at the expected outputs


def test_a_checker_sees_plain_data_and_shares_no_process(sandbox: Sandbox) -> None:
    checker = "def check(args, output, expected):\n    import sys\n    return 'trace' not in vars(sys) and args == (1,)"
    code = (
        "import sys\nsys.trace = True\nclass Yes(int):\n    def __eq__(self, other): return True\n"
        "def f(x):\n    return Yes(x)"
    )
    problem = problem_with(Case((1,), {}, 1), checker=checker)
    assert passes(problem, "import sys\nsys.trace = True\ndef f(x): return x", sandbox) == [True]
    assert passes(problem, code, sandbox) == [False]


def test_a_checker_of_programs_that_print(sandbox: Sandbox) -> None:
    """Of two numbers, any digit that is not their sum: LiveCodeBench's issue 106."""
    checker = (
        "def check(stdin, output, expected):\n    a, b = map(int, stdin.split())\n"
        "    return output.strip().isdigit() and 0 <= int(output) < 10 and int(output) != a + b"
    )
    row = {
        "task_id": "field/other_sum", "prompt": "Any digit that is not A + B.", "kind": "program",
        "reference": "a, b = map(int, input().split())\nprint(0 if a + b != 0 else 1)\n", "checker": checker,
        "cases": [{"stdin": "2 5\n", "stdout": "0\n"}, {"stdin": "0 0\n", "stdout": "1\n"}],
    }  # fmt: skip
    problem = to_problem(Row(row, "here"))
    right = "a, b = map(int, input().split())\nprint(9 if a + b < 9 else 0)"
    assert passes(problem, right, sandbox) == [True, True]
    assert passes(problem, "print(7)", sandbox) == [False, True]
    exact = dataclasses.replace(problem, checker="")
    assert passes(exact, right, sandbox) == [False, False]


# Values that the reference says


def test_the_reference_is_asked_for_unknown_values(sandbox: Sandbox) -> None:
    problem = problem_with(*(Case((n,)) for n in range(20)), Case((1,), {}, 1))
    assert passes(problem, problem.reference, sandbox) == [True] * 21
    assert passes(problem, "def f(x): return min(x, 18)", sandbox) == [True] * 19 + [False, True]
    assert problem.tests == ("assert f(1) == 1",)


def test_a_reference_without_a_value_is_a_fault(sandbox):
    problem = problem_with(Case((1,)), Case((0,)), reference="def f(x): return 1 // x")
    with pytest.raises(NoValueError, match="no value for case 2: error, ZeroDivisionError"):
        submit_to_tests(problem, "def f(x): return 1", Limits(), sandbox).result()
    assert "no value for case 2" in run_reference(problem, sandbox).fault
    with pytest.raises(ValueError, match="reference where cases have no expected value"):
        dataclasses.replace(problem, reference="")


def test_nobody_waits_for_a_reference_that_is_asked(sandbox: Sandbox) -> None:
    slow = "import time\n\ndef f(x):\n    time.sleep(0.3)\n    return x"
    problem = problem_with(Case((1,)), reference=slow)
    runs = [submit_to_tests(problem, "def f(x): return 1", Limits(), sandbox) for _ in range(2)]
    assert not any(run.done() for run in runs)
    assert [run.result().tests[0].passed for run in runs] == [True, True]


@pytest.mark.slow
def test_what_a_closed_sandbox_has_not_begun_is_cancelled() -> None:
    module = "def test_f(): assert f(1) == 1"
    problem = problem_with(Case((1,), {}, 1), test_module=module)
    with Sandbox() as sandbox:
        runs = [submit_to_tests(problem, problem.reference, Limits(), sandbox) for _ in range(12)]
        runs[0].result()
    cancelled = [run.cancelled() for run in runs]
    assert cancelled[-1]
    assert not cancelled[0]


@pytest.mark.slow
def test_values_too_large_to_be_sent_are_compared_by_a_digest(sandbox: Sandbox) -> None:
    value = "['word' * 300, 1.5]"
    reference = f"def f(n): return {value} * n"
    problem = problem_with(Case((70_000,)), Case((1,)), reference=reference)
    assert passes(problem, reference, sandbox) == [True, True]
    for code in (
        f"def f(n): return {value} * (n - 1) + ['word' * 300, 2.5]",
        f"def f(n): return tuple({value} * n)",
        "def f(n): return 1",
        f"def f(n): return {value} if n == 1 else 1 / 0",
    ):
        assert passes(problem, code, sandbox)[0] is False


# Layouts


def test_the_template_of_evalplus() -> None:
    found = read_template(template("[[1, (2,)], ['a', {'b': inf}]]", "[None, {1}]", "1e-06"))
    assert found == (
        (Case((1, (2,)), {}, None), Case(("a", {"b": float("inf")}), {}, {1})),
        "equal",
        1e-6,
        "",
    )
    weaker = template("[[1]]", "[1]").replace("assert exact_match", "assert True")
    assert read_template(weaker) is None


LITERALS = (
    "[]", "[[1, -2.5e-3, 1e5]]", "[[True, False, None]]", "[['a', \"it's\", 'say \"x\"']]", r"['a\n\'\\', '\x41']",
    "[(1,), (), (1, 2), [(3)]]", "[{'a': (1, [2])}, {1: 2}, {1, 2}, set()]", "[1_000, 0x1F, .5, 5., 1j]", "['é', b'x', r'\\n']",
    "['a' 'b']", "[{'\\0(': [1]}]", "[[1,],]", "[- 1, +1]", "['True', '[(', ', ']",
)  # fmt: skip


def test_lists_of_literals():
    for text in LITERALS:
        expected = eval(text)  # the texts above
        found = read_list(text)
        assert (found, repr(found)) == (expected, repr(expected))


@pytest.mark.parametrize(
    "text", ["[f()]", "[null]", "[NaN]", "(1, 2)", "[1 2]", "[x]", "[" * 100_000, "['a]", "[...]"]
)
def test_lists_of_other_things(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_list(text)


def test_base_tests_have_a_verdict_of_their_own(sandbox: Sandbox) -> None:
    cases = tuple(Case((n,)) for n in (2, 0, 5))
    problem = Problem(**{**OWN, "tests": [], "cases": cases, "base": 2})
    run = run_reference(problem, sandbox)
    assert run.fault == ""
    verdict = judge_program(problem, "def double(x): return min(2 * x, 4)", run, sandbox)
    assert (verdict.outcome, verdict.base, verdict.judged) == ("fail", True, "outside")
    assert judge_program(problem, "def double(x): return x", run, sandbox).base is False


@pytest.mark.slow
def test_inside_verdicts_say_so_and_can_be_forged(sandbox: Sandbox) -> None:
    """Why nothing of them reaches a reward."""
    problem = Problem(
        "p", "def f(x):", "f", "def f(x): return x", ["assert f(1) == 1", "assert f(2) > 1"]
    )
    forging = "class Any(int):\n    __eq__ = __gt__ = lambda *_: True\ndef f(x): return Any(x) if x > 1 else x"
    run = run_reference(problem, sandbox)
    for code in (problem.reference, f"{problem.reference}\n", forging):
        verdict = judge_program(problem, code, run, sandbox)
        assert (verdict.outcome, verdict.judged) == ("pass", "inside")
    only_cases = dataclasses.replace(problem, test_module="")
    forged = "class Any(int):\n    __eq__ = lambda *_: True\ndef f(x): return Any(7)"
    alone = judge_program(only_cases, forged, run_reference(only_cases, sandbox), sandbox)
    assert alone.outcome == "unencodable"
    wrong = judge_program(problem, "def f(x): return 0", run, sandbox)
    assert (wrong.outcome, wrong.judged) == ("fail", "outside")
    assert wrong.message == "test 1 of 2: returned 0, not 1"


def test_cases_that_are_no_plain_data_name_the_problem(sandbox: Sandbox) -> None:
    bad = problem_with(Case((1,), {}, 1), Case((lambda: 1,), {}, 1))
    assert "case 2 to be plain data" in run_reference(bad, sandbox).fault
    register_source("no-data", lambda: [bad])
    with pytest.raises(
        ProblemsError, match="no-data, problem 1: p: Expect case 2 to be plain data"
    ):
        load_problems("no-data")


DEEP = """
from collections import deque

def f(x):
    value = 1
    for _ in range({depth}):
        value = deque([value])
    return value
"""


@pytest.mark.parametrize("depth", [98, 99, 100])
def test_a_value_that_no_checker_can_be_asked_about_is_not_right(sandbox, depth):
    checker = "def check(args, output, expected):\n    return output == expected"
    problem = problem_with(Case((1,), {}, 1), Case((2,), {}, 2), checker=checker)
    reference = run_reference(problem, sandbox)
    assert not reference.fault
    verdict = judge_program(problem, DEEP.format(depth=depth), reference, sandbox)
    assert verdict.outcome in ("fail", "unencodable")


def test_a_case_that_is_nested_too_deep_is_named_with_its_row(tmp_path):
    deep = "[" * 150 + "1" + "]" * 150
    row = json.dumps({**OWN, "tests": [], "cases": [{"args": ["DEEP"], "expected": 1}]})
    (tmp_path / "deep.jsonl").write_text(row.replace('"DEEP"', deep))
    with pytest.raises(ProblemsError, match=r"line 1.*case 1 to be plain data"):
        load_problems(str(tmp_path / "deep.jsonl"))
