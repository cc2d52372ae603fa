from __future__ import annotations

import ast

import pytest

from codea1_env.agents.variants import boundary_values, literal, other_value, variants
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) != 2",
        "assert g(1) == 2",
        "assert f(*[1]) == 2",
        "assert f(**{'a': 1}) == 2",
        "assert f(1) == g(2)",
        "assert f(1) == 2 == 2",
        "assert obj.f(1) == 2",
        "assert True",
        "f(1)",
        "x = 1\nassert f(1) == 2",
        "assert f(1 ==",
        "assert f(1) == " + "(" * 1000 + ")" * 1000,
        "\x00",
        "",
    ],
)
def test_other_tests_have_no_variants(test):
    assert variants([test], "f") == [{"wrong": [], "weak": [], "boundary": []}]


def test_keyword_arguments_are_moved_too():
    made = variants(["assert f(True, n=2) == 'x'"], "f")[0]
    assert made["wrong"] == ["assert f(True, n=2) == 'x?'"]
    assert "assert f(False, n=2) == 'x'" in made["boundary"]
    assert any(text.startswith("assert f(True, n=0) ==") for text in made["boundary"])


def test_a_value_of_none_is_compared_with_none():
    assert variants(["assert f(1) == None"], "f")[0]["weak"] == ["f(1)", "assert f(1) is None"]


@pytest.mark.parametrize(
    "value",
    [True, 0, -7, 10**30, 0.0, 2.5, 1e300, "", "ab", b"x", [], [1, [2]], (), (1,), {}, {"a": 1}, {1, 2}, None, 2j],
)  # fmt: skip
def test_other_values_differ_and_are_literals(value):
    other = other_value(value)
    assert other != value
    assert ast.literal_eval(literal(other)) == other


def test_boundary_values_keep_the_type_and_differ():
    for value in [True, 0, 5, 2.5, "abc", [1, 2], (1, 2), {1, 2}, {"a": 1, "b": 2}]:
        made = boundary_values(value)
        assert made
        assert all(type(item) is type(value) for item in made)
        assert literal(value) not in map(literal, made)
        assert len({literal(item) for item in made}) == len(made)


def test_text_of_sets_does_not_depend_on_their_order():
    names = {f"name{index}" for index in range(50)}
    assert literal(names) == "{" + ", ".join(sorted(map(repr, names))) + "}"
    assert ast.literal_eval(literal(names)) == names
    assert literal(set()) == "set()"


def test_in_a_helper_process_the_starter_tests_all_have_variants(sandbox: Sandbox):
    for problem in load_problems("starter")[::10]:
        made = sandbox.analyse(variants, list(problem.tests), problem.entry_point)
        assert made == variants(list(problem.tests), problem.entry_point)
        assert all(len(row["wrong"]) == 1 and len(row["weak"]) == 2 for row in made)
        assert any(row["boundary"] for row in made)
