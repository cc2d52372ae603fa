"""Examples in a problem's text: what they say as tests, and the text without them."""

from __future__ import annotations

import ast
import time

import pytest

from codea1_env import load_problems
from codea1_env.reading.examples import split_examples


@pytest.mark.parametrize(
    ("shown", "tests"),
    [
        (">>> f(1)\n    2", ["assert f(1) == 2"]),
        (">>> f(1)\n    2\n    >>> f(')')\n    'x'", ["assert f(1) == 2", "assert f(')') == 'x'"]),
        ("f(1) == 2", ["assert f(1) == 2"]),
        ("f(1) ➞ 2\n    f(2) => 3\n    f(3) should return 4",
         ["assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 4"]),
        ("f(1)  # returns 2", ["assert f(1) == 2"]),
        ("assert f(1) == 2", ["assert f(1) == 2"]),
        (">>> x = [1]\n    >>> f(x)\n    [2]\n    >>> x\n    [1]", ["assert f(x) == [2]"]),
        (">>> f(\n    ...     1)\n    2", []),
    ],
)  # fmt: skip
def test_what_is_an_example(shown: str, tests: list[str]) -> None:
    prompt = f'def f(n):\n    """Do it.\n\n    Example:\n    {shown}\n    """'
    text, found = split_examples(prompt, "f")
    assert found == tests
    assert text == ('def f(n):\n    """Do it.\n    """' if tests else prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        'def f(n):\n    """If f(1) == 2 then so it is; see g.\n    g(1) == 2\n    """',
        "Read a number. Print its double.",
        "",
    ],
)
def test_what_is_none_stays(prompt: str) -> None:
    assert split_examples(prompt, "f") == (prompt, [])


def test_a_docstring_that_ends_in_its_last_line_stays_closed() -> None:
    text, tests = split_examples("def f(n):\n    '''Do it.\n    >>> f(1)\n    2'''\n", "f")
    assert tests == ["assert f(1) == 2"]
    assert ast.parse(text)
    assert "2" not in text


def test_every_starter_problem_shows_examples_and_stays_python_without_them() -> None:
    for problem in load_problems("starter"):
        text, tests = split_examples(problem.prompt, problem.entry_point)
        assert tests, problem.task_id
        assert ">>>" not in text
        assert ast.parse(text)
        assert split_examples(text, problem.entry_point) == (text, [])


def test_hostile_text_costs_little() -> None:
    started = time.process_time()
    for text in (
        ">>> f(" * 100_000,
        "f(" + ") =" * 100_000,
        ">>> f(1)\n" * 50_000,
        "f()" * 1300 + "\n" * 99_999,
    ):
        split_examples(text, "f")
    assert time.process_time() - started < 5.0
