"""The order in which a suite has its tests decides no reward of either player."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_env.judging.verdicts import NOT_MADE, never_passed
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Limits, Outcome, Sandbox

LIMITS = Limits(call_cpu_time=0.1, call_wall_time=1.0)
REFERENCE = """
def f(n):
    while n == 90 or n == 91:
        pass
    if n == 80:
        raise ValueError
    return n % 7
"""
PROBLEM = Problem("mod", "def f(n): ...", "f", REFERENCE)
# Loops at 10, 11 and 12, ends its process at 20 to 22, is wrong at 30 and for floats, remembers how often it was called.
PROGRAM = """
import os
calls = []
def f(n):
    calls.append(n)
    while 10 <= n <= 12:
        pass
    if 20 <= n <= 22:
        os._exit(0)
    if n == 30 or isinstance(n, float) or len(calls) > 5:
        return -1
    return n % 7
"""


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox, RefereeConfig(limits=LIMITS))


def judge(referee: Referee, suite: Sequence[str], history: Sequence[str] = ()) -> Verdict:
    [verdict] = referee.judge([Round(PROBLEM, PROGRAM, [suite], history)])
    return verdict


def paid(verdict: Verdict) -> tuple[object, ...]:
    [suite] = verdict.suites
    return (
        verdict.code_reward,
        suite.rewards,
        suite.outcome.invalid,
        sorted(suite.outcome.failed),
        sorted(verdict.failed),
        sorted(verdict.forgettable),
    )


def right(*numbers: float) -> list[str]:
    return [f"assert f({n}) == {n % 7}" for n in numbers]


@pytest.mark.slow
def test_two_limits_pay_the_same_first_or_last(referee):
    """What is behind them is neither lost by the program nor won by the tester."""
    limits, others = right(10, 11), right(2, 3, 4, 5, 6, 8)
    first, last = (judge(referee, suite) for suite in ([*limits, *others], [*others, *limits]))
    assert paid(first) == paid(last)
    [suite] = first.suites
    assert [test.status for test in suite.tests] == ["kept"] * 2 + ["not made"] * 5 + ["not made"]
    assert suite.tests[2].reason == NOT_MADE
    assert suite.outcome.failed == (True, True)
    assert (suite.outcome.invalid, suite.rewards.validity) == (0, 0.25)


def test_a_wrong_prediction_is_invalid_though_its_call_is_not_made(referee):
    verdict = judge(referee, [*right(10, 11), "assert f(2) == 9", *right(3)])
    assert [test.status for test in verdict.suites[0].tests] == [
        "kept", "kept", "invalid", "not made",
    ]  # fmt: skip
    assert verdict.suites[0].outcome.invalid == 1
    assert verdict.failed == tuple(right(10, 11))


@pytest.mark.slow
def test_replayed_tests_that_are_not_made_are_neither_passed_nor_failed(referee):
    for history in (right(10, 11, 2), right(2, 11, 10)):
        verdict = judge(referee, [], history)
        assert {test.text for test in verdict.history} == {*right(10, 11)}
        assert (verdict.history_passed, verdict.stale) == ((), ())
        assert {*never_passed([verdict])} == {*right(10, 11)}


def test_of_more_tests_than_are_paid_for_the_same_ones_count(sandbox):
    suite = right(1, 2, 3, 30)
    for strict, expected in ((False, 1), (True, 2)):
        rules = RefereeConfig(RewardConfig(num_tests=2, strict_paper=strict), limits=LIMITS)
        referee = Referee(sandbox, rules)
        orders = [suite, suite[::-1], suite[2:] + suite[:2]]
        assert len({judge(referee, order).suites[0].rewards for order in orders}) == expected


CALLS = st.sampled_from([1, 2, 3, 1.0, 10, 20, 21, 22, 30, 30.0, 80, 90])
TESTS = st.tuples(CALLS, st.booleans()).map(
    lambda each: f"assert f({each[0]}) == {each[0] % 7 if each[1] else 9}"
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(TESTS, max_size=12), st.integers(0, 2**32))
def test_any_order_pays_the_same(referee, suite, seed):
    other = [str(test) for test in np.random.default_rng(seed).permutation(suite)] if suite else []
    history = right(1, 20, 21, 30)
    assert paid(judge(referee, suite, history)) == paid(judge(referee, other, history[::-1]))


def test_programs_that_end_at_every_call_are_not_loaded_for_each(sandbox):
    """As many processes as a suite may cost, however many tests there are."""
    slow = (
        "import os, time\nend = time.process_time() + 0.03\nwhile time.process_time() < end: pass\n"
    )
    program = slow + "def f(n):\n    os._exit(0)\n"
    referee = Referee(sandbox, RefereeConfig(limits=LIMITS))
    [verdict] = referee.judge([Round(PROBLEM, program, [right(*range(40))])])
    assert [test.outcome for test in verdict.suites[0].tests].count(Outcome.EXITED) == 2
    assert verdict.load.cpu_time < 0.6
