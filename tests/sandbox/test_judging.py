"""Limits of one job as a whole, and to which of its tests they are charged."""

from __future__ import annotations

import os

import pytest

from codea1_env.sandbox import Limit, Limits, Outcome, Sandbox, clocks
from codea1_env.sandbox.analysis import Analyst
from codea1_env.sandbox.results import RUN_LIMIT

PASS, TIMEOUT = Outcome.PASS, Outcome.TIMEOUT


def outcomes(sandbox: Sandbox, code: str, tests: list[str], limits: Limits) -> list[Outcome]:
    return [result.outcome for result in sandbox.run_tests(code, tests, limits=limits)]


@pytest.mark.parametrize("act", ["while True: pass", "import time; time.sleep(60)"])
def test_tests_of_both_kinds_share_the_limits_of_the_run(
    sandbox: Sandbox, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "slowness", lambda: 1.0)  # else it may be run again, with more time
    limits = Limits(
        call_cpu_time=0.3, call_wall_time=0.3, run_cpu_time=0.7, run_wall_time=0.7, calls_per_test=1
    )
    tests = ["assert f(1) == 1", *(f"for x in [{x}]:\n    f(x)" for x in range(5))]
    results = sandbox.run_tests(f"def f(x):\n    {act}", tests, limits=limits)
    assert [result.outcome for result in results] == [TIMEOUT] * 6
    assert [result.message == RUN_LIMIT for result in results[3:]] == [True] * 3
    assert [result.limit for result in results[3:]] == [Limit.RUN] * 3


def test_texts_without_end_are_no_programs_and_no_tests(sandbox: Sandbox) -> None:
    long = "#" * 9_000_000
    code = "def f(x): return x"
    assert outcomes(sandbox, code, [long, "assert f(1) == 1"], Limits()) == [
        Outcome.SYNTAX_ERROR,
        PASS,
    ]
    assert outcomes(sandbox, long, ["assert f(1) == 1"], Limits()) == [Outcome.SYNTAX_ERROR]
    (result,) = sandbox.call(long, "f", [((1,), {})])
    assert result.outcome is Outcome.SYNTAX_ERROR


def test_texts_that_are_slow_to_read_cost_the_supervisor_nothing(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Analyst.analyse.__kwdefaults__, "timeout", 0.5)
    monkeypatch.setattr("codea1_env.sandbox.assertions._TIMEOUT", 0.5)
    tests = ["assert f(1) == [[None] * 10_000] * 29"]
    tests += ["assert f(" + "*".join(["(9**300)**1000"] * 200) + ") == 1", "assert f(1) == 1"]
    before = os.times()
    results = sandbox.run_tests(
        "def f(x): return x", tests, limits=Limits(call_cpu_time=0.3, calls_per_test=1)
    )
    after = os.times()
    assert after.user - before.user < 1.0
    assert results[-1].outcome is PASS
    assert PASS not in {result.outcome for result in results[:-1]}


ITERATED = "def f(n):\n    yield from range(n)"


@pytest.mark.parametrize(
    ("code", "test", "expected"),
    [
        (ITERATED, "assert list(f(3)) == [0, 1, 2]", PASS),
        (ITERATED, "assert [0, 1, 3] == list(f(3))", Outcome.FAIL),
        (ITERATED, "assert f(3) == [0, 1, 2]", Outcome.UNENCODABLE),
        ("def f(n): return map(str, range(n))", "assert list(f(2)) == ['0', '1']", PASS),
        ("def f(n): return 'ab'", "assert list(f(2)) == ['a', 'b']", PASS),
        ("def f(n): return 5", "assert list(f(2)) == [5]", Outcome.ERROR),
        ("def f(n):\n    yield 1\n    raise KeyError(n)", "assert list(f(2)) == [1]", Outcome.ERROR),
        ("import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(): return E.A", "assert f() == 1",
         Outcome.UNENCODABLE),
    ],
)  # fmt: skip
def test_what_is_iterated_over_may_be_no_data(
    sandbox: Sandbox, code: str, test: str, expected: Outcome
) -> None:
    (result,) = sandbox.run_tests(code, [test])
    assert (result.outcome, result.judged) == (expected, "outside"), result


def test_a_reply_that_is_expected_byte_for_byte_and_still_differs(sandbox: Sandbox) -> None:
    code = "def f(x): return float('nan') if x else 2.0"
    tests = ["assert f(1) == float('nan')", "assert f(0) == 2", "assert f(0) == 2.5"]
    for _ in range(2):  # also when the replies have been seen before
        assert outcomes(sandbox, code, tests, Limits()) == [Outcome.FAIL, PASS, Outcome.FAIL]
