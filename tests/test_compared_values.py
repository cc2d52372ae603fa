"""Equal or not, first by bytes and then by value, whatever the bytes are."""

from __future__ import annotations

import math
import pickle
import time
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env import compare
from codea1_env.compare import Returned, read_reply
from codea1_env.sandbox import RETURNED, Comparison, Limit, Outcome, TestResult
from codea1_env.sandbox.compare import short
from codea1_env.sandbox.inside.codec.encoding import encode

KEYS = st.one_of(
    st.integers(), st.text(max_size=5), st.booleans(), st.none(), st.binary(max_size=3),
    st.floats(allow_nan=False), st.tuples(st.integers(0, 2), st.booleans()),
    st.frozensets(st.integers(0, 3), max_size=3),
)  # fmt: skip
DATA = st.recursive(
    st.one_of(KEYS, st.complex_numbers(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
        st.lists(inner, max_size=3).map(deque),
    ),
    max_leaves=8,
)
ALIKE = st.sampled_from(
    [0, 0.0, -0.0, False, 0j, 1, 1.0, True, 2**53, 2**53 + 1, float(2**53), "", "0", b"", [], (), {}, set(),
     frozenset(), None, [0], [False], (0,), {0}, {0: 0}, {False: 0.0}, {0: [1]}, deque(), deque([0]), [1.0], [True]]
)  # fmt: skip


def same(found: Any, expected: Any, tolerance: float) -> bool:
    return compare.same(found, expected, Comparison(atol=tolerance, rtol=tolerance))


def test_large_values_are_compared_and_shown_without_being_put_in_order() -> None:
    """One call of C that looks at millions of items stops every other thread."""
    prefix = tuple(range(1000))
    one, other = ({(*prefix, sign * each) for each in range(1, 3000)} for sign in (1.0, -1.0))
    started = time.process_time()
    assert not compare.equal(one, other)
    assert not compare.equal(dict.fromkeys(one, 1), dict.fromkeys(other, 1))
    shown = {
        short(value)
        for value in (
            one,
            dict.fromkeys(one),
            Counter({1: [0.5] * 1_000_000}),
            [one],
            1 << 1_000_000,
        )
    }
    assert shown == {
        "<set of 2999 items>", "<dict of 2999 items>", "<Counter of 1 items>", "[<set of 2999 items>]", "a very long int",
    }  # fmt: skip
    assert len(short(b"x" * 10_000_000)) < 100
    assert time.process_time() - started < 1.0
    near = {each + 1e-9 for each in one_of_floats}
    assert compare.equal(near, one_of_floats)


one_of_floats = {float(each) for each in range(20_000)}


def judge_reply(frame: bytes, expected: bytes, tolerance: float) -> TestResult:
    return compare.judge_reply(frame, expected, Comparison(atol=tolerance, rtol=tolerance))


@pytest.mark.slow
@given(DATA)
def test_a_value_is_itself(value):
    copy = pickle.loads(pickle.dumps(value))
    for tolerance in (0, 1e-6):
        assert same(value, copy, tolerance)


@given(st.one_of(DATA, ALIKE), st.one_of(DATA, ALIKE))
def test_without_tolerance_it_is_equality(one, other):
    assert same(one, other, 0) == (one == other) == same(other, one, 0)


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**4))
def test_where_an_integer_is_expected_none_beside_it_will_do(number, by):
    """A float of the right size is no answer where the one beside it is expected, however large they are."""
    for make in (lambda x: x, lambda x: [1.5, x], lambda x: {"k": (x,)}):
        assert not same(make(float(number)), make(number + by), 1e-6)
        assert same(make(float(number)), make(number), 1e-6)
        if by < 1e-7 * abs(number):
            assert same(make(number), make(float(number + by)), 1e-6)


@given(st.floats(), st.floats(), st.sampled_from([1e-6, 1e-3, 0.5]))
def test_floats_within_the_tolerance_are_the_same(one, other, tolerance):
    close = (one != one and other != other) or math.isclose(
        one, other, rel_tol=tolerance, abs_tol=tolerance
    )
    assert (
        same(one, other, tolerance) == close == same([{"k": (one,)}], [{"k": (other,)}], tolerance)
    )


@pytest.mark.parametrize(
    ("one", "other", "exact", "close"),
    [
        ([1, 2], (1, 2), False, False),
        ([1, 2], [1, 2, 3], False, False),
        (1, True, True, True),
        (1.0, True, True, True),
        ([1, 0], [True, False], True, True),
        ("1", 1, False, False),
        (b"a", "a", False, False),
        (0.1 + 0.2, 0.3, False, True),
        ({"a": 0.1 + 0.2}, {"a": 0.3}, False, True),
        ({0.1 + 0.2}, {0.3}, False, True),
        ({0.1 + 0.2: 1}, {0.3: 1}, False, True),
        (1.0, 1 + 1e-9, False, True),
        (10**9, 10**9 + 1, False, False),  # integers are exact
        (float("nan"), float("nan"), True, True),
        ([float("nan")], [float("nan")], True, True),
        (float("nan"), 0.0, False, False),
        (float("inf"), float("inf"), True, True),
        (float("inf"), -float("inf"), False, False),
        (float("inf"), 1.7e308, False, False),
        (float("inf"), 10**400, False, False),
        (1.5, 10**400, False, False),
        (2**53, 2.0**53, True, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, True),
        ({1: "x"}, {True: "x"}, True, True),
        ({"a": 1}, {"a": 1, "b": 2}, False, False),
        ({1, 2}, frozenset({2, 1}), True, True),
        ({1, 2}, [1, 2], False, False),
        ({0.1 + 0.2, 1.0, float("nan")}, frozenset({float("nan"), 0.3, 1.0}), False, True),
        ({2.0, float("nan")}, {float("nan"), 2.0}, True, True),
        ({2.0, float("nan")}, {2.0, 3.0}, False, False),
        ({(0.1 + 0.2, "a"), None}, {(0.3, "a"), None}, False, True),
        ({1, "a"}, {1, "b"}, False, False),
        ({1, "a", 2}, {1, 3, "b"}, False, False),
        ({float("nan"): 1, 2: 0.1 + 0.2}, {2: 0.3, float("nan"): 1}, False, True),
        ({float("nan"): 1}, {float("nan"): 2}, False, False),
        ({0.1 + 0.2: "x"}, {0.3: "x"}, False, True),
        (Counter("aab"), {"a": 2, "b": 1}, True, True),
        (OrderedDict(a=1, b=2), {"b": 2, "a": 1}, True, True),
        (defaultdict(int, a=1), {"a": 1}, True, True),
        (defaultdict(int), {"a": 0}, False, False),
        (deque([1, 2]), deque([1, 2]), True, True),
        (deque([1, 2]), [1, 2], False, False),
        (deque([0.1 + 0.2]), deque([0.3]), False, True),
        (Decimal("1.0"), Decimal("1.00"), True, True),
        (Decimal("1"), 1, True, True),
        (Decimal("0.1"), 0.1, False, False),
        (Decimal("sNaN"), 1, False, False),
        (Decimal("sNaN"), Decimal("sNaN"), False, False),
        (Fraction(1, 2), 0.5, True, True),
        (range(3), range(3), True, True),
        (range(3), [0, 1, 2], False, False),
    ],
)  # fmt: skip
def test_examples(one, other, exact, close):
    assert (same(one, other, 0), same(one, other, 1e-6)) == (exact, close)
    assert (same(other, one, 0), same(other, one, 1e-6)) == (exact, close)


@pytest.mark.parametrize(
    ("found", "expected", "close"),
    [
        (1, 1 + 1e-9, True),
        (1 + 1e-9, 1, False),
        (True, 1 + 1e-9, True),
        (2**53 + 1, 2.0**53, True),
        (2.0**53, 2**53 + 1, False),
        ([1e9, 1e9], [1e9 + 1e-3, 10**9 + 1], False),
        ([10**9, 1e9], [1e9 + 1e-3, 10**9], True),
    ],
)
def test_the_tolerance_is_that_of_expected_floats(found, expected, close):
    assert same(found, expected, 1e-6) == close


# Replies


def reply(value: Any) -> bytes:
    return RETURNED + encode(value)


@pytest.mark.slow
@given(st.one_of(DATA, ALIKE), st.one_of(DATA, ALIKE), st.sampled_from([0, 1e-6]))
def test_replies_are_compared_as_values(one, other, tolerance):
    found = judge_reply(reply(one), reply(other), tolerance)
    # The copy may lack what only identity makes equal.
    assert found.passed == same(one, other, tolerance)
    assert found.outcome in (Outcome.PASS, Outcome.FAIL)


@pytest.mark.parametrize(
    ("rule", "expected", "right", "wrong"),
    [
        ("set", (1, "a"), [["a", 1, 1], {1, "a"}], [[1], "a1", None, [[1], "a"], {"a": 0, 1: 0}]),
        ("set", [1.0], [[1], [True]], [[1 + 1e-9]]),
        ("exact", (0.3, 1), [[0.3, 1]], [[0.1 + 0.2, 1], [(0.3, 1)]]),
        ("exact", [(0.3, 1)], [((0.3, 1),)], [[[0.3, 1]]]),
        ("equal", (0.3, 1), [(0.1 + 0.2, True)], [[0.3, 1]]),
        ("not-none", 0, [False, "", [0], 7], [None]),
        ("not-none", None, [], [False, 0]),
    ],
)
def test_rules_between_replies(rule, expected, right, wrong):
    comparison = Comparison(rule, 1e-6, 1e-6)
    for found in (expected, *right, *wrong):
        passed = compare.judge_reply(reply(found), reply(expected), comparison).passed
        assert passed is (found not in wrong), found
        assert compare.same(found, expected, comparison) is passed
    # The rule belongs to what is remembered.
    assert not compare.judge_reply(reply([2, 1]), reply([1, 2]), Comparison("equal")).passed
    assert compare.judge_reply(reply([2, 1]), reply([1, 2]), Comparison("set")).passed


def test_something_need_be_no_data():
    end = encode(("unencodable", "<object at 0x7f00>"))
    for expected, passed in ((1, True), (None, False)):
        assert compare.judge_reply(end, reply(expected), Comparison("not-none")).passed is passed


def test_sets_cost_little_to_compare():
    alike, many = [k * (2**61 - 1) for k in range(9_000)], [*range(9_999)]
    started = time.process_time()
    for found in (alike, many):
        for expected in (alike[::-1], many[::-1], [1]):
            compare.judge_reply(reply(found), reply(expected), Comparison("set"))
    assert time.process_time() - started < 1.0


@given(st.binary(max_size=200), st.sampled_from([b"", RETURNED, RETURNED + b"l", b"t\2\0\0\0s"]))
@settings(max_examples=200)
def test_no_bytes_are_too_strange(rest, start):
    for expected in (reply(2), reply([1.5, {"a": (None,)}])):
        for tolerance in (0, 1e-6):
            found = judge_reply(start + rest, expected, tolerance)
            assert isinstance(found, TestResult)
            assert found.outcome is not Outcome.INFRA_ERROR
    assert isinstance(read_reply(start + rest), (Returned, TestResult))


ENDINGS = {
    ("raised", "KeyError: 1"): (Outcome.ERROR, "KeyError: 1"),
    ("exited", "SystemExit(0)"): (Outcome.EXITED, "SystemExit(0)"),
    ("memory", ""): (Outcome.MEMORY, "the memory limit was reached"),
    ("unencodable", "x at 0x7f00>"): (Outcome.UNENCODABLE, "x at 0x...>"),
    ("too large", "x"): (Outcome.OUTPUT_LIMIT, "x"),
    ("pass", ""): (Outcome.FORBIDDEN, "a reply of an unknown kind"),
    ("ok", 2, 2): (Outcome.FORBIDDEN, "a reply with a strange shape"),
    ("raised", 3): (Outcome.FORBIDDEN, "a reply of an unknown kind"),
    2: (Outcome.FORBIDDEN, "a reply of an unknown kind"),
}


@pytest.mark.parametrize("content", ENDINGS)
def test_calls_that_did_not_return(content):
    outcome, message = ENDINGS[content]
    limit = Limit.RESULT if outcome is Outcome.OUTPUT_LIMIT else None
    assert judge_reply(encode(content), reply(2), 0) == TestResult(outcome, message, limit=limit)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("'x' * 10**7", Outcome.FAIL),
        ("[[]] * 50_000", Outcome.FAIL),
        ("{k * (2**61 - 1) for k in range(100)}", Outcome.OUTPUT_LIMIT),
        ("10 ** 9_800", Outcome.FAIL),
        ("10 ** 10_000", Outcome.OUTPUT_LIMIT),
        ("Decimal(1)", Outcome.OUTPUT_LIMIT),
        ("3", Outcome.FAIL),
    ],
)
def test_what_costs_too_much_is_not_read(value, outcome):
    frame = reply(eval(value))
    started = time.perf_counter()
    for expected in (reply(2), reply([1, 2])):
        assert judge_reply(frame, expected, 1e-6).outcome is outcome
    assert time.perf_counter() - started < 0.5
