"""What is known of a test before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from codea1_env.evaluation.test_programs.facts import facts, source_of
from codea1_env.sandbox.inside.analysis.literals import MAX_SOURCE


def fact(test: str) -> dict[str, Any]:
    return facts([(test, "f")])[0]


SAME = [
    ("assert f(2) == 3", "assert f(1 + 1) == 3"),
    ("assert f(2) == 3", "assert 3 == f(2)"),
    ("assert f(2) == 3", "assert f( 2 )==3, 'message'"),
    ("assert f(2) == 3", "assert (f(2)) == (3);"),
    ("assert f(2) == 3", "r = f(2)\nassert r == 3"),
    ("assert f(2) == 3", "x = 2\ny = 3\nassert f(x) == y"),
    ("assert f(2) == 3", "# comment\nassert f(2) == 3  # here"),
    ("assert f(2) == 3", "assert f(0b10) == 0x3"),
    ("assert f([0, 0, 0]) == [0, 1]", "assert f([0] * 3) == list(range(2))"),
    ("assert f({1, 2}) == {3, 4}", "assert f({2, 1}) == {4, 3}"),
    ("assert f('ab') == 1", 'assert f("a" "b") == 1'),
    ("assert f(-1) == 1", "assert f(0 - 1) == 1"),
    ("assert f(2) != 3", "assert f(1 + 1) != 3, 'message'"),
    ("for i in [1, 2]:\n    assert f(i)", "for i in [1, 1 + 1]:\n        assert f(i), 'message'"),
]
DIFFERENT = [
    ("assert f(1) == 2", "assert f(1.0) == 2"),
    ("assert f(1) == 2", "assert f(True) == 2"),
    ("assert f(1) == 2", "assert f(1) != 2"),
    ("assert f(1) == 2", "assert f(1) == 3"),
    ("assert f(a=1) == 2", "assert f(1) == 2"),
    ("assert f([1]) == 2", "assert f((1,)) == 2"),
    ("assert f('1') == 2", "assert f(b'1') == 2"),
    ("assert f({1: 2, 3: 4}) == 2", "assert f({3: 4, 1: 2}) == 2"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words_has_the_same_key(one, other):
    assert fact(one)["key"] == fact(other)["key"]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_has_another_key(one, other):
    assert fact(one)["key"] != fact(other)["key"]


@pytest.mark.parametrize(
    ("test", "args", "kwargs", "expected", "source"),
    [
        ("assert f(1, 'a') == [2]", [1, "a"], {}, [2], "f(1, 'a')"),
        ("assert f(1+1, k=(1,)) == None", [2], {"k": (1,)}, None, "f(1+1, k=(1,))"),
        ("x = [1]\nassert f(x) == 2", [[1]], {}, 2, "f([1])"),
        ("assert {} == f()", [], {}, {}, "f()"),
        ("assert f(float('inf')) == 1e400", [float("inf")], {}, float("inf"), "f(float('inf'))"),
        ("assert f('\\ud800') == '\\x00'", ["\ud800"], {}, "\0", "f('\\ud800')"),
    ],
)
def test_equality_with_literals_is_understood(test, args, kwargs, expected, source):
    call = fact(test)["call"]
    assert (call["args"], call["kwargs"], call["expected"]) == (args, kwargs, expected)
    assert call["source"] == source


@pytest.mark.parametrize(
    "test",
    [
        "assert f(1) != 2", "assert f(1) is None", "assert f(1) < 2 == 2", "assert 2 in f(1)",
        "assert not f(1) == 2", "assert f(x) == 2", "assert f(1) == g(1)", "assert f(*[1]) == 2",
        "assert f(**{}) == 2", "assert f(f(1)) == 2", "assert f(1).real == 2", "assert f(...) == 2",
        "assert f(float('nan')) == 2", "assert f(10 ** 10 ** 10) == 2", "assert f([1] * 10 ** 9) == 2",
        "assert f({[]: 1}) == 2", "assert f(1 / 0) == 2", "assert f(1) == 2 or f(3) == 4", "f(1)",
        "x = [1]\nassert f(x) == x", "x = f(1)\ny = 2\nx = 3\nassert x == y", "x = x\nassert f(x) == 1",
        "assert f(1) == 2\nassert f(2) == 3", "assert f(1).__len__() == 2", "assert f([1]).__doc__ is None",
    ],
)  # fmt: skip
def test_everything_else_is_left_alone(test):
    assert fact(test)["call"] is None
    assert fact(test)["problem"] == ""


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("assert g(1) == 2", "never calls f"),
        ("assert ff(1) == 2", "never calls f"),
        ("assert f(1) == f(1)", "always true"),
        ("assert (f(1) == 2, 'no')", "always true"),
        ("assert [f(1) == 2]", "always true"),
        ("assert 'f(1) == 2'", "always true"),
        ("assert f(1) == 2 or True", "always true"),
        ("assert lambda: f(1)", "always true"),
        ("assert (f(x) == 1 for x in [1])", "always true"),
        ("assert f(1) >= f(1) and f(2) is f(2)", "always true"),
        ("f(1)\nassert True", "always true"),
        ("f = max\nassert f(1, 2) == 2", "rebinds f"),
        ("assert (f := max)(1, 2) == 2", "rebinds f"),
        ("def f(): pass\nassert f() is None", "rebinds f"),
        ("from operator import add as f\nassert f(1, 2) == 3", "rebinds f"),
        ("for f in [max]:\n    assert f(1, 2) == 2", "rebinds f"),
        ("def g():\n    global f\n    f = max\ng()\nassert f(1, 2) == 2", "rebinds f"),
        ("f(1)\nassert f.__doc__", "insides of f"),
        ("f(1)\nassert f.__name__ == 'f'", "insides of f"),
        ("g = f\nassert 'x' not in g.__code__.co_names", "insides of f"),
        ("f(1)\nassert getattr(f, '__code__')", "insides of f"),
        (
            "try:\n    f(1)\nexcept TypeError as e:\n    assert e.__traceback__.tb_next",
            "insides of f",
        ),
        ("assert f(", "cannot be parsed: '(' was never closed"),
        ("assert f('\0')", "cannot be parsed"),
        ("assert f('\ud800')", "cannot be parsed"),
        ("assert f(" + "(" * 10_000, "cannot be parsed"),
        ("assert f(" + "-" * 60_000 + "1)", "cannot be parsed"),
        ("nonlocal f", "cannot be parsed"),
    ],
)
def test_what_cannot_be_a_test_is_named(test, problem):
    assert problem in fact(test)["problem"]


@pytest.mark.parametrize(
    ("test", "direct"),
    [
        ("assert f(1) == 2", True),
        ("x = f(1)", True),
        ("assert len([f(1)]) == 1", True),
        ("assert not 1 < f(1) < 3", True),
        ("assert f(1) and g()", True),
        ("assert g() and f(1)", False),
        ("assert g(lambda: f(1))", False),
        ("assert all(f(x) for x in [])", False),
        ("assert 1 if g() else f(1)", False),
        ("try:\n    f(1)\nexcept Exception:\n    pass", False),
        ("with g():\n    f(1)", False),
        ("for x in []:\n    f(x)", False),
    ],
)
def test_calls_that_happen_in_any_case(test, direct):
    assert fact(test)["direct"] is direct


@pytest.mark.parametrize(
    ("test", "stable"),
    [
        ("assert f(1) != 2", True),
        ("for i in range(3):\n    assert f(i) == [i].pop()", True),
        ("import math\nassert math.isclose(f(1), 2)", True),
        ("import datetime\nassert f(1)", False),
        ("from time import time\nassert f(1)", False),
        ("assert f(1) or __import__('time')", False),
        ("assert f(1) or getattr(f, 'x')", False),
        ("assert f(1) or ().__class__", False),
    ],
)
def test_tests_that_may_see_more_than_values(test, stable):
    assert fact(test)["stable"] is stable


@pytest.mark.parametrize(
    "value",
    [
        None, True, -3, 1.5, -0.0, 1e300, float("inf"), -float("inf"), 1 + 2j, "a'\"\\\n\0\ud800🎉", b"\0\xff",
        [], [1, [2]], (), (1,), (1, 2), {}, {1: {2: 3}}, set(), {1, 2}, frozenset(), frozenset({1}), {"b", "a"},
    ],
    ids=lambda value: repr(sorted(value)) if isinstance(value, set) else repr(value),
)  # fmt: skip
def test_source_of_a_value_evaluates_to_it(value):
    source = source_of(value)
    assert source is not None
    found = eval(source)
    assert found == value
    assert type(found) is type(value)


def test_values_without_a_source():
    assert source_of(float("nan")) is None
    assert source_of([float("nan")]) is None
    assert source_of(object()) is None
    assert source_of(10**5000) is None
    assert source_of("x" * (MAX_SOURCE + 1)) is None


def test_sources_do_not_depend_on_the_order_of_a_set():
    assert source_of({f"{n}" for n in range(100)}) == source_of({f"{n}" for n in range(99, -1, -1)})
