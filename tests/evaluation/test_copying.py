"""What copies of the problem's examples are worth, beside what testers write."""

from __future__ import annotations

from collections.abc import Sequence

from in_one_process import Says

from codea1_env import (
    MistakeBook,
    Referee,
    RefereeConfig,
    RewardConfig,
    Sandbox,
    load_problems,
)
from codea1_env.agents import CopierTester, FixedAgent, GoldenTester, ReferenceCoder
from codea1_env.evaluation import copied_share, hold_out, kill_rate, kills
from codea1_env.evaluation.held_out import shown_calls
from codea1_env.problems import Problem
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.training.measuring import with_control

PROBLEMS = load_problems("starter")[30:90:8]


def share(tester: FixedAgent, problems: Sequence[Problem], sandbox: Sandbox) -> float | None:
    played = rollout(
        problems,
        ReferenceCoder(problems),
        tester,
        Referee(sandbox),
        MistakeBook(),
        RolloutConfig(1, 2),
    )
    return copied_share(played.episodes, sandbox)


def test_all_of_what_a_copier_writes_is_copied(sandbox: Sandbox) -> None:
    assert share(CopierTester(), PROBLEMS, sandbox) == 1.0
    assert share(Says("assert nothing"), PROBLEMS, sandbox) is None


def test_a_call_is_copied_however_it_is_spelt_and_whatever_it_predicts(sandbox: Sandbox) -> None:
    problem = Problem(
        "double",
        "def double(n: float):\n    '''Double n.\n\n    >>> double(2)\n    4\n    '''",
        "double",
        "def double(n): return 2 * n",
    )
    assert shown_calls([problem], sandbox) == [frozenset({"2"})]
    text = "assert double(n=1 + 1) == 5\nassert double(3) == 6\nassert double(2.0) == 4"
    assert share(Says(text), [problem], sandbox) == 2 / 3


def test_mutants_that_no_copy_kills_come_first(sandbox: Sandbox) -> None:
    held_out, referee = hold_out(PROBLEMS, sandbox), Referee(sandbox)
    ordered, copied = with_control(held_out, referee, 4)
    assert [set(each.mutants) for each in ordered] == [set(each.mutants) for each in held_out]
    assert all(flags == sorted(flags) for flags in copied.values())
    assert copied == kills(CopierTester(None), ordered, referee, 4)
    assert any(not all(flags) for flags in copied.values())
    # Whoever knows more than the text says kills what copies do not.
    whole = Referee(referee.sandbox, RefereeConfig(RewardConfig(num_tests=64)))
    assert kill_rate(GoldenTester(PROBLEMS, None), ordered, whole, 4) == 1.0
