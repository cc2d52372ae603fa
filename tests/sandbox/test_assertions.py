"""Assertions of the closed list: what is compared outside must come out exactly as Python's own assert does."""

from __future__ import annotations

import ast
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

from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.sandbox.assertions import Assertion, verdict
from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.analysis.assertions import (
    arguments_of,
    form_of,
    read_test,
    read_tests,
    sides,
)
from codea1_env.sandbox.inside.analysis.literals import NotLiteralError
from codea1_env.sandbox.inside.run.running import RETURNED


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


def by_list(text: str) -> Outcome | None:
    """What the sandbox does with an assertion of the list, without its processes; None for any other."""
    kind, *details = read_test(text)
    if kind != "call":
        return None
    test = Assertion(*details)
    arguments, keywords = marshal.loads(test.call)
    try:
        value = PROGRAM[test.name.lstrip("*")](*arguments, **keywords)
        value = list(value) if test.name.startswith("*") else value
    except Exception:
        return Outcome.ERROR
    return verdict(test, RETURNED + codec.encode(value), codec.Meter(codec.VALUES)).outcome


LITERALS = (
    "None", "True", "False", "0", "1", "-1", "2.0", "0.1 + 0.2", "1e309", "''", "'ab'", "b'ab'",
    "[]", "[1, 2]", "[2, 1, 1]", "(1, 2)", "{1, 2}", "{'a': 1}", "{1: 'x', True: 'y'}", "3 - 2j",
    "float('nan')", "float('-inf')", "set()", "frozenset([1])", "10**20", "2**-1",
    "[0] * 3", "'ab' * 2", "[1] + [2]", "-True", "7 // 2", "-7 % 3", "list('ab')", "[[1, 'a'], []]",
)  # fmt: skip
FORMS = ("assert echo({}) == {}", "assert {} == echo({})", "import math\nassert math.isclose(echo({}), {})")  # fmt: skip
SINGLE = ("assert echo({})", "assert not echo({})", "assert echo({}) is None", "assert True is echo({})",
          "assert list(echo({})) == [1, 2]", "echo({})")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_comparisons_are_pythons(form: str) -> None:
    for left, right in itertools.product(LITERALS, LITERALS):
        text = form.format(left, right)
        assert by_list(text) is by_python(text), text


@pytest.mark.parametrize("form", SINGLE)
def test_what_is_said_without_a_value_is_pythons(form: str) -> None:
    for value in LITERALS:
        text = form.format(value)
        assert by_list(text) is by_python(text), text


MORE = [
    "fail('ValueError')",
    "assert fail('TypeError') == 1",
    "assert echo(1) == 2, 'a message'",
    "assert echo(1) == 1, 5",
    "assert pair(1) == (1, 2, None)",
    "assert pair(1, 3, 4, 5, c=6) == (1, 3, 4, 5, 6)",
    "assert pair(b=1, a=2) == (2, 1, None)",
    "assert echo('\\ud800') == '\\ud800'",
    "assert echo([1, [2, (3,)]]) == [1, [2, (3,)]]",
    "assert made('counter') == {'a': 2, 'b': 1}",
    "assert made('decimal') == 0.5",
    "assert made('fraction') == 0.5",
    "assert made('deque') == [1, 2]",
    "assert made('frozenset') == {1}",
    "assert list(made('range')) == [0, 1, 2]",
    "assert made('nan') == float('nan')",
    "assert made('bytearray') == b'ab'",
    "import math\nassert math.isclose(echo(1.0), 1.1, rel_tol=0.2)",
    "import math\nassert math.isclose(echo(1.0), 1.1, abs_tol=1e-3, rel_tol=0)",
    "import math\nassert math.isclose(1.0, echo(1.0), rel_tol=-1)",
    "import math\n\nassert echo(1) == 1",
    "assert echo({1: [2]}) == {1: [2]}  # a comment",
    "assert(echo(1))==1",
    "assert (\n    echo(1)\n    == 1\n)",
]


@pytest.mark.parametrize("text", MORE)
def test_other_assertions_of_the_list_are_pythons(text: str) -> None:
    assert by_list(text) is by_python(text)


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
@given(data, data, st.sampled_from([*FORMS, "assert list(echo({})) == {}", "assert echo({}) is {}"]))  # fmt: skip
def test_any_data(left: Any, right: Any, form: str) -> None:
    text = form.format(repr(left), repr(right))
    assert by_list(text) in (None, by_python(text)), text


@settings(max_examples=100, deadline=None)
@given(st.text("assert echo([({1,'a'})])=<>!: +-*/%.\n\\#\"\0", max_size=40))
def test_any_text_is_read(text: str) -> None:
    read = read_test(text)
    assert read[0] in ("call", "text", "nothing", "syntax_error")
    try:
        compile(text, "<test>", "exec")
    except (SyntaxError, ValueError):
        assert read[0] == "syntax_error"
    else:
        assert read[0] != "syntax_error"


# What is not on the list


OTHER = [
    "assert echo(1) != 2",
    "assert echo(1) < 2",
    "assert echo(1) is not None",
    "assert 1 in echo([1])",
    "assert echo(1) in [1]",
    "assert not echo(1) == 2",
    "assert len(echo([1, 2])) == 2",
    "assert sorted(echo([2, 1])) == [1, 2]",
    "assert abs(echo(0.1) - 0.1) < 1e-9",
    "assert round(echo(2.675), 2) == 2.67",
    "assert echo(1) == echo(1.0)",
    "assert echo(3) - echo(1) == 2",
    "assert list(list(echo([1]))) == [1]",
    "assert list(echo([1]), 1) == [1]",
    "assert 0 < echo(1) < 3",
    "assert echo(1) == 1 and echo(2) == 2",
    "assert (echo(1) == 2, 'always true')",
    "assert echo(echo(1)) == 1",
    "assert echo(x := 1) == 1",
    "assert echo(lambda: 1)",
    "assert echo(*[1]) == 1",
    "assert echo(1, **{'a': 1}) == 1",
    "assert [echo(1)] == [1]",
    "assert echo(1).real == 1",
    "assert math.isclose(echo(1), 1)",
    "import math as m\nassert m.isclose(echo(1), 1)",
    "import math\nassert math.isclose(echo(1), 1, rel_tol='a')",
    "import math\nassert math.isclose(echo(1), 1, tol=1)",
    "import math\nassert math.isclose(echo(1), 1, 2)",
    "import math\nassert math(1) == 1",
    "import math\nassert echo(math.inf) == math.inf",
    "x = 1\nassert echo(x) == x",
    "'''a text'''\nassert echo(1) == 1",
    "assert 1 == 1",
    "assert isinstance(echo(1), int)",
    "assert echo(1) is 1000",
    "assert echo(range(3)) == range(3)",
    "assert echo(1) == 1, echo(2)",
    "assert echo(f'{1}') == '1'",
    "assert echo(...) is ...",
    "assert echo([0] * 10**9)",
    "assert echo(9 ** 9 ** 9)",
    "assert echo({**{'a': echo(1)}}) == {}",
    "assert echo(list({2, 1})) == [1, 2]",
]


@pytest.mark.parametrize("text", OTHER)
def test_anything_else_is_a_text(text: str) -> None:
    assert read_test(text) == ("text",)


def test_anything_else_runs_inside_and_says_so(sandbox: Sandbox) -> None:
    code = "def echo(value=None, /, *more, **named): return value"
    outside = ["assert echo(1) == 1", "assert echo(None) is None", "assert list(echo('ab')) == ['a', 'b']"]  # fmt: skip
    runs = [text for text in OTHER if not any(name in text for name in ("9 **", "10**9"))]
    results = sandbox.run_tests(code, [*outside, *runs])
    assert [each.judged for each in results] == ["outside"] * 3 + ["inside"] * len(runs)
    alone = [f"def test_it():\n    {text.splitlines()[-1]}" for text in outside]
    assert {each.judged for each in sandbox.run_tests(code, alone)} == {"inside"}


def test_repeated_containers_are_aliases_and_so_no_values() -> None:
    for text in ("[[0] * 2] * 3", "([],) * 2", "[{}] * 2", "(({1},),) * 2"):
        assert read_test(f"assert echo({text}) == 1") == ("text",)
    for text in ("[0] * 3", "[(0, 'a')] * 2", "[''] * 2", "[None] * 5"):
        assert read_test(f"assert echo({text}) == 1")[0] == "call"


@pytest.mark.parametrize(
    "text",
    ["assert echo(1) ==", "def f(:", "\0", "é = '", "assert echo(x=1, x=2)", "return 1", "(" * 300],
)
def test_what_cannot_be_compiled_is_no_test(text: str) -> None:
    kind, message = read_test(text)
    assert kind == "syntax_error"
    assert message


@pytest.mark.parametrize("name", ["float", "set", "len", "list", "dict"])
def test_the_name_under_test_makes_no_literals(name: str) -> None:
    assert read_test(f"assert {name}('1') == 1", name)[:2] == ("call", name)
    assert read_test(f"assert {name}('1') == 1")[0] == "text"
    assert read_test(f"assert echo({name}([])) == 1", name) == ("text",)
    assert read_test(f"assert echo([{name}()]) == 1", name) == ("text",)


# The parts that reading uses, too


def test_forms_and_sides_are_those_of_python() -> None:
    def condition(text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body

    def call_of(node: ast.expr) -> str | None:
        return ast.unparse(node) if isinstance(node, ast.Call) else None

    def found(text: str) -> tuple[str, str | None, str]:
        rule, left, right = form_of(condition(text), lambda name: ast.unparse(name) == "close")
        if right is None:
            return rule, call_of(left), ""
        call, other = sides(left, right, call_of)
        return rule, call, ast.unparse(other)

    assert found("f(1) == x") == found("x == f(1)") == ("==", "f(1)", "x")
    assert found("None is f(1)") == ("is", "f(1)", "None")
    assert found("not f(1)") == ("false", "f(1)", "")
    assert found("f(1)") == ("true", "f(1)", "")
    assert found("close(2.0, f(1), 3)") == ("close", "f(1)", "2.0")
    assert found("close(2.0)") == ("true", "close(2.0)", "")
    assert found("f(1) < 2") == ("true", None, "")
    with pytest.raises(NotLiteralError, match="two calls"):
        found("f(1) == g(1)")
    with pytest.raises(NotLiteralError, match="\\*\\*"):
        arguments_of(condition("f(**x)"), lambda node: 1)  # type: ignore[arg-type]


# Bounds


def test_long_honest_texts_have_time() -> None:
    cases = ", ".join(f"([{n}, {n + 1}, 'text'], {{'a': {n}}})" for n in range(10_000))
    text = f"for given, expected in [{cases}]:\n    assert f(given) == expected"
    assert len(text) > 300_000
    assert read_tests([text]) == [("text",)]
    assert read_test(f"assert f({list(range(20_000))}) == {[1.5] * 20_000}")[0] == "call"


def test_hostile_texts_are_read_quickly() -> None:
    texts = [
        "assert echo(" + "-" * 5000 + "1) == 1",
        "assert echo(" + "1+" * 5000 + "1) == 1",
        "assert echo(" + "[" * 150 + "]" * 150 + ") == 1",
        "assert echo({((((0,) * 9999,) * 9999,) * 9999)}) == 1",
        "assert echo(" + "(" * 60 + "10**20" + ")**20" * 60 + ") == 1",
        "assert echo({" + ",".join(str(7 + k * (2**61 - 1)) for k in range(3000)) + "})",
        "assert echo([[None] * 9999] * 9999) == [[None] * 9999] * 9999",
        "assert " + "list(" * 60 + "echo(1)" + ")" * 60 + " == 1",
        "x = " + "lambda: " * 60 + "1",
    ]
    started = time.process_time()
    kinds = [read[0] for read in read_tests(texts)]
    assert time.process_time() - started < 3.0
    assert set(kinds) <= {"call", "text", "nothing", "syntax_error"}
