"""Value mode: calls with plain data, and assertions about what they return, as in plain Python."""

from __future__ import annotations

import datetime
import math
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction

import pytest
from processes import run_python

from codea1_env.sandbox import Outcome, Sandbox

ECHO = "def echo(*args, **kwargs):\n    return kwargs or (args[0] if len(args) == 1 else args)"

VALUES = [
    None, True, 0, -1, 2**100, 0.1, math.inf, 1 + 2j, "", "é\ud800😀\x00", b"\x00\xff", bytearray(b"x"),
    [], [1, [2, [3]]], list(range(1000)), [0.5] * 9, (), (1,), {}, {"a": {1: [2]}}, {(1, 2): None},
    set(), {1, "a"}, frozenset({1}), range(3), Decimal("1.50"), Fraction(1, 3), deque([1, 2], 5),
    Counter("aab"), OrderedDict(a=1), defaultdict(list, {"a": [1]}),
    datetime.datetime(2024, 2, 29, 1, 2, 3), datetime.date(2024, 2, 29), datetime.time(1, 2),
    datetime.timedelta(1, 2, 3), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
]  # fmt: skip


def test_values_come_back_as_they_went(sandbox: Sandbox) -> None:
    results = sandbox.call(ECHO, "echo", [((value,), {}) for value in VALUES])
    assert [result.outcome for result in results] == [Outcome.PASS] * len(VALUES)
    for value, result in zip(VALUES, results, strict=True):
        assert result.value == value
        assert type(result.value) is type(value)


def test_positional_and_keyword_arguments(sandbox: Sandbox) -> None:
    results = sandbox.call(
        ECHO, "echo", [((1, 2), {}), ((), {"a": [1], "b": None}), ([], {}), ((5,), {})]
    )
    assert [result.value for result in results] == [(1, 2), {"a": [1], "b": None}, (), 5]


def test_hash_seeds_differ_and_are_fixed(sandbox: Sandbox) -> None:
    code = "def f(): return list({'alpha', 'beta', 'gamma', 'delta', 'epsilon'})"
    first, again, *others = (
        sandbox.call(code, "f", [((), {})], hash_seed=seed)[0].value for seed in (0, 0, 1, 2, 3)
    )
    assert first == again
    assert len({tuple(each) for each in (first, *others)}) == 4
    assert len({tuple(sorted(each)) for each in (first, *others)}) == 1
    for seed in (4, -1, True, "0"):
        with pytest.raises(ValueError, match="hash_seed to be an integer from 0 to 3"):
            sandbox.call(code, "f", [((), {})], hash_seed=seed)  # type: ignore[arg-type]


def test_only_the_entry_point_is_called_when_one_is_named(sandbox: Sandbox) -> None:
    code = "def f(x): return x\ndef g(x): return x"
    tests = ["assert f(1) == 1", "assert g(1) == 1", "assert f(1) == g(1)"]
    results = sandbox.run_tests(code, tests, entry_point="f")
    assert [result.outcome for result in results] == [Outcome.PASS, Outcome.ERROR, Outcome.ERROR]
    assert results[1].message == "NameError: name 'g' is not defined"


def test_a_function_named_like_a_builtin(sandbox: Sandbox) -> None:
    code = "def sum(a, b): return a * b"
    tests = ["assert sum(3, 4) == 12", "for x in [3]:\n    assert sum(x, 4) == 12"]
    results = sandbox.run_tests(code, tests, entry_point="sum")
    assert [result.outcome for result in results] == [Outcome.PASS] * 2
    # Without being told, it could be Python's own: the text runs, with the program's names.
    [result] = sandbox.run_tests(code, ["assert sum(3, 4) == 12"])
    assert (result.outcome, result.judged) == (Outcome.PASS, "inside")


@pytest.mark.slow
def test_the_hash_seed_of_our_own_process_decides_nothing() -> None:
    program = (
        "from codea1_env.sandbox import Sandbox\n"
        "tests = [f'assert {kind}(f()) == {kind}({order!r})' for kind in ('list', 'tuple') for order in ('ab', 'ba')]\n"
        "with Sandbox(workers=1) as sandbox:\n"
        '    print([r.outcome.value for r in sandbox.run_tests(\'def f():\\n    return {"a", "b"}\', tests)])\n'
    )
    said = {run_python("-c", program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    assert len(said) == 1
    assert said.pop().count("pass") == 2
