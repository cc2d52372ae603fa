"""The referee's verdicts: rewards, replayed tests, batches, and values of all kinds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from increments import INC, PAPER, RIGHT, WRONG, judge, statuses

from codea1_env.judging.verdicts import NOT_MADE
from codea1_env.problems import Problem
from codea1_env.referee import BrokenReferenceError, Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import Dropped, Suite, parse_program, parse_suite
from codea1_env.rewards import RewardConfig, SuiteOutcome, suite_rewards
from codea1_env.sandbox import Limits, Outcome, Sandbox


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox)


# Rewards


def test_rewards_are_those_of_the_outcomes(referee):
    dropped = (Dropped("cannot be parsed", "assert"), Dropped("a print", "p", invalid=False))
    suites: list[Any] = [
        ["assert inc(7) == 8", "assert inc(1) == 2", "assert inc(2) == 9", "assert inc(n=1) == 2"],
        Suite((), dropped, 0.25),
        [],
    ]
    history = ["assert inc(6) == 7", "assert inc(0) == 1", "assert inc(0) == 1"]
    [verdict] = referee.judge([Round(INC, WRONG, suites, history)])
    outcomes = [
        SuiteOutcome(True, (True, False, False), 1, 1, 2),
        SuiteOutcome(True, (), 1, 1, 2, 0.25),
        SuiteOutcome(True, (), 0, 1, 2),
    ]
    assert [suite.outcome for suite in verdict.suites] == outcomes
    assert [suite.rewards for suite in verdict.suites] == [suite_rewards(o) for o in outcomes]
    assert verdict.code_reward == pytest.approx(((2 / 3 + 1 / 2) / 2 + 1 / 2 + 1 / 2) / 3)
    assert verdict.history_passed == ("assert inc(0) == 1",)
    assert [test.broke for test in verdict.history] == [True, False]


def test_texts_and_suites_are_judged_alike(sandbox, referee):
    text = "assert inc(7) == 8\nassert inc(1) == 9\nassert inc(2) > 0\n\u00e9"
    read = parse_suite(text, INC, sandbox)
    assert read.nonprintable_ratio > 0
    [verdict] = referee.judge([Round(INC, WRONG, [read, [text], [text[:10], text[-2:]]])])
    first, second, _ = verdict.suites
    assert first.tests == second.tests
    assert first.rewards == second.rewards


def test_without_any_evidence_the_program_is_not_scored(sandbox, referee):
    assert judge(referee, RIGHT, ["assert inc(1)>0"]).code_reward is None
    assert judge(referee, RIGHT, []).code_reward is None
    assert judge(Referee(sandbox, PAPER), RIGHT, ["assert inc(1)>0"]).code_reward == 0.0
    [verdict] = referee.judge([Round(INC, RIGHT, [[], ["assert inc(1) == 2"]])])
    assert [suite.rewards.code for suite in verdict.suites] == [None, 1.0]
    assert verdict.code_reward == 1.0
    [verdict] = Referee(sandbox, PAPER).judge([Round(INC, RIGHT, [[], ["assert inc(1) == 2"]])])
    assert verdict.code_reward == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def inc(n) return n", Outcome.SYNTAX_ERROR),
        ("def other(n):\n    return n\n", Outcome.ERROR),
        ("import os\nos._exit(0)", Outcome.EXITED),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", Outcome.SIGNALLED),
        ("while True: pass", Outcome.TIMEOUT),
        ("x = [0] * 10 ** 10", Outcome.MEMORY),
        ("inc = 7", None),
        ("(" * 60_000, Outcome.SYNTAX_ERROR),
        ("def inc(n):\n    return '\ud800'", Outcome.SYNTAX_ERROR),
        ("x = 1 #" + "x" * 20_000_000, Outcome.SYNTAX_ERROR),
    ],
)
def test_a_program_that_does_not_run_fails_all_and_pays_no_tester(sandbox, code, outcome):
    limits = Limits(call_cpu_time=0.5, call_wall_time=2.0, memory=512 << 20)
    referee = Referee(sandbox, RefereeConfig(limits=limits))
    tests = ["assert inc(1) == 2", "assert inc(2) == 9"]
    verdict = judge(referee, code, tests, ["assert inc(3) == 4"])
    assert verdict.failed == ("assert inc(1) == 2", "assert inc(2) == 3")
    assert verdict.history_passed == ()
    assert verdict.code_reward == 0
    if outcome is None:  # it runs, and is of no use
        assert verdict.code_executes
        return
    assert not verdict.code_executes
    assert verdict.load.outcome is outcome
    assert verdict.load.message
    assert verdict.suites[0].rewards.test == 0
    assert [test.outcome for test in verdict.suites[0].tests] == [outcome] * 2


# The Mistake Book's tests


def test_stale_history_is_not_replayed(referee):
    history = [
        "assert inc(1) == 2",
        "assert inc(1) == 5",
        "assert add(1) == 2",
        "assert inc(7) == 8",
        "assert inc(2) == 3\nassert inc(3) == 4",
        "assert inc(2) > 0",
        "assert inc('a') == 'b'",
    ]
    verdict = judge(referee, WRONG, [], history)
    assert [test.text for test in verdict.history] == ["assert inc(1) == 2", "assert inc(7) == 8"]
    assert verdict.history_passed == ("assert inc(1) == 2",)
    assert verdict.stale == (*history[1:3], *history[4:])
    assert verdict.forgettable == (*verdict.history_passed, *verdict.stale)
    assert verdict.code_reward == 0.5


def test_history_is_found_again_by_the_text_that_the_book_has(referee):
    old = "assert 8 == inc(n=3 + 4)"  # as a book of another version may hold it
    verdict = judge(referee, RIGHT, ["assert inc(7) == 8"], [old, old])
    assert verdict.history_passed == (old,)
    assert verdict.stale == ()
    assert len(verdict.history) == 1


def test_what_breaks_a_program_is_replayed_and_forgotten(referee):
    first = judge(referee, WRONG, ["assert inc(n=7) == 3", "assert inc(6) == 7"])
    assert first.failed == ("assert inc(7) == 8", "assert inc(6) == 7")
    again = judge(referee, RIGHT, [], first.failed)
    assert again.history_passed == again.forgettable == first.failed


# Batches


def timeless(verdict: Verdict) -> Verdict:
    return dataclasses.replace(verdict, load=dataclasses.replace(verdict.load, cpu_time=0.0))


@pytest.mark.slow
def test_a_batch_gives_the_same_as_one_by_one(sandbox):
    double = Problem("double", "def double(n): ...", "double", "def double(n):\n    return 2 * n\n")
    hangs = "def inc(n):\n    while n > 100: pass\n    return n + 1\n"
    slow = [f"assert inc({n}) == {n + 1}" for n in (101, 1, 102, 22, 103, 33)]
    fast = [f"assert inc({n}) == {n + 1}" for n in (3, 2, 104, 4)]
    rounds = [
        Round(INC, WRONG, [["assert inc(7) == 8", "assert inc(7) == 9"], []]),
        Round(double, "def double(n):\n    return n ** 2\n", [["assert double(2) == 4"]]),
        Round(INC, RIGHT, [["assert inc(7) == 8"]], ["assert inc(1) == 2", "assert inc(1) == 1"]),
        Round(INC, hangs, [slow]),
        Round(INC, hangs, [fast], ["assert inc(1) == 2", "assert inc(104) == 105"]),
        Round(INC, hangs, [slow, fast, ["assert inc(4) == 5"]]),
        Round(INC, parse_program("", "inc", sandbox), [["assert inc(7) == 8"]]),
    ]
    config = RefereeConfig(limits=Limits(call_cpu_time=0.06, call_wall_time=1.0))
    together = [timeless(verdict) for verdict in Referee(sandbox, config).judge(rounds)]
    referee = Referee(sandbox, config)
    assert together == [timeless(referee.judge([each])[0]) for each in reversed(rounds)][::-1]
    assert together == [timeless(verdict) for verdict in referee.judge(rounds)]
    assert Referee(sandbox).judge([]) == []
    late, passed = Outcome.TIMEOUT, Outcome.PASS
    found = [[test.outcome for test in suite.tests] for suite in together[5].suites]
    first, second = [late, passed] * 3, [passed] * 2 + [late, passed]
    assert found == [first, second, [passed]]


@pytest.mark.slow
def test_a_batch_of_slow_references_gives_the_same_as_one_by_one(sandbox):
    code = "def f(n):\n    while n > 100: pass\n    return n\n"
    problem = Problem("slow", "def f(n): ...", "f", code)
    suites = [
        [f"assert f({n}) == {n}" for n in (101, 1, 102, 22, 103, 33)],
        [f"assert f({n}) == {n}" for n in (3, 104, 2)],
        [f"assert f({n}) == {n}" for n in (102, 101, 105, 106, 107)],
    ]
    config = RefereeConfig(limits=Limits(call_cpu_time=0.06, call_wall_time=1.0))
    quick = "def f(n):\n    return n\n"
    rounds = [Round(problem, quick, [suite]) for suite in suites]
    found = [Referee(sandbox, config).judge([each])[0].suites[0] for each in rounds]
    assert found == [verdict.suites[0] for verdict in Referee(sandbox, config).judge(rounds)]
    assert found == list(Referee(sandbox, config).judge([Round(problem, quick, suites)])[0].suites)
    assert [[test.status == "kept" for test in suite.tests] for suite in found] == [
        [False, True] * 3,
        [True, False, True],
        [False] * 5,
    ]
    assert "takes too long on the reference" in found[0].tests[0].reason
    assert found[2].tests[4].reason == NOT_MADE
    # What was not made does not count.
    assert [suite.outcome.invalid for suite in found] == [3, 1, 4]


def test_problems_of_one_name_are_told_apart(sandbox):
    """Nothing that is remembered of one is said of the other."""
    referee = Referee(sandbox)
    other = dataclasses.replace(INC, reference="def inc(n):\n    return n + 2\n")
    named = dataclasses.replace(INC, prompt="def inc(k): ...", reference="def inc(k): return k")
    tests = ["assert inc(7) == 8", "assert inc(k=7) == 7"]
    for problem, found in (
        (INC, ["kept", "invalid"]),
        (other, ["corrected", "invalid"]),
        (named, ["invalid", "kept"]),
        (INC, ["kept", "invalid"]),
    ):
        assert statuses(judge(referee, RIGHT, tests, problem=problem)) == found


def test_counters(sandbox):
    limits = Limits(call_cpu_time=0.2, call_wall_time=1.0, run_cpu_time=1.0, run_wall_time=3.0)
    quick = Referee(sandbox, RefereeConfig(limits=limits, reference_share=1.0))
    code = "def inc(n):\n    while n == 7: pass\n    return n + 1 if n else 1 / n\n"
    tests = [f"assert inc({n}) == {n + 1}" for n in (7, 1, 0, 1)]
    verdict = judge(quick, code, [*tests, "assert inc(2) == 0", "assert inc(3) > 1"])
    outcomes = [Outcome.TIMEOUT, Outcome.PASS, Outcome.ERROR, None, Outcome.PASS]
    assert [test.outcome for test in verdict.suites[0].tests] == outcomes
    counters = quick.counters
    assert (counters.timeouts, counters.errors, counters.programs, counters.tests) == (1, 1, 1, 4)
    assert 0.1 < counters.seconds < 2
    judge(quick, "def inc(n) return", tests)
    assert (counters.programs, counters.tests, counters.errors) == (2, 7, 4)


@pytest.mark.slow
def test_a_call_may_use_half_a_second(sandbox):
    """Unless somebody has said otherwise: two seconds made a first loop of looping programs stand still."""
    loops = "def inc(n):\n    while True: pass\n"
    default = Referee(Sandbox(workers=1))
    assert (default._limits.call_cpu_time, default._limits.call_wall_time) == (0.5, 1.0)
    verdict = judge(Referee(sandbox), loops, [f"assert inc({n}) == {n + 1}" for n in range(3)])
    assert 0.9 < verdict.load.cpu_time < 3  # two calls and a small share, perhaps again alone
    own = Sandbox(workers=1, limits=Limits(call_cpu_time=3.0))
    assert Referee(own)._limits.call_cpu_time == 3.0
    config = RefereeConfig(limits=Limits(call_cpu_time=1.0))
    assert Referee(own, config)._limits.call_cpu_time == 1.0


# Data, failures, values


def test_a_broken_reference_is_an_error_in_the_data(referee):
    for code, message in (
        ("def inc(n) return n", "'broken' to run and to define inc, actually: syntax_error"),
        ("raise KeyError('x')", "error: KeyError"),
    ):
        broken = Problem("broken", "def inc(n): ...", "inc", code)
        for tests in (["assert inc(1) == 2"], []):
            with pytest.raises(BrokenReferenceError, match=message):
                referee.judge([Round(broken, RIGHT, [tests])])
        assert referee.references_run([broken, INC, broken]) == [False, True, False]


ECHO = Problem("echo", "def echo(x): ...", "echo", "def echo(x):\n    return x\n")
VALUES = [
    "None", "-1.5", "-0.0", "'it\\'s \\\\n'", "b'\\x00'", "[1, (2,), {3}]", "{'a': {}}", "set()",
    "frozenset({1})", "True", "1e400", "float('-inf')", "float('nan')", "(1+2j)", "10 ** 100", "'\\u20ac'",
]  # fmt: skip


def test_values_of_many_kinds_can_be_predicted_and_corrected(sandbox):
    right = [f"assert echo({value}) == {value}" for value in VALUES]
    wrong = [f"assert echo({value}) == 'wrong'" for value in VALUES]
    referee = Referee(sandbox, RefereeConfig(RewardConfig(num_tests=len(VALUES))))
    [verdict] = referee.judge([Round(ECHO, ECHO.reference, [right, wrong])])
    assert [test.status for test in verdict.suites[0].tests] == ["kept"] * len(VALUES)
    assert [test.status for test in verdict.suites[1].tests] == ["corrected"] * len(VALUES)
    assert verdict.failed == ()
    fixed = [test.text for test in verdict.suites[1].tests]
    [again] = referee.judge([Round(ECHO, "def echo(x):\n    return 0.5", [fixed], fixed)])
    assert [test.status for test in again.suites[0].tests] == ["kept"] * len(VALUES)
    assert [test.broke for test in again.suites[0].tests] == [True] * len(VALUES)
    assert again.stale == ()


def test_values_without_a_literal_are_compared_with_those_that_have_one(sandbox):
    code = "from collections import Counter\ndef count(x):\n    return Counter(x)\n"
    problem = Problem("count", "def count(x): ...", "count", code)
    tests = ["assert count('aab') == {'a': 2, 'b': 1}", "assert count('c') == {'c': 2}"]
    plain = "def count(x):\n    return {key: x.count(key) for key in x}\n"
    wrong = "def count(x):\n    return {key: 1 for key in x}\n"
    verdicts = Referee(sandbox).judge([Round(problem, each, [tests]) for each in (plain, wrong)])
    first, second = verdicts[0].suites[0].tests
    assert (first.status, first.text) == ("kept", tests[0])
    assert second.reason == "the reference returns what has no literal, or too long a one"
    assert [verdict.failed for verdict in verdicts] == [(), (tests[0],)]


def test_messages_hold_no_addresses(referee):
    program = "def inc(n):\n    raise KeyError(inc)\n"
    verdict = judge(referee, program, ["assert inc(1) == 2"])
    assert "<function inc at 0x...>" in verdict.suites[0].tests[0].message
    assert "at 0x7" not in repr(verdict)
    verdict = judge(referee, "def inc(n): pass\nraise KeyError(inc)", ["assert inc(1) == 2"])
    assert "at 0x7" not in repr(verdict)
    assert "<function inc at 0x...>" in verdict.load.message
