"""The rewards against the figures of the released implementation, and their properties."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.rewards import (
    REWARDS,
    RewardConfig,
    SuiteOutcome,
    SuiteRewards,
    program_reward,
    suite_rewards,
)

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "paper_cases.json").read_text()
)["rewards"]


def judge(case: dict[str, Any], *, strict_paper: bool) -> SuiteRewards:
    outcome = SuiteOutcome(
        code_executes=case["code_executes"],
        failed=case["kept_test_failed"],
        invalid=case["invalid"],
        history_passed=case["history_passed"],
        history_total=case["history_total"],
        nonprintable_ratio=case["nonprintable_ratio"],
    )
    config = RewardConfig(case["alpha"], case["num_tests"], strict_paper=strict_paper)
    return suite_rewards(outcome, config)


def test_released_figures_to_the_last_bit():
    assert any(not case["code_executes"] for case in CASES)
    for number, case in enumerate(CASES):
        wanted = SuiteRewards(
            case["code_reward"], case["test_reward"], case["validity"], case["adversarial"]
        )
        assert judge(case, strict_paper=True) == wanted, f"case {number}"
        unscorable = not case["kept_test_failed"] and not case["history_total"]
        by_default = replace(wanted, code=None) if unscorable else wanted
        if len(case["kept_test_failed"]) <= case["num_tests"]:  # no suite is longer
            assert judge(case, strict_paper=False) == by_default, f"case {number}"


def test_tests_after_the_first_k_count_in_the_paper_and_for_the_program_only():
    padded = SuiteOutcome(True, [True] * 2 + [False] * 14, 0, 0, 0)
    found = [suite_rewards(padded, RewardConfig(num_tests=2, strict_paper=p)) for p in (0, 1)]
    assert [each.code for each in found] == [0.0, 0.875]
    assert {each.test for each in found} == {1.0}


@pytest.mark.parametrize("name", REWARDS)
def test_what_was_not_answered_is_not_passed_and_pays_no_suite(name: str):
    config = RewardConfig(num_tests=4, function=name)
    passed, failed, unpaid = (
        suite_rewards(SuiteOutcome(True, [each] * 4, 0, 4, 4, unpaid=some), config)
        for each, some in ((False, ()), (True, ()), (True, [True] * 4))
    )
    assert unpaid.code == failed.code < passed.code
    assert unpaid.test == passed.test
    assert unpaid.adversarial == passed.adversarial < failed.adversarial


def test_unpaid_tests_are_among_the_failed_ones():
    for unpaid in ([True], [True, False, True], [False, True]):
        with pytest.raises(ValueError, match="unpaid tests among the failed ones"):
            SuiteOutcome(True, [True, False], 0, 0, 0, unpaid=unpaid)


def test_program_reward_is_the_mean_of_those_that_exist():
    rewards = [SuiteRewards(code, 0.0, 0.0, 0.0) for code in (0.25, None, 0.75)]
    assert program_reward(rewards) == 0.5
    assert program_reward([0.25, None, 0.75]) == 0.5
    assert program_reward([0.0, None]) == 0.0
    assert program_reward([]) is None


@given(
    executes=st.booleans(),
    failed=st.lists(st.booleans(), max_size=20),
    invalid=st.integers(0, 30),
    history=st.tuples(st.integers(0, 10), st.integers(0, 10)).map(sorted),
    ratio=st.floats(0, 1),
    alpha=st.floats(0, 1),
    size=st.integers(1, 12),
)
def test_rewards_stay_in_their_ranges(executes, failed, invalid, history, ratio, alpha, size):
    outcome = SuiteOutcome(executes, failed, invalid, history[0], history[1], ratio)
    rewards = suite_rewards(outcome, RewardConfig(alpha, size))
    assert 0 <= rewards.validity <= 1
    assert 0 <= rewards.adversarial <= 1
    assert -1 <= rewards.test <= 1 + 1e-12
    assert (rewards.code is None) == (not failed and not history[1])
    if rewards.code is not None:
        assert 0 <= rewards.code <= 1


@pytest.mark.parametrize("alpha", [1.1, -0.5, float("nan")])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"RewardConfig\.alpha .* actually: .*0\.5"):
        RewardConfig(alpha=alpha)


@pytest.mark.parametrize("num_tests", [0, -1])
def test_num_tests_must_be_a_positive_integer(num_tests):
    with pytest.raises(ValueError, match=r"RewardConfig\.num_tests .* positive .* actually"):
        RewardConfig(num_tests=num_tests)


def test_a_suite_loses_nothing_for_replayed_tests_without_an_answer() -> None:
    failed, unpaid = [True, True, True], [False, True, True]
    ended = SuiteOutcome(
        True, failed, 0, history_passed=0, history_total=4, unpaid=unpaid, history_unpaid=3
    )
    wrong = SuiteOutcome(True, [True, False, False], 0, history_passed=3, history_total=4)
    for name in REWARDS.keys() - {
        "solve-rate",
        "learnability",
    }:  # which pay most where half is passed
        config = RewardConfig(num_tests=3, function=name)
        once, gave_up = suite_rewards(wrong, config), suite_rewards(ended, config)
        assert gave_up.test >= once.test, name
        assert gave_up.code <= once.code, name
    with pytest.raises(ValueError, match="history_unpaid"):
        SuiteOutcome(True, [], 0, history_passed=2, history_total=3, history_unpaid=2)


@pytest.mark.parametrize("name", ["solve-rate", "learnability"])
def test_unanswered_tests_are_in_no_share(name: str) -> None:
    config = RewardConfig(function=name)
    for failed in ([True], [False, True], [False]):
        answered = SuiteOutcome(True, failed, 0, 0, 0)
        unpaid = [False] * len(failed) + [True] * 2
        more = SuiteOutcome(True, [*failed, True, True], 0, 0, 0, unpaid=unpaid)
        assert suite_rewards(more, config).test == suite_rewards(answered, config).test
    nothing = SuiteOutcome(True, [True], 0, 0, 0, unpaid=[True])
    assert suite_rewards(nothing, config).test == 0.0
