"""Tests as text: what the sandbox runs and what a pytest file has say the same."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from codea1_env.sandbox import Outcome
from codea1_env.testgen.observing import Observer
from codea1_env.testgen.texts import Shape, Trial, literal, observed_test, stated_test, trial_text


def seen(*results, after=None, attributes=None, made=True):
    return {
        "made": made,
        "results": list(results),
        "after": after or {},
        "attributes": attributes or {},
    }


@pytest.mark.parametrize(
    ("program", "result", "shown"),
    [
        ("return [1]", ("value", [1]), "assert f(1) == [1]"),
        ("return None", ("value", None), "assert f(1) is None"),
        ("return True", ("value", True), "assert f(1) is True"),
        ("return 0.5", ("value", 0.5), "assert f(1) == 0.5"),
        ("return 1 / 3", ("value", 1 / 3), f"assert f(1) == pytest.approx({1 / 3})"),
        ("return [1, 1 / 3]", ("value", [1, 1 / 3]), f"assert f(1) == pytest.approx([1, {1 / 3}])"),
        ("return {'a': {1 / 3}}", ("value", {"a": {1 / 3}}), f"assert f(1) == {{'a': {{{1 / 3}}}}}"),
        ("return 0.3 + 1j / 3", ("value", 0.3 + 1j / 3), f"assert f(1) == pytest.approx({0.3 + 1j / 3})"),
        ("return [1j, 1j / 3]", ("value", [1j, 1j / 3]), f"assert f(1) == pytest.approx([1j, {1j / 3}])"),
        ("return complex('inf')", ("value", complex("inf")), "assert f(1) == complex(float('inf'), 0.0)"),
        ("return range(2)", ("repr", "range(0, 2)"), "assert repr(f(1)) == 'range(0, 2)'"),
        ("return iter([1])", ("items", [1]), "assert list(f(1)) == [1]"),
        ("return object()", ("type", "object"), "assert type(f(1)).__name__ == 'object'"),
        ("raise KeyError('a')", ("raises", ("KeyError", "'a'")), "with pytest.raises(KeyError):\n    f(1)"),
        ("yield 1 / 0", ("breaks", ("ZeroDivisionError", "")), "with pytest.raises(ZeroDivisionError):\n    list(f(1))"),
    ],
)  # fmt: skip
def test_every_form_holds_on_what_was_observed_and_on_nothing_else(sandbox, program, result, shown):
    test = observed_test(Trial((1,)), seen(result), Shape("f", ("n",)))
    assert test.shown == shown
    code = f"def f(n):\n    {program}\n"
    [right] = sandbox.run_tests(code, [test.text], entry_point="f")
    assert right.passed, right.message
    [wrong] = sandbox.run_tests("def f(n):\n    return 'other'\n", [test.text], entry_point="f")
    assert wrong.outcome in (Outcome.FAIL, Outcome.ERROR)


def test_arguments_that_are_changed_have_names():
    test = observed_test(
        Trial(([2, 1],), {"key": {"a": 1}}),
        seen(("value", None), after={0: [1, 2], "key": {}}),
        Shape("sort", ("items", "key")),
    )
    assert test.shown.splitlines() == [
        "items = [2, 1]",
        "key = {'a': 1}",
        "assert sort(items, key=key) is None",
        "assert items == [1, 2]",
        "assert key == {}",
    ]


def test_variables_hide_nothing():
    """Neither the function, nor what the test itself uses; and two variables are not one."""
    for name in ("f", "pytest", "error", "list"):
        changed = seen(("value", None), after={0: [1]})
        test = observed_test(Trial(([],)), changed, Shape("f", (name,)))
        assert test.shown.splitlines()[0] == f"{name}_ = []"
    many = Trial(([], [], [0]), {"xs": []})
    changed = seen(("value", 1), after={0: [1], 2: [], "xs": [2]})
    lines = observed_test(many, changed, Shape("f", ("xs",))).shown.splitlines()
    assert lines[:4] == ["xs = []", "xs_ = [0]", "xs__ = []", "assert f(xs, [], xs_, xs=xs__) == 1"]
    assert Shape("Pytest", is_class=True).object == "pytest_"


def test_steps_of_an_object():
    trial = Trial(("ann",), {}, (("add", (2,), {}), ("add", (-1,), {}), ("clear", (), {})))
    results = (("value", 2), ("raises", ("OddError", "")), ("self", None))
    shape = Shape("TeamAccount", is_class=True)
    test = observed_test(trial, seen(*results, attributes={"total": 2, "len()": 1}), shape)
    assert test.shown.splitlines() == [
        "team_account = TeamAccount('ann')",
        "assert team_account.add(2) == 2",
        "with pytest.raises(OddError):",
        "    team_account.add(-1)",
        "assert team_account.clear() is team_account",
        "assert team_account.total == 2",
        "assert len(team_account) == 1",
    ]
    assert test.errors == ("OddError",)
    failed = observed_test(trial, seen(("raises", ("ValueError", "")), made=False), shape)
    assert failed.shown == "with pytest.raises(ValueError):\n    TeamAccount('ann')"


BOX = """class Box:
    def __init__(self): self.items = {}
    def __getitem__(self, key): return self.items[key]
    def __setitem__(self, key, value): self.items[key] = value
    def __delitem__(self, key): del self.items[key]
    def __contains__(self, key): return key in self.items
    def __iter__(self): return iter(self.items)
    def __repr__(self): return f"{len(self.items)} things"
"""


def test_methods_that_operators_call_are_written_as_operators(sandbox):
    steps = (
        ("__setitem__", ("a", 2), {}), ("__setitem__", ("b", 3), {}), ("__delitem__", ("b",), {}),
        ("__getitem__", ("a",), {}), ("__delitem__", ("c",), {}), ("__contains__", ("b",), {}),
        ("__iter__", (), {}), ("__repr__", (), {}),
    )  # fmt: skip
    trial = Trial((), {}, steps)
    shape = Shape("Box", is_class=True)
    [(found, _)] = Observer("Box", (), sandbox).twice(BOX, [trial])
    test = observed_test(trial, found.found, shape)
    assert test.shown.splitlines() == [
        "box = Box()", "box['a'] = 2", "box['b'] = 3", "del box['b']", "assert box['a'] == 2",
        "with pytest.raises(KeyError):", "    del box['c']", "assert ('b' in box) is False",
        "assert list(box) == ['a']", "assert repr(box) == '1 things'",
    ]  # fmt: skip
    assert "; box.__delitem__('b'); " in trial_text(
        trial, shape
    )  # an expression, for people to try
    [right] = sandbox.run_tests(BOX, [test.text], entry_point="Box")
    assert right.passed, right.message


def test_examples_of_docstrings():
    assert stated_test("", "f(1)", "value", "None").shown == "assert f(1) is None"
    assert stated_test("", "f(1)", "value", "2").shown == "assert f(1) == 2"
    assert stated_test("", "f(1)", "shown", "P(1)").shown == "assert repr(f(1)) == 'P(1)'"
    assert stated_test("", "f(1)", "printed", "a\nb").shown == "assert str(f(1)) == 'a\\nb'"
    test = stated_test("x = 1", "f(x)", "error", "ValueError", ["helper"])
    assert test.shown == "x = 1\nwith pytest.raises(ValueError):\n    f(x)"
    assert (test.origin, test.uses) == ("docstring", ("helper",))


def test_literals_of_the_standard_library_name_their_module():
    value = [datetime.date(2024, 1, 2), Decimal("1.5"), float("-inf")]
    text = "[datetime.date(2024, 1, 2), decimal.Decimal('1.5'), float('-inf')]"
    assert literal(value) == text
    test = observed_test(Trial((value,)), seen(("value", 1)), Shape("f", ("n",)))
    assert test.modules == ["datetime", "decimal"]
    assert test.text == f"import datetime\nimport decimal\nassert f({text}) == 1"


def test_a_trial_in_one_line():
    shape = Shape("Box", is_class=True)
    assert trial_text(Trial((1,)), shape) == "Box(1)"
    assert trial_text(Trial((1,), {}, (("add", (2,), {}),)), shape) == "Box(1).add(2)"
