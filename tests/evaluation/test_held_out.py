from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from in_one_process import Says

from codea1_env import MistakeBook, Referee, RefereeConfig, RewardConfig, Sandbox
from codea1_env.agents import CopierTester, FixedAgent, GoldenTester, MutantCoder, ReferenceCoder
from codea1_env.evaluation import (
    copied_share,
    hold_out,
    kill_rate,
    kills,
    kills_beside,
    pass_rate,
    youden_j,
)
from codea1_env.evaluation.held_out import JudgedRound, shown_calls
from codea1_env.mutation.operators import lines_before_loops_end
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem, load_problems
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.training.measuring import with_control

PROBLEMS = load_problems("starter", "train")[20:26]


@pytest.fixture(scope="module")
def held_out(sandbox: Sandbox):
    return hold_out(PROBLEMS, sandbox)


def test_the_parts_are_the_whole(held_out):
    for item in held_out:
        assert sorted(item.tests + item.train_tests) == sorted(item.problem.tests)
        assert len(item.tests) >= 3
        assert not set(item.mutants) & set(item.train_mutants)


def test_pass_rate_of_good_and_bad_coders(held_out, sandbox: Sandbox):
    assert pass_rate(ReferenceCoder(PROBLEMS), held_out, sandbox) == 1.0
    assert pass_rate(Says("def NAME(*args): raise ValueError"), held_out, sandbox) == 0.0
    assert pass_rate(Says("no program at all"), held_out, sandbox) == 0.0
    mutants = pass_rate(MutantCoder(PROBLEMS, sandbox), held_out, sandbox, samples=8)
    assert 0.1 < mutants < 0.95


def test_kill_rate_of_good_and_bad_testers(held_out, sandbox: Sandbox):
    referee = Referee(sandbox)
    assert kill_rate(GoldenTester(PROBLEMS, None), held_out, referee) > 0.95
    assert kill_rate(Says("assert True"), held_out, referee) == 0.0
    assert kill_rate(Says(""), held_out, referee) == 0.0


def test_given_tests_are_measured_beside_a_tester(held_out, sandbox: Sandbox):
    golden, nothing = GoldenTester(PROBLEMS, None), Says("assert True")
    tests = [(item, item.problem.tests) for item in held_out]
    referee = Referee(sandbox)
    alone = kills(golden, held_out, referee)
    assert any(map(any, alone.values()))
    assert kills_beside(nothing, tests, referee) == (kills(nothing, held_out, referee), alone)
    assert kills_beside(golden, [(item, ()) for item in held_out], referee)[0] == alone


def test_youdens_j_is_how_much_more_often_a_right_program_passes_a_test_as_written(sandbox):
    problem = next(p for p in load_problems("starter") if p.entry_point == "is_even")
    mutant = problem.reference.replace("== 0", "!= 0")
    assert mutant != problem.reference
    (split,) = hold_out([problem], sandbox)
    split = dataclasses.replace(split, mutants=(mutant,))
    right, of_mutant, unread = (
        f"assert is_even({x}) == {y}" for x, y in ((2, True), (4, False), ("*range(99)", 1))
    )
    referee = Referee(sandbox)

    def j(*tests: str) -> float | None:
        seen: list[JudgedRound] = []
        kills(Says("\n".join(tests)), [split], referee, seen=seen)
        return youden_j(seen, referee)

    assert j(right) == 1.0
    assert j(right, unread) == 0.5, "what does not count breaks nothing, and was drawn"
    assert j(of_mutant) == -1.0, "the wrong program passes it, and the right one does not"
    assert j(right, of_mutant) == 0.0
    assert j("assert is_even(4) == 7") == 0.0, "neither passes it"
    assert j() is None
    assert youden_j([], referee) is None


def test_a_corrected_test_is_no_kill(sandbox: Sandbox):
    problem = next(p for p in load_problems("starter") if p.entry_point == "is_even")
    referee = Referee(sandbox)
    [split] = hold_out([problem], sandbox)
    broken = dataclasses.replace(split, mutants=("def is_even(n): return None",))
    assert kill_rate(Says("assert is_even(2) == True"), [broken], referee) == 1.0
    assert kill_rate(Says("assert is_even(2) == False"), [broken], referee) == 0.0


def test_nothing_held_back_is_nothing_to_measure(sandbox: Sandbox):
    problem = Problem("p", "def f(): ...", "f", "def f(): ...", tests=("assert f() == None",))
    held_out = hold_out([problem], sandbox)
    assert pass_rate(ReferenceCoder([problem]), held_out, sandbox) is None
    assert kill_rate(GoldenTester([problem]), held_out, Referee(sandbox)) is None


def test_lines_before_the_end_of_a_loop_are_those_of_functions_with_while():
    assert lines_before_loops_end("def f(n):\n    for i in range(n):\n        pass\n") == []
    helper = "def helper(n):\n    return n\n\n"
    loop = "def f(n):\n    step = 1\n    while n > 0:\n        n -= step\n    return helper(n)\n"
    assert lines_before_loops_end(helper + loop) == [4, 5, 6, 7]


COPIED = load_problems("starter")[30:90:8]


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
    assert share(CopierTester(), COPIED, sandbox) == 1.0
    assert share(Says("assert nothing"), COPIED, sandbox) is None


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
    held_out, referee = hold_out(COPIED, sandbox), Referee(sandbox)
    ordered, copied = with_control(held_out, referee, 4)
    assert [set(each.mutants) for each in ordered] == [set(each.mutants) for each in held_out]
    assert all(flags == sorted(flags) for flags in copied.values())
    assert copied == kills(CopierTester(None), ordered, referee, 4)
    assert any(not all(flags) for flags in copied.values())
    # Whoever knows more than the text says kills what copies do not.
    whole = Referee(referee.sandbox, RefereeConfig(RewardConfig(num_tests=64)))
    assert kill_rate(GoldenTester(COPIED, None), ordered, whole, 4) == 1.0


def test_a_reference_that_cannot_be_parsed_is_named(sandbox: Sandbox):
    broken = dataclasses.replace(PROBLEMS[0], task_id="mine/7", reference="int main(){}")
    said = r"the reference of problem 'mine/7' to be a Python program, actually: SyntaxError"
    with pytest.raises(BrokenReferenceError, match=said):
        hold_out([*PROBLEMS[:2], broken], sandbox)
    with pytest.raises(BrokenReferenceError, match=said):
        MutantCoder([broken], sandbox).answer(broken)
