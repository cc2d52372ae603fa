"""The reference's value of each call: asked once, in as many processes as it needs, and remembered."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import pytest

from codea1_env.oracle import MOST_SLOW, BrokenReferenceError, Oracle, is_made
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Test as Call
from codea1_env.sandbox import Limits, Sandbox, encoded_arguments
from codea1_env.subjects import Subject

LIMITS = Limits(call_cpu_time=0.15, call_wall_time=0.8)


def call(*args: Any) -> Call:
    """A test whose prediction does not matter."""
    text = ", ".join(map(repr, args))
    return Call(encoded_arguments(args, {}), b"", f"f({text})", text, "")


def subject(code: str, name: str = "demo") -> Subject:
    return Subject.of(Problem(name, "def f(n): ...", "f", code))


class Spy(Sandbox):
    """A sandbox that remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__(workers=2)
        self.asked: list[tuple[str, int, int]] = []

    def submit(self, method: Any, /, *arguments: Any, **options: Any) -> Any:
        if method == self.run_calls:
            code, _, calls = arguments
            self.asked.append((code, len(calls), options.get("hash_seed", 0)))
        return super().submit(method, *arguments, **options)


@pytest.fixture(scope="module")
def spying() -> Iterator[Spy]:
    with Spy() as sandbox:
        yield sandbox


@pytest.fixture
def spy(spying: Spy) -> Spy:
    """A sandbox of which nothing was asked yet."""
    del spying.asked[:]
    return spying


@pytest.fixture
def oracle(sandbox: Sandbox) -> Oracle:
    return Oracle(sandbox, LIMITS)


def test_a_reference_that_was_slow_to_load_is_loaded_again(sandbox):
    oracle = Oracle(sandbox, Limits(call_cpu_time=0.4, call_wall_time=4))
    oracle.ask({subject("def f(n): return n"): [[call(1)]]})  # workers have started
    # Busy until a moment that no first attempt reaches: one for each hash seed.
    until = time.time() + 0.95
    code = f"import time\nwhile time.time() < {until}: pass\ndef f(n): return n"
    (known,) = oracle.ask({subject(code): [[call(1)]]}).values()
    assert known["f(1)"].fault is None
    with pytest.raises(BrokenReferenceError, match="time"):
        oracle.ask({subject("while True: pass\ndef f(n): return n"): [[call(1)]]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "fault", "reason"),
    [
        ("def f(n): return 1 / n", InvalidReason.RAISES, "reference: ZeroDivisionError"),
        ("def f(n): return f", InvalidReason.UNENCODABLE, "returns no plain data on the reference"),
        ("def f(n):\n    while True: pass", InvalidReason.TIMEOUT, "takes too long"),
        ("def f(n): return [0] * 10 ** 12", InvalidReason.LIMIT, "needs too much memory"),
        ("import os\ndef f(n): os._exit(0)", InvalidReason.LIMIT, "ends the process"),
        ("def f(n): return hash('a')", InvalidReason.NON_DETERMINISTIC, "two runs"),
        ("def f(n): import nothing", InvalidReason.NOT_INSTALLED, "No module named 'nothing'"),
        ("def f(n): raise KeyError(hash('a'))", InvalidReason.RAISES, "reference: KeyError"),
    ],
)
def test_calls_without_a_value(oracle, code, fault, reason):
    truth = oracle.ask({subject(code): [[call(0)]]})[subject(code)]["f(0)"]
    assert (truth.fault, truth.value, truth.reply) == (fault, b"", b"")
    assert reason in truth.reason


def test_both_hash_seeds_must_agree_by_value_not_by_order(oracle):
    words = subject("def f(n): return {chr(97 + k) * n for k in range(20)}")
    order = subject("def f(n): return list({chr(97 + k) * n for k in range(20)})")
    found = oracle.ask({words: [[call(9)]], order: [[call(9)]]})
    assert found[words]["f(9)"].fault is None
    assert found[order]["f(9)"].fault is InvalidReason.NON_DETERMINISTIC


def test_a_float_that_differs_in_the_last_bit_is_not_deterministic(oracle):
    """The tolerance is for programs. A reference whose sums depend on an order has no value."""
    code = "def f(n):\n    return sum({str(k): 0.1 * k for k in {str(k) for k in range(n)} and range(n)}.values())"
    steady = subject(code)
    assert oracle.ask({steady: [[call(9)]]})[steady]["f(9)"].fault is None
    # Added one by one: since Python 3.12 `sum` makes up for what floats lose.
    loose = subject(
        "def f(n):\n    total = 0.0\n    for k in {str(0.1 * k) for k in range(n)}:\n        total += float(k)\n"
        "    return total"
    )
    truth = oracle.ask({loose: [[call(999)]]})[loose]["f(999)"]
    assert truth.fault is InvalidReason.NON_DETERMINISTIC


REMEMBERS = """
from functools import lru_cache
@lru_cache(maxsize=None)
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
"""


def test_what_a_reference_remembers_decides_no_truth(sandbox):
    """Of a recursion as deep as the stack, calls before it would decide whether it ends."""
    asked = subject(REMEMBERS)
    deep = [call(3), call(1200)]
    alone = Oracle(sandbox, LIMITS).ask({asked: [deep]})[asked]
    behind = Oracle(sandbox, LIMITS).ask({asked: [[call(400), call(800), *deep]]})[asked]
    assert alone["f(1200)"].fault is InvalidReason.RAISES
    assert {text: behind[text] for text in alone} == alone
    later = Oracle(sandbox, LIMITS)
    later.ask({asked: [[call(400), call(800)]]})
    assert later.ask({asked: [deep]})[asked] == alone


IN_CIRCLES = """
def f(n):
    parent = list(range(n))
    def find(x):
        return x if parent[x] == x else find(parent[x])
    return find(n - 1)
"""


def test_memory_of_calls_before_decides_no_truth(sandbox):
    """A function that calls itself is a circle, and holds what it sees: nobody frees that between calls."""
    asked = subject(IN_CIRCLES)
    limits = dataclasses.replace(LIMITS, memory=400 << 20, call_cpu_time=2.0, call_wall_time=20.0)
    calls = [call(2_000_000 + number) for number in range(8)]
    found = Oracle(sandbox, limits).ask({asked: [calls[:4], calls[4:]]})[asked]
    assert {each.reason for each in found.values()} == {""}


@pytest.mark.parametrize(
    ("body", "seeds"),
    [
        ("return n + 1", 2),
        ("global k\n    k = n\n    return k", 2),
        ("return len({n, 1})", 4),
        ("import random\n    return random.random() < 2", 4),
    ],
)
def test_a_reference_is_asked_under_two_hash_seeds_or_four(body, seeds, spy):
    code = f"def f(n):\n    {body}\n"
    asked, oracle = subject(code), Oracle(spy, LIMITS)
    found = oracle.ask({asked: [[call(1), call(2), call(1)], [call(2)]]})
    assert [*found[asked]] == ["f(1)", "f(2)"]
    alone = (
        "k = n" in body or "import" in body
    )  # what may keep something makes each call in a process of its own
    expected = [(code, 1 if alone else 2, seed) for seed in range(seeds) for _ in range(1 + alone)]
    assert spy.asked == expected
    del spy.asked[:]
    assert [*oracle.ask({asked: [[call(1), call(3)]]})[asked]] == ["f(1)", "f(3)"]
    assert spy.asked == [(code, 1, seed) for seed in range(seeds)]


def test_a_preamble_with_sets_counts(spy):
    problem = Problem(
        "demo", "def f(n): ...", "f", "def f(n): return MADE", preamble="MADE = len({1, 2})"
    )
    Oracle(spy, LIMITS).ask({Subject.of(problem): [[call(1)]]})
    assert [seed for *_, seed in spy.asked] == [0, 1, 2, 3]


def test_without_a_call_it_is_still_asked_whether_it_loads(spy):
    oracle = Oracle(spy, LIMITS)
    fine, broken = subject("def f(n): return n"), subject("def f(n) return n")
    assert oracle.ask({fine: []}) == {fine: {}}
    with pytest.raises(BrokenReferenceError, match="syntax_error"):
        oracle.ask({broken: [[]]})
    del spy.asked[:]
    assert oracle.loads([fine, broken, fine]) == [True, False, True]
    assert [code for code, _, _ in spy.asked] == [broken.code]


def test_a_reference_that_runs_with_one_hash_seed_only_is_broken(oracle):
    parity = subject("def f(n): return hash(str(n)) % 2")
    known = oracle.ask({parity: [[call(n) for n in range(40)]]})[parity]
    differing = next(n for n in range(40) if known[f"f({n})"].fault)
    for odd in (0, 1):
        code = f"if hash('{differing}') % 2 != {odd}: raise ValueError\ndef f(n): return n"
        with pytest.raises(BrokenReferenceError, match="ValueError"):
            oracle.ask({subject(code): [[call(1)]]})


@pytest.mark.slow
def test_slow_calls_stop_a_suite_and_not_those_beside_it(spy):
    code = "def f(n):\n    while n > 100: pass\n    return n"
    oracle = Oracle(spy, Limits(call_cpu_time=0.1, call_wall_time=0.6))
    slow = [call(n) for n in (101, 1, *range(102, 102 + MOST_SLOW), 2)]
    found = oracle.ask({subject(code): [slow, [call(3), call(2)]]})[subject(code)]
    late = {name for name, truth in found.items() if truth.fault is InvalidReason.TIMEOUT}
    assert late == {f"f({n})" for n in range(101, 102 + MOST_SLOW)}
    assert [calls for _, calls, seed in spy.asked] == [8, 8, MOST_SLOW, MOST_SLOW]
    seen: set[str] = set()
    assert [is_made(each, found, seen) for each in slow] == [True] * 5 + [False] + [True]
    del spy.asked[:]
    assert oracle.ask({subject(code): [slow]})[subject(code)].items() <= found.items()
    assert spy.asked == []  # a time limit is remembered, too
    oracle.ask({subject(code): [[call(101 + MOST_SLOW)]]})
    assert [calls for _, calls, _ in spy.asked] == [1, 1]  # now with the whole time
