"""What reading hostile bytes may cost, and that what does not fit is still judged rightly."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.sandbox.inside import codec

TIGHT = codec.Budget(size=1000, items=40, total_items=60, keys=8, int_bytes=16, exact_int_bytes=4)


def read(value: Any, budget: codec.Budget = TIGHT) -> Any:
    return codec.decode(codec.encode(value), meter=codec.Meter(budget))


FITS = [
    [None] * 40,
    list(range(100)),  # packed: an eighth
    [*range(50), 0.5],
    set(range(8)),
    {str(number) for number in range(20)},
    [deque()] * 3,
    1 << 100,
    [Decimal(1), 1 << 20],
]


COSTS_TOO_MUCH = [
    "x" * 1001,
    [None] * 41,
    [[None] * 20] * 3,
    set(range(9)),
    dict.fromkeys(range(9)),
    [deque()] * 4,
    [OrderedDict()] * 10,
    1 << 200,
    [Decimal(1), 1 << 100],
    [1 << 100, Fraction(1, 2)],
]


def test_what_fits_is_read_and_what_costs_too_much_is_not() -> None:
    for value in FITS:
        assert read(value) == value
    for value in COSTS_TOO_MUCH:
        with pytest.raises(codec.BudgetError):
            read(value)
        assert codec.decode(codec.encode(value)) == value


def test_the_clock_ends_what_takes_long() -> None:
    budget = codec.Budget(seconds=0.01)
    with pytest.raises(codec.BudgetError, match="to read"):
        read([[[]] * 10] * 20_000, budget)


def test_cheap_bounds_time() -> None:
    """The worst that fits: dicts whose keys all collide along their way, with different hashes."""
    mask, taken, at = (1 << 13) - 1, set(), 0
    for _ in range(2500):
        taken.add(at)
        at = (5 * at + 1) & mask
    keys = list(taken)
    for key in range(1 << 13, 1 << 22):
        index, rest = key & mask, key
        while index in taken and rest:
            rest >>= 5
            index = (index * 5 + rest + 1) & mask
        if index in taken:
            keys.append(key)
        if len(keys) == 5000:
            break
    data = codec.encode([dict.fromkeys(keys)] * 3)
    started = time.thread_time()
    codec.decode(data, meter=codec.Meter(codec.CHEAP))
    assert time.thread_time() - started < 1.0


LARGE = [
    ("list(map(str, range(60_000)))", "f()", "not f()"),
    ("dict.fromkeys(range(20_000))", "f()", "not f()"),
    ("range(900_000)", "f()", "f() == 404999550000"),
    ("list(range(9000))", "f() == list(range(9000))", "f() == list(range(9001))"),
    ("__import__('decimal').Decimal('0.10')", "f()", "f() == 0.1"),
    ("__import__('fractions').Fraction(1, 2)", "f() == 0.5", "0.25 == f()"),
    ("1 << 100_000", "f()", "f() == 5"),
]


@pytest.mark.parametrize(("value", "right", "wrong"), LARGE, ids=[value for value, *_ in LARGE])
def test_large_values_are_judged_outside(
    sandbox: Sandbox, value: str, right: str, wrong: str
) -> None:
    tests = [f"assert {right}", f"assert {wrong}"]
    right, other = sandbox.run_tests(f"def f(): return {value}", tests)
    assert (right.outcome, right.message, right.judged) == (Outcome.PASS, "", "outside")
    assert (other.outcome, other.judged) == (Outcome.FAIL, "outside")


COSTLY = [
    ("range(5_000_000)", "assert list(f()) == [1]"),
    ("[None] * 1_500_000", "assert f() == 1"),
    ("set(range(40_000))", "assert f()"),
]


@pytest.mark.parametrize(("value", "test"), COSTLY, ids=[value for value, _ in COSTLY])
def test_what_costs_too_much_is_no_verdict_of_the_programs_process(
    sandbox: Sandbox, value: str, test: str
) -> None:
    started = time.process_time()
    (result,) = sandbox.run_tests(f"def f(): return {value}", [test])
    assert (result.outcome, result.judged) == (Outcome.OUTPUT_LIMIT, "outside")
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize("value", ["[None] * 1_500_000", "set(range(40_000))", "1 << 2_000_000"])
def test_what_costs_too_much_is_no_value_of_a_call(sandbox: Sandbox, value: str) -> None:
    (result,) = sandbox.call(f"def f(): return {value}", "f", [((), {})])
    assert result.outcome is Outcome.OUTPUT_LIMIT
    assert "costs too much" in result.message


def test_all_values_of_one_run_share_a_budget(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "VALUES", codec.Budget(total_items=4_000))
    results = sandbox.call("def f(): return [None] * 900", "f", [((), {})] * 6)
    outcomes = [result.outcome for result in results]
    assert outcomes == [Outcome.PASS] * 4 + [Outcome.OUTPUT_LIMIT] * 2
