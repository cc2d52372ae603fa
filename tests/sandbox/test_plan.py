"""Plans of tests: what is compared as values must come out exactly as Python's own assert does."""

from __future__ import annotations

import itertools
import marshal
import math
import time
from collections import Counter, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.sandbox import Outcome
from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.plan import plan_test, plan_tests
from codea1_env.sandbox.planner import evaluate


def echo(value: Any = None, /, *more: Any, **named: Any) -> Any:
    return value


def pair(a: Any, b: Any = 2, *rest: Any, c: Any = None) -> Any:
    return (a, b, *rest, c)


def made(kind: str) -> Any:
    """Values that have no literal."""
    return {
        "counter": Counter("aab"),
        "decimal": Decimal("0.5"),
        "deque": deque([1, 2]),
        "fraction": Fraction(1, 2),
        "frozenset": frozenset({1}),
        "nan": math.nan,
        "range": range(3),
        "bytearray": bytearray(b"ab"),
    }[kind]


def fail(error: str) -> Any:
    raise {"ValueError": ValueError, "TypeError": TypeError}[error]("on purpose")


PROGRAM = {"echo": echo, "pair": pair, "made": made, "fail": fail}


def by_python(text: str) -> Outcome:
    try:
        exec(compile(text, "<test>", "exec"), dict(PROGRAM))
    except AssertionError:
        return Outcome.FAIL
    except Exception:
        return Outcome.ERROR
    return Outcome.PASS


def by_plan(text: str) -> Outcome | None:
    """What the sandbox does with a value plan, without its processes; None where there is none."""
    kind, *details = plan_test(text)
    if kind != "value":
        return None
    names, calls, nodes = details
    values = []
    for name, call in zip(names, calls, strict=True):
        arguments, keywords = marshal.loads(call) if call[:1] == b"(" else codec.decode(call)
        try:
            value = PROGRAM[name.lstrip("*")](*arguments, **keywords)
            values.append(codec.decode(codec.encode(value)))
        except Exception:
            return Outcome.ERROR
    return evaluate(nodes, values).outcome


LITERALS = (
    "None", "True", "False", "0", "1", "-1", "2.0", "0.1 + 0.2", "1e309", "''", "'ab'", "b'ab'",
    "[]", "[1, 2]", "[2, 1, 1]", "(1, 2)", "{1, 2}", "{'a': 1}", "{1: 'x', True: 'y'}", "3 - 2j",
    "float('nan')", "float('-inf')", "set()", "frozenset([1])", "range(3)", "10**20", "2**-1",
    "[0] * 3", "'ab' * 2", "[1] + [2]", "-True", "7 // 2", "-7 % 3", "list('ab')", "[[1, 'a'], []]",
)  # fmt: skip
OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in")
FUNCTIONS = ("abs", "len", "round", "sorted", "set", "list", "tuple", "sum", "min", "max", "not ")


@pytest.mark.parametrize("operator", OPERATORS)
def test_comparisons_are_pythons(operator: str) -> None:
    some = LITERALS[OPERATORS.index(operator) % 3 :: 3]
    for number, (left, right) in enumerate(itertools.product(LITERALS, some)):
        said = (f"echo({left})", right) if number % 2 else (left, f"echo({right})")
        text = f"assert {said[0]} {operator} {said[1]}"
        assert by_plan(text) is by_python(text), text


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_are_pythons(function: str) -> None:
    for value, expected in itertools.product(LITERALS, LITERALS[::6]):
        text = f"assert {function}(echo({value})) == {expected}"
        assert by_plan(text) is by_python(text), text


MORE = [
    "assert echo(1)",
    "assert not echo([])",
    "assert echo(None) is None",
    "assert echo(True) is True",
    "echo(1)",
    "fail('ValueError')",
    "assert fail('TypeError') == 1",
    "assert echo(1) == 2, 'a message'",
    "assert echo(1) == 1, 5",
    "assert round(echo(2.675), 2) == 2.67",
    "assert round(echo(1234), -2) == 1200",
    "assert abs(echo(0.1) - 0.1) < 1e-9",
    "assert abs(echo(0.1) - echo(0.3)) <= 0.2",
    "assert echo(3) - echo(1) == 2",
    "assert echo({1, 2}) - {1} == {2}",
    "assert echo(1) - 'a' == 2",
    "assert sorted(echo({3, 1})) == [1, 3]",
    "assert sorted(echo([1, 'a'])) == [1]",
    "assert set(echo([1] * 500)) == {1}",
    "assert max(echo([])) == 1",
    "assert len(set(echo('abca'))) == 3",
    "assert list(echo({'b': 1, 'a': 2})) == ['b', 'a']",
    "assert pair(1) == (1, 2, None)",
    "assert pair(1, 3, 4, 5, c=6) == (1, 3, 4, 5, 6)",
    "assert pair(b=1, a=2) == (2, 1, None)",
    "assert echo(1) == echo(1.0) == 1",
    "assert echo(5) in echo([5])",
    "assert echo(7) in range(0, 10**18, 7)",
    "assert echo('\\ud800') == '\\ud800'",
    "assert 'b' in echo('abc')",
    "assert {1} in echo([{1}])",
    "assert echo([1, [2, (3,)]]) == [1, [2, (3,)]]",
    "assert made('counter') == {'a': 2, 'b': 1}",
    "assert made('decimal') == 0.5",
    "assert made('fraction') == 0.5",
    "assert made('deque') == [1, 2]",
    "assert made('frozenset') == {1}",
    "assert sum(made('range')) == 3",
    "assert made('nan') == made('nan')",
    "assert made('nan') != made('nan')",
    "assert made('nan') in [1.0]",
    "assert made('bytearray') == b'ab'",
    "import math\nassert math.isclose(echo(0.1 + 0.2), 0.3)",
    "import math\nassert math.isclose(echo(1.0), 1.1, rel_tol=0.2)",
    "import math\nassert math.isclose(echo(1.0), 1.1, abs_tol=1e-3, rel_tol=0)",
    "import math\nassert math.isclose(echo(1.0), 1.0, rel_tol=-1)",
    "assert echo({1: [2]}) == {1: [2]}  # a comment",
    "assert(echo(1))==1",
    "assert (\n    echo(1)\n    == 1\n)",
    "'''a text'''\nassert echo(1) == 2",
]


@pytest.mark.parametrize("text", MORE)
def test_other_assertions_are_pythons(text: str) -> None:
    assert by_plan(text) in (None, by_python(text))


def test_most_of_them_are_compared_as_values() -> None:
    assert sum(by_plan(text) is not None for text in MORE) > 0.9 * len(MORE)


numbers = st.integers(-20, 20) | st.floats(allow_nan=False, width=16)
data = st.recursive(
    st.none() | st.booleans() | numbers | st.text("ab'\\\n", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2)
        | st.sets(st.integers(-3, 3), max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(data, data, st.sampled_from(OPERATORS), st.sampled_from(["", "abs", "len", "sorted", "set"]))
def test_any_data(left: Any, right: Any, operator: str, function: str) -> None:
    text = f"assert {function}(echo({left!r})) {operator} {right!r}"
    assert by_plan(text) in (None, by_python(text)), text


@settings(max_examples=100, deadline=None)
@given(st.text("assert echo([({1,'a'})])=<>!: +-*/%.\n\\#\"\0", max_size=40))
def test_any_text_has_a_plan(text: str) -> None:
    plan = plan_test(text)
    assert plan[0] in ("value", "text", "nothing", "syntax_error")
    try:
        compile(text, "<test>", "exec")
    except (SyntaxError, ValueError):
        assert plan[0] == "syntax_error"
    else:
        assert plan[0] != "syntax_error"


# Which texts are programs


@pytest.mark.parametrize(
    "text",
    [
        "assert 1 < echo(2) < 3",
        "assert echo(1) == 1 and echo(2) == 2",
        "assert (echo(1) == 2, 'always true')",
        "assert echo(echo(1)) == 1",
        "assert echo(x := 1) == 1",
        "assert echo(lambda: 1)",
        "assert echo(*[1]) == 1",
        "assert [echo(1)] == [1]",
        "assert echo(1).real == 1",
        "assert math.isclose(echo(1), 1)",
        "import math as m\nassert m.isclose(echo(1), 1)",
        "x = 1\nassert echo(x) == x",
        "assert 1 == 1",
        "assert isinstance(echo(1), int)",
        "assert sorted(echo([1]), reverse=True) == [1]",
        "assert echo(1) is 1000",
        "assert None is echo(None)",
        "assert echo(f'{1}') == '1'",
        "assert echo(...) is ...",
        "assert echo([0] * 10**9)",
        "assert echo(9 ** 9 ** 9)",
        "assert echo({**{'a': echo(1)}}) == {}",
        "assert echo(list({2, 1})) == [1, 2]",
        "import math\nassert echo(math.inf) == math.inf",
    ],
)
def test_anything_else_runs_as_a_text(text: str) -> None:
    assert plan_test(text) == ("text",)


def test_repeated_containers_are_aliases_and_so_no_values() -> None:
    for text in ("[[0] * 2] * 3", "([],) * 2", "[{}] * 2", "(({1},),) * 2"):
        assert plan_test(f"assert echo({text}) == 1") == ("text",)
    for text in ("[0] * 3", "[(0, 'a')] * 2", "[''] * 2", "[None] * 5"):
        assert plan_test(f"assert echo({text}) == 1")[0] == "value"


@pytest.mark.parametrize(
    "text",
    ["assert echo(1) ==", "def f(:", "\0", "é = '", "assert echo(x=1, x=2)", "return 1", "(" * 300],
)
def test_what_cannot_be_compiled_is_no_test(text: str) -> None:
    kind, message = plan_test(text)
    assert kind == "syntax_error"
    assert message


# Names


@pytest.mark.parametrize("name", ["float", "set", "len", "range", "dict"])
def test_the_name_under_test_makes_no_literals(name: str) -> None:
    kind, names, *_ = plan_test(f"assert {name}('1') == 1", name)
    assert (kind, names) == ("value", [name])
    assert plan_test(f"assert echo({name}([])) == 1", name) == ("text",)
    assert plan_test(f"assert echo([{name}()]) == 1", name) == ("text",)


@pytest.mark.parametrize("function", ["list", "tuple", "sorted", "set", "sum", "min", "max"])
def test_what_is_iterated_over_is_marked(function: str) -> None:
    assert plan_test(f"assert {function}(echo(1)) == echo(2)")[1] == ["*echo", "echo"]
    assert plan_test(f"assert abs({function}(echo(1)) - 2) < 1")[1] == ["*echo"]
    assert plan_test(f"assert {function}(echo(1) - {{2}}) == 1")[1] == ["echo"]


# Bounds


def test_long_honest_texts_have_time() -> None:
    cases = ", ".join(f"([{n}, {n + 1}, 'text'], {{'a': {n}}})" for n in range(10_000))
    text = f"for given, expected in [{cases}]:\n    assert f(given) == expected"
    assert len(text) > 300_000
    assert plan_tests([text]) == [("text",)]


def test_hostile_texts_are_planned_quickly() -> None:
    texts = [
        "assert echo(" + "-" * 5000 + "1) == 1",
        "assert echo(" + "1+" * 5000 + "1) == 1",
        "assert echo(" + "[" * 150 + "]" * 150 + ") == 1",
        "assert echo({((((0,) * 9999,) * 9999,) * 9999)}) == 1",
        "assert echo(" + "(" * 60 + "10**20" + ")**20" * 60 + ") == 1",
        "assert echo({" + ",".join(str(7 + k * (2**61 - 1)) for k in range(3000)) + "})",
        "assert echo(range(10**30)) == range(10**30)",
        "x = " + "lambda: " * 60 + "1",
    ]
    started = time.process_time()
    kinds = [plan[0] for plan in plan_tests(texts)]
    assert time.process_time() - started < 3.0
    assert set(kinds) <= {"value", "text", "nothing", "syntax_error"}
