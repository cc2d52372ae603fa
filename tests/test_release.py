"""The layout of the release's own files: bodies and whole programs, tests of every kind, broken rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from problem_rows import LAYOUTS, SOLUTION, judged

from codea1_env import code_a1_v1
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import Problem, ProblemsError
from codea1_env.responses import whole_program
from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.spaces import CODER, TESTER

WHOLE = LAYOUTS["release"]
BODY: dict[str, Any] = {
    **WHOLE,
    "problem": 'from math import prod\n\n\ndef double(x: int) -> int:\n    """Double it.\n\n    >>> double(2)\n    4\n    """\n',
    "GT_code": "\n\n    return prod([2, x])\n\n",
    "data_source": "humanevalplus",
    "extra_info": {
        "function_declaration": "from math import prod\n\n\ndef double(x: int) -> int:",
        "function_name": "double",
        "imports": "from math import prod",
        "question_id": "HumanEval/910",
    },
}


def problem_of(base: dict[str, Any] = WHOLE, info: object = None, **change: Any) -> Problem:
    fields = {**base, **change}
    fields["extra_info"] = (
        {**base["extra_info"], **info} if isinstance(info, dict) else info or fields["extra_info"]
    )
    return to_problem(Row(fields, "set.parquet, row 3"))


def outcomes(problem: Problem, code: str, sandbox: Sandbox) -> set[Outcome]:
    results = judged(problem, whole_program(problem, code), sandbox)
    assert results
    return {result.outcome for result in results}


def test_a_body() -> None:
    problem = problem_of(BODY)
    assert problem.prompt == BODY["problem"]
    assert problem.reference == BODY["problem"] + BODY["GT_code"]
    assert problem.task_id == "HumanEval/910"
    assert problem.metadata == {"source": "humaneval+", "split": "test"}


PROMPTS = {
    "whole behind a complete problem": ({**BODY, "GT_code": SOLUTION}, {}),
    "body without indentation": ({**BODY, "GT_code": "y = prod([2, x])\nif y:\n    return y\nreturn 0"}, {}),
    "body with functions of its own": ({**BODY, "GT_code": "    def twice(y):\n        return prod([2, y])\n    return twice(x)"}, {}),
    "body behind a declaration": ({**BODY, "problem": "Double it."}, {}),
    "body behind an unindented docstring": ({**BODY, "problem": 'def double(x):\n"""\nDouble it:\n  as told\n"""'}, {}),
    "no imports in problem": ({**BODY, "problem": 'def double(x: int) -> int:\n    """Double it."""'}, {}),
    "no declaration": (WHOLE, {"function_declaration": None}),
    "declaration of something else": (WHOLE, {"function_declaration": "def other(x):"}),
    "no description": ({**WHOLE, "description": None}, {}),
    "a list of imports": (WHOLE, {"imports": ["import math", "", "from typing import List"]}),
    "no imports": (WHOLE, {"imports": None}),
    "a helper in the prompt": ({**BODY, "problem": "def two():\n    return 2\n\n\n" + BODY["problem"], "GT_code": "    return two() * x"}, {}),
    "a whole program that needs a helper in the prompt": ({**BODY, "problem": "def two():\n    return 2\n\n\n" + BODY["problem"], "GT_code": "def double(x):\n    return two() * x"}, {}),
    "Windows line ends": ({k: v.replace("\n", "\r\n") if isinstance(v, str) else v for k, v in BODY.items()}, {}),
    "a lambda": ({**WHOLE, "GT_code": "double = lambda x: 2 * x"}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("row", "info"), PROMPTS.values(), ids=PROMPTS)
def test_references_run_and_bare_programs_have_what_the_prompt_gives(row, info, sandbox):
    problem = problem_of(row, info)
    assert "Double it" in problem.prompt
    assert outcomes(problem, problem.reference, sandbox) == {Outcome.PASS}
    assert Outcome.PASS not in outcomes(problem, "def double(x): return 3 * x + 1", sandbox)
    if "prod" in problem.prompt:
        assert outcomes(problem, "def double(x): return prod((2, x))", sandbox) == {Outcome.PASS}


TESTS = {
    "check": ("def check(candidate):\n    assert candidate(2) == 4\n", 1, False),
    "class": ("from solution import *\nclass TestIt:\n    def test_two(self):\n        assert double(2) == 4\n", 1, False),
    "lines": ("\n# two\nassert double(2) == 4\n\nassert double(3) == math.sqrt(36)\n", 1, True),
    "statements": ("assert double(\n    2) == 4\n", 1, False),
    "statements with imports": ("two = math.sqrt(4)\nassert double(two) == 4\n", 0, True),
    "list": (["assert double(2) == 4", "assert double(1) == 2"], 2, False),
    "list as JSON": ('["assert double(2) == 4"]', 1, False),
    "none": (None, 0, False),
    "blank": (" \n", 0, False),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("test", "number", "module"), TESTS.values(), ids=TESTS)
def test_tests(test: object, number: int, module: bool, sandbox: Sandbox) -> None:
    problem = problem_of(test=test)
    assert (len(problem.cases), bool(problem.test_module)) == (number, module)
    if problem.number_of_tests:
        assert outcomes(problem, problem.reference, sandbox) == {Outcome.PASS}
        assert Outcome.PASS not in outcomes(problem, "def double(x): return x + 9", sandbox)


def test_imports_stand_before_the_tests_that_use_them(sandbox: Sandbox) -> None:
    problem = problem_of(
        test=["assert double(0) == 0", "assert double(math.pi) == tau"],
        info={"imports": "import math\nfrom math import tau, e\nimport re"},
    )
    assert problem.tests == ("assert double(0) == 0",)
    assert "import math\\nfrom math import tau, e\\nassert double(math.pi)" in problem.test_module
    assert outcomes(problem, problem.reference, sandbox) == {Outcome.PASS}


def test_function_that_the_test_calls_is_the_entry_point() -> None:
    """As in eight rows of MBPP+, which name a helper."""
    problem = problem_of(
        GT_code=f"def helper(x):\n    return x\n\n{SOLUTION}",
        test="def check(double):\n    for inp, exp in zip([[2]], [4]):\n        assert double(*inp) == exp\n",
        info={"function_name": "helper", "function_declaration": "def helper(x)"},
    )
    assert problem.entry_point == "double"
    assert "def double(x):" in problem.prompt


def test_extra_info_as_json_and_numbers_as_ids() -> None:
    assert problem_of(info=json.dumps(WHOLE["extra_info"])) == problem_of()
    assert problem_of(info={"question_id": 7}).task_id == "KodCode/7"
    assert problem_of(info={"question_id": 7}, data_source="mine").task_id == "7"
    assert problem_of(data_source=None).metadata["source"] == "code-a1"


def test_in_the_game_programs_have_the_imports_of_the_row() -> None:
    """Here the imports are in `extra_info` only."""
    problem = problem_of(BODY, problem='def double(x: int) -> int:\n    """Double it."""')
    env = code_a1_v1.raw_env(problems=[problem])
    env.reset(seed=0)
    env.step("```python\ndef double(x):\n    return prod((2, x))\n```")
    assert env.observe(TESTER)["code"].startswith("from math import prod\n")
    env.step("assert double(4) == 8")
    assert env.rewards[CODER] == 1.0
    env.close()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"GT_code": " \n"}, "Expect 'GT_code' to hold the reference solution, actually it is blank"),
    ({"GT_code": "def other(x):\n    return x"}, "Expect 'GT_code' to define 'double', the function_name in 'extra_info', or to be its body, actually it defines other"),
    ({"problem": 3}, "Expect 'problem' to be text, actually: int 3"),
    ({"test": "[1, 2"}, "Expect 'test' to be a list of texts or JSON of it, actually: Expecting"),
    ({"test": "double(2)"}, "Expect 'test' to be a text that defines check(candidate) or test functions, or texts that assert something"),
    ({"info": "{"}, "Expect 'extra_info' to be an object or JSON of it, actually: Expecting"),
    ({"info": {"function_name": None}}, "Expect 'extra_info' to hold a function_name, actually: NoneType None"),
    ({"info": {"imports": [3]}}, "Expect 'imports' in 'extra_info' to be text or a list of texts, actually: list [3]"),
    ({"info": {"imports": 3}}, "Expect 'imports' in 'extra_info' to be text or a list of texts, actually: int 3"),
    ({"info": {"imports": ["math"]}}, "Expect 'imports' in 'extra_info' to be import statements, actually: str 'math'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_rows_name_place_and_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        problem_of(**change)
    assert str(caught.value).startswith(f"set.parquet, row 3: {message}")
    assert str(caught.value).endswith(". Correct this row.")
