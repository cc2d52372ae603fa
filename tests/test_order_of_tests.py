"""The order in which a suite has its tests decides no reward of either player, where no more than K count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_env.judging.verdicts import BEHIND
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
# Loops at 10, 11 and 12, ends its process at 20 to 22, is wrong at 30 and for floats.
PROGRAM = """
import os
def f(n):
    while 10 <= n <= 12:
        pass
    if 20 <= n <= 22:
        os._exit(0)
    if n == 30 or isinstance(n, float):
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
def test_calls_that_reach_a_limit_pay_the_same_first_or_last(referee):
    """What is behind them is neither lost by the program nor won by the tester."""
    limits, others = right(10, 11), right(2, 3, 4, 5, 6, 8)
    first, last = (judge(referee, suite) for suite in ([*limits, *others], [*others, *limits]))
    assert paid(first) == paid(last)
    [suite] = first.suites
    assert [test.status for test in suite.tests] == ["kept"] * 8
    assert suite.outcome.failed.count(True) == 2
    assert (suite.outcome.invalid, suite.rewards.validity, suite.outcome.unpaid) == (0, 1.0, ())


def test_a_suite_ends_with_as_many_tests_as_count(sandbox):
    """Padding helps nobody: what stands behind is not made, not paid, and enters no book."""
    suite = [*right(1, 2), "assert f(2) == 5", *right(1, 3, 30)]
    [short, whole] = (
        judge(
            Referee(sandbox, RefereeConfig(RewardConfig(num_tests=3, strict_paper=strict))), suite
        )
        for strict in (False, True)
    )
    assert [test.status for test in short.suites[0].tests] == [
        "kept", "kept", "invalid", "duplicate", "kept", "not made",
    ]  # fmt: skip
    assert short.suites[0].tests[5].reason == BEHIND
    assert len(short.suites[0].outcome.failed) == 3
    assert len(whole.suites[0].outcome.failed) == 4


CALLS = st.sampled_from([1, 2, 3, 1.0, 10, 20, 21, 22, 30, 30.0, 80, 90])
TESTS = st.tuples(CALLS, st.booleans()).map(
    lambda each: f"assert f({each[0]}) == {each[0] % 7 if each[1] else 9}"
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(TESTS, max_size=8), st.integers(0, 2**32))
def test_any_order_pays_the_same(referee, suite, seed):
    other = [str(test) for test in np.random.default_rng(seed).permutation(suite)] if suite else []
    history = right(1, 20, 21, 30)
    assert paid(judge(referee, suite, history)) == paid(judge(referee, other, history[::-1]))


def test_programs_that_end_at_every_call_answer_while_loading_them_is_cheap(sandbox):
    """How much a run may cost does not depend on how many tests there are."""
    slow = (
        "import os, time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    )
    rules = RefereeConfig(RewardConfig(num_tests=40), limits=LIMITS)
    for load, answered in ((0.001, range(20, 41)), (0.06, range(2, 7))):
        program = slow.format(load) + "def f(n):\n    os._exit(0)\n"
        [verdict] = Referee(sandbox, rules).judge([Round(PROBLEM, program, [right(*range(40))])])
        tests = verdict.suites[0].tests
        found = [test.outcome for test in tests].count(Outcome.EXITED)
        assert found in answered
        assert [test.unpaid for test in tests] == [False] * found + [True] * (40 - found)
        assert verdict.code_reward == 0.0
        assert len(verdict.failed) == found
        assert verdict.load.cpu_time < 0.8
