"""Scripted players, and the tests that they make of golden ones."""

from __future__ import annotations

import ast

import pytest

from codea1_env.agents import BoundaryTester, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.agents.variants import boundary_values, literal, other_value, variants
from codea1_env.mutation import generate_mutants
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Case, Sandbox
from codea1_env.spaces import observe

PROBLEMS = load_problems("starter", "train")[:4]
SEEN = [observe(problem) for problem in PROBLEMS]


def test_mutant_coder_submits_different_mutants(sandbox: Sandbox):
    coder = MutantCoder(PROBLEMS, sandbox, seed=1)
    problem = PROBLEMS[1]
    written = set(coder.act([observe(problem)] * 50))
    assert written <= {mutant.code for mutant in generate_mutants(problem.reference, sandbox)}
    assert len(written) > 1


def test_golden_tester_draws_without_replacement():
    for problem, suite in zip(PROBLEMS, GoldenTester(PROBLEMS, 4).act(SEEN), strict=True):
        tests = suite.split("\n\n")
        assert len(set(tests)) == 4
        assert set(tests) <= set(problem.tests)


def test_golden_tester_takes_only_what_is_data():
    tests = ("assert f() == 1", "assert f() > 0", f"assert f() == {'1' * 1000}")
    problem = Problem("p", "def f():", "f", "def f(): return 1", tests)
    assert GoldenTester([problem]).act([observe(problem)]) == ["assert f() == 1"]


@pytest.mark.slow
def test_golden_tester_asks_the_reference_for_values(sandbox: Sandbox):
    cases = (Case((2,)), Case((3,), {}, 9), Case((0,)))
    problem = Problem("p", "def f(n):", "f", "def f(n): return n * n", cases=cases)
    [suite] = GoldenTester([problem], None, 0, sandbox).act([observe(problem)])
    tests = {"assert f(2) == 4", "assert f(3) == 9", "assert f(0) == 0"}
    assert set(suite.split("\n\n")) == tests
    broken = Problem("p", "def f(n):", "f", "def f(n): return 9 // n", cases=cases)
    assert GoldenTester([broken], None, 0, sandbox).act([observe(broken)]) == ["assert f(3) == 9"]


def test_boundary_tester_moves_arguments(sandbox: Sandbox):
    suites = BoundaryTester(PROBLEMS, sandbox, num_tests=6).act(SEEN)
    for problem, suite in zip(PROBLEMS, suites, strict=True):
        tests = suite.split("\n\n")
        assert len(tests) == 6
        assert all(test.startswith(f"assert {problem.entry_point}(") for test in tests)


def test_unknown_problems_are_named():
    stranger = Problem("p", "def f(): ...", "f", "def f(): ...")
    with pytest.raises(ValueError, match=r"one of the 4 problems .* actually: 'p'"):
        ReferenceCoder(PROBLEMS).act([observe(stranger)])


@pytest.mark.parametrize("kind", ["mutant", "golden", "boundary"])
def test_same_seed_same_answers_and_saved_state_goes_on(kind, sandbox: Sandbox, tmp_path):
    def make(seed):
        if kind == "golden":
            return GoldenTester(PROBLEMS, 3, seed)
        if kind == "mutant":
            return MutantCoder(PROBLEMS, sandbox, seed)
        return BoundaryTester(PROBLEMS, sandbox, 3, seed)

    first, second, other = make(1), make(1), make(2)
    assert first.act(SEEN) == second.act(SEEN)
    first.save(tmp_path)
    other.act(SEEN)
    other.load(tmp_path)
    assert other.act(SEEN * 3) == second.act(SEEN * 3)
    assert first.learn([]) == {}


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) != 2",
        "assert g(1) == 2",
        "assert f(*[1]) == 2",
        "assert f(1) == g(2)",
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


@pytest.mark.parametrize(
    "value",
    [True, 0, 10**30, 1e300, "", "ab", b"x", [], [1, [2]], (1,), {"a": 1}, {1, 2}, None, 2j],
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
