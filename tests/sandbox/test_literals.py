"""Literals: what is read evaluates to what Python evaluates, and nothing is computed beyond a bound."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
    write,
)


def node(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def same(a: Any, b: Any) -> bool:
    """Equal with the same types at every place, nan and the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (set, frozenset)):
        return sorted(map(in_order, a)) == sorted(map(in_order, b))
    return repr(a) == repr(b)


def in_order(item: Any) -> str:
    """The same text for equal items of sets, in whatever order sets within them have their own."""
    if isinstance(item, (frozenset, tuple)):
        parts = [in_order(each) for each in item]
        return f"{type(item).__name__}{parts if isinstance(item, tuple) else sorted(parts)}"
    return repr(item)


ATOMS = (
    st.none() | st.booleans() | st.integers() | st.integers(-5, 5) | st.floats() | st.text(max_size=8)
    | st.binary(max_size=5) | st.complex_numbers()
)  # fmt: skip
KEYS = st.one_of(
    st.none(), st.integers(-9, 9), st.text(max_size=3), st.floats(allow_nan=False), st.booleans()
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
        st.frozensets(KEYS, max_size=4),
    ),
    max_leaves=12,
)
SCOPE = {"math": math, "n": 3, "items": [[1], "a"], "row": {"k": (1, 2)}}
NAMES = {"n": 3, "items": [[1], "a"], "row": {"k": (1, 2)}}
SIMPLE = st.sampled_from([
    "1", "-1", "0", "2.5", "-0.0", "1e400", "'ab'", "b'x'", "''", "None", "True", "[]", "()", "{}", "set()", "[0]",
    "(1,)", "{1: 'a'}", "{1, 2}", "frozenset({1})", "math.inf", "math.nan", "float('inf')", "float('nan')", "2j",
    "list(range(3))", "n", "items", "row", "row['k']", "items[0]", "items[-1]", "'abc'[::-1]", "dict(a=1)",
    "0x1F", "1_000", "10**6", "2**-1", "tuple('ab')", "items[5]", "abs(-3)", "sorted([3, 1])", "len('abc')",
    "dict(zip('ab', [1, 2]))", "[*range(2), *'xy']", "{**row, 'z': 0}", "complex(1, -0.0)", "set([1, 1])",
    "sum([1, 2.5])", "max([1, 3])", "list({'a': 1}.items())", "list(enumerate('ab'))", "float(2)", "'a' 'b'",
    "str(2.5)", "' '.join(map(str, [1, 2]))", "f'{n:>5}|{2.5:.1f}|{n!r}|{None}|{n + 1}'", "f'{True:d}'", "str()",
])  # fmt: skip
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<<",
    ">>",
    "|",
    "&",
    "^",
    "==",
    "!=",
    "<",
    "in",
    "and",
    "or",
]
EXPRESSIONS = st.recursive(
    st.one_of(SIMPLE, VALUES.map(write).map(lambda text: text or "0")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(
            lambda each: f"({each[0]}) {each[1]} ({each[2]})"
        ),
        st.tuples(st.sampled_from(["-", "+", "~", "not "]), inner).map(lambda e: f"{e[0]}({e[1]})"),
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"({', '.join(each)},)"),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"{{{', '.join(each)}}}"),
        st.tuples(inner, inner).map(lambda each: f"{{({each[0]}): {each[1]}}}"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]})[{each[1]}]"),
        st.tuples(
            st.sampled_from(
                ["list", "tuple", "set", "sorted", "len", "sum", "dict", "abs", "str", "', '.join"]
            ),
            inner,
        ).map(lambda each: f"{each[0]}({each[1]})"),
        st.tuples(inner, inner, inner).map(
            lambda each: f"({each[0]}) if ({each[1]}) else ({each[2]})"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_is_read_is_what_python_evaluates(text: str) -> None:
    tree = node(text)
    try:
        found = read(tree, NAMES)
    except NotLiteralError:
        return
    assert same(found, eval(text, dict(SCOPE))), text


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_is_read_exactly_has_no_aliases(text: str) -> None:
    try:
        found = read(node(text), meter=LiteralMeter(exact=True))
    except NotLiteralError:
        return
    wanted = eval(text, {})
    assert same(found, wanted), text
    held = list(changeable([wanted]))
    assert len(held) == len(set(map(id, held))), text


def changeable(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, dict, set)):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (list, dict, set, tuple)):
            yield from changeable(part)


@pytest.mark.parametrize(
    "text",
    ["list({1, -1})", "[*{1, 2}]", "tuple({'a', 'b'})", "dict(zip({1, 2}, 'ab'))", "sum({0.1, 0.2, 0.3})",
     "sorted({frozenset('a'), frozenset('b')})"],
)  # fmt: skip
def test_the_order_of_a_set_is_not_known(text: str) -> None:
    with pytest.raises(NotLiteralError, match="order of a set"):
        read(node(text))


def test_the_order_of_a_set_makes_no_difference() -> None:
    assert read(node("[sorted({1, -1}), max({1, 2}), sum({1, 2}), len({1.5, 2}), set({1, 'a'})]")) == [
        [-1, 1], 2, 3, 2, {1, "a"},
    ]  # fmt: skip
    assert read_items(node("{2, 1}")) == [1, 2]


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_what_is_written_is_read_as_the_same_value(value: Any) -> None:
    text = write(value)
    assert text is not None
    assert same(read(node(text)), value)
    assert same(eval(text), value)
    assert write(read(node(text))) == text


@pytest.mark.parametrize(
    "text",
    ["[[0] * 3] * 3", "[row, row]", "[row] * 2", "[items[0]] * 2", "[row, row.copy()]", "[items[0], row]", "[items[:][0], row]",
     "[[*items][0], row]", "[(row or [])] * 2", "[row[:], row]", "[dict(a=row).get('a'), row]", "[row + [], row]",
     "list(zip([row], [row]))[0]", "[x for x in items + [row]]"],
)  # fmt: skip
def test_places_share_an_object_as_in_python(text: str) -> None:
    row = [1]
    scope = {"row": row, "items": [row]}
    found, wanted = read(node(text), scope, LiteralMeter(loops=True)), eval(text, scope)
    assert (found[0] is found[1]) == (wanted[0] is wanted[1])


HUGE = [
    "[0] * 10**9", "10**10**10", "'a' * 10**9", "[[0] * 1000] * 1000", "1 << 10**10", "2**100000", "range(10**9)",
    "list(range(10**30))", "list(range(-10**30, 10**30, 7))", "(10**1000)**5", "7 * 2**4095", "[*range(10**9)]",
    "{i: 0 for i in range(10**9)}", "9**9**9**9", "-(10**10**8)", "10.0**10**6", "'%1000000d' % 3",
    "' ' * 10**12", "b'x' * 10**9", "sum([10**1200] * 9) * 10**100", "complex('9' * 10**9)", "f'{1:1000000000}'",
    "tuple(range(10**8))", "{**{}, **dict(zip(range(10**8), range(10**8)))}", "[0][10**30]", "(1).__class__",
    "0x" + "f" * 60_000 + " * 3", "[" + "1," * 30_000 + "]", "float('1' * 10**9)", "enumerate(range(10**9))",
]  # fmt: skip


@pytest.mark.parametrize("text", HUGE)
def test_what_is_large_is_refused_before_it_is_computed(text: str) -> None:
    tree = node(text)
    started = time.process_time()
    with pytest.raises(NotLiteralError, match=r"\w"):
        read(tree)
    assert time.process_time() - started < 1


def test_one_meter_bounds_many_expressions() -> None:
    meter = LiteralMeter(1_000)
    for _ in range(3):
        read(node("[0] * 300"), None, meter)
    with pytest.raises(NotLiteralError, match="too many items"):
        read(node("[0] * 300"), None, meter)
    with pytest.raises(NotLiteralError, match="too many items"):
        read(node("xs"), {"xs": [0] * 300}, meter)


def test_many_equal_hashes_are_refused() -> None:
    keys = ", ".join(str(i * (2**61 - 1)) for i in range(1_000))
    for text in (f"{{{keys}}}", f"set([{keys}])", f"dict.fromkeys([{keys}])"):
        with pytest.raises(NotLiteralError):
            read(node(text))


@pytest.mark.parametrize(
    "text",
    ["f(1)", "x", "xs.y", "lambda: 0", "[i for i in range(3)]", "...", "f'{n}'", "int('3')", "u", "print", "open('x')",
     "'a'.join([1])", "{[]: 1}", "{[]}", "1 / 0", "[] + ()", "'a' + 1", "[1][2]", "{}['a']", "set(3)", "not_there[0]",
     "list(5)", "range(3)", "-'a'", "~1.5", "[*5]", "{**[1]}", "dict([1])", "await x", "(yield)", "list(*[[1]])"],
)  # fmt: skip
def test_what_is_no_literal_has_a_reason(text: str) -> None:
    with pytest.raises(NotLiteralError, match=r"\w"):
        read(node(text), {"u": UNKNOWN})


def test_a_builtin_that_has_another_meaning_is_none() -> None:
    with pytest.raises(NotLiteralError):
        read(node("set([1])"), {"set": UNKNOWN})
    with pytest.raises(NotLiteralError):
        read(node("math.inf"), {"math": 3})


def test_items() -> None:
    assert read_items(node("{'b': 1, 'a': 2}.items()")) == [("b", 1), ("a", 2)]
    assert read_items(node("{'b', 'a'}")) == ["a", "b"]
    assert read_items(node("zip([1, 2], (3, 4))")) == [(1, 3), (2, 4)]
    assert read_items(node("reversed([1, 2])")) == [2, 1]
    with pytest.raises(NotLiteralError):
        read_items(node("5"))


def test_deep_nesting_ends_with_a_reason() -> None:
    tree: ast.expr = ast.Constant(1)
    for _ in range(100_000):
        tree = ast.List([tree], ast.Load())
    with pytest.raises(NotLiteralError, match="deep"):
        read(tree)
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert write(value) is None
    value[0] = value
    assert write(value) is None


@pytest.mark.parametrize(
    "value",
    [object(), type, len, [object()], range(3), bytearray(b"a"), {1: print}, "x" * 30_000, [0] * 10_000,
     [["x" * 1000] * 30] * 30, -(1 << 99_999), type("Text", (str,), {})("a"), [[1] * 100] * 100_000, {i: i for i in range(9999)}],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_has_no_text_or_a_long_one(value: Any) -> None:
    started = time.process_time()
    assert write(value) is None
    assert time.process_time() - started < 1
