"""The referee: which tests count, what a program is paid, and that nothing else decides it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env.problems import Problem
from codea1_env.programs import read_program
from codea1_env.referee import (
    BrokenReferenceError,
    Referee,
    RefereeConfig,
    Round,
    SuiteVerdict,
    TestVerdict,
    Verdict,
)
from codea1_env.responses import Dropped, Program, Suite, parse_program, parse_suite
from codea1_env.rewards import RewardConfig, SuiteOutcome, suite_rewards
from codea1_env.sandbox import Limits, Outcome, Sandbox

INC = Problem("inc", "def inc(n):\n    ...", "inc", "def inc(n):\n    return n + 1\n")
TYPED = Problem(
    "typed", "def inc(n: int) -> int:\n    ...", "inc", "def inc(n):\n    return n + 1\n"
)
RIGHT = "def inc(n):\n    return 1 + n\n"
WRONG = "def inc(n):\n    return n + 1 if n < 5 else n + 2\n"
PAPER = RefereeConfig(RewardConfig(strict_paper=True))


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox)


def judge(
    referee: Referee,
    code: str | Program,
    tests: Sequence[str] | Suite,
    history: Sequence[str] = (),
    problem: Problem = INC,
) -> Verdict:
    [verdict] = referee.judge([Round(problem, code, [tests], history)])
    return verdict


def rule(
    referee: Referee, test: str, code: str = WRONG, problem: Problem = INC
) -> TestVerdict | None:
    """The ruling on a text with one test; None if no test was found in it."""
    tests = judge(referee, code, [test], problem=problem).suites[0].tests
    assert len(tests) < 2
    return tests[0] if tests else None


def statuses(verdict: Verdict) -> list[str]:
    return [test.status for test in verdict.suites[0].tests]


def test_tests_as_they_attack(referee):
    other = dataclasses.replace(INC, reference="def inc(n):\n    return n + 2\n")
    tests = ["assert inc(n=3 + 4) == 8", "assert inc(7) == 7", "assert inc(", "assert inc(7) > 0"]
    assert referee.corrected([(INC, tests), (other, tests), (INC, []), (INC, tests[:2])]) == [
        ["assert inc(7) == 8", "assert inc(7) == 8", "assert inc(", "assert inc(7) > 0"],
        ["assert inc(7) == 9", "assert inc(7) == 9", "assert inc(", "assert inc(7) > 0"],
        [],
        ["assert inc(7) == 8", "assert inc(7) == 8"],
    ]


# What counts


@pytest.mark.parametrize(
    "test",
    [
        "assert inc(7) == 8",
        "assert 8 == inc(7), 'message'",
        "assert inc(n=7) == 8",
        "assert inc(3 + 4) == 9 - 1",
        "x = 7\nassert inc(x) == x + 1",
        "r = inc(7)\nassert r == 8",
        "for n in [7]:\n    assert inc(n) == n + 1",
        "def test_inc():\n    assert inc(7) == 8",
        "def check(candidate):\n    assert candidate(7) == 8\ncheck(inc)",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(inc(7), 8)",
        # It is read, not run: nothing else that a text says has any effect.
        "import nothing\nraise SystemExit\nassert inc(7) == 8",
        "inc = lambda n: n + 1\nassert inc(7) == 8",
        "try:\n    assert inc(7) == 8\nexcept AssertionError:\n    pass",
    ],
)
def test_right_predictions_count(referee, test):
    kept = TestVerdict(
        "assert inc(7) == 8", "kept", outcome=Outcome.PASS, message="", call="inc(7)"
    )
    assert rule(referee, test, RIGHT) == kept
    broken = rule(referee, test, WRONG)
    assert broken == kept._replace(outcome=Outcome.FAIL, message="returned 9, not 8")
    assert broken.broke


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert inc(7) == 7", "predicts 7, the reference returns 8"),
        ("assert inc(3 + 4) == [1], 'because it is [1]'", "predicts [1], the reference returns 8"),
        ("assert 'x' == inc(7)", "predicts 'x', the reference returns 8"),
        ("n = 7\nexpected = 9\nassert inc(n) == expected", "predicts 9, the reference returns 8"),
        ("assert inc(n=7) == 0", "predicts 0, the reference returns 8"),
        ("assert inc(7) is None", "predicts None, the reference returns 8"),
        ("assert not inc(7)", "predicts False, the reference returns 8"),
        ("assert inc(7) == (8,)", "predicts (8,), the reference returns 8"),
    ],
)
def test_a_wrong_prediction_is_corrected(referee, test, reason):
    verdict = judge(referee, WRONG, [test])
    [found] = verdict.suites[0].tests
    assert found == TestVerdict(
        "assert inc(7) == 8", "corrected", reason, Outcome.FAIL, "returned 9, not 8", "inc(7)"
    )
    outcome = verdict.suites[0].outcome
    assert (list(outcome.failed), outcome.invalid) == ([True], 1)
    assert verdict.failed == ("assert inc(7) == 8",)


def test_a_wrong_prediction_is_dropped_if_asked(sandbox):
    strict = Referee(sandbox, RefereeConfig(wrong_oracle="drop"))
    verdict = judge(strict, WRONG, ["assert inc(7) == 7", "assert inc(8) == 9"])
    first, second = verdict.suites[0].tests
    assert first == TestVerdict(
        "assert inc(7) == 7", "invalid", "predicts 7, the reference returns 8"
    )
    assert second.broke
    assert verdict.suites[0].outcome.invalid == 1
    assert verdict.failed == ("assert inc(8) == 9",)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert inc('a') == 'b'", "raises on the reference: TypeError"),
        ("assert inc(1, 2) == 3", "takes at most 1 argument"),
        ("assert inc(m=3) == 3", "has no parameter m"),
        ("assert inc() == 3", "the signature does not take these arguments"),
    ],
)
def test_calls_without_a_value_are_invalid(referee, test, reason):
    verdict = judge(referee, WRONG, [test])
    [found] = verdict.suites[0].tests
    assert (found.status, found.outcome, found.call) == ("invalid", None, "")
    assert reason in found.reason
    assert verdict.suites[0].outcome.invalid == 1


@pytest.mark.parametrize(
    "test",
    [
        "assert inc(7) != 8",
        "assert inc(7) > 0",
        "assert inc(7) is not None",
        "assert inc(7) in [8, 9]",
        "assert isinstance(inc(7), int)",
        "assert callable(inc)",
        "assert inc(1) == inc(1)",
        "assert inc(inc(1)) == 3",
        "assert (inc(1) == 5, 'never false')",
        "assert inc(undefined) == 3",
        "assert inc(",
        "assert inc(1) == '\0'",
        "assert inc('\ud800') == 1",
        "assert inc(" + "(" * 30_000 + ")" * 30_000 + ") == 1",
    ],
)
def test_what_says_no_value_is_no_test_and_counts_as_invalid(referee, test):
    verdict = judge(referee, WRONG, [test])
    assert verdict.suites[0].tests == ()
    assert verdict.suites[0].outcome == SuiteOutcome(True, (), 1, 0, 0)
    assert verdict.code_reward is None


@pytest.mark.parametrize(
    "text", ["", "assert add(1, 2) == 3", "print(inc(1))", "assert 1 + 1 == 2  # inc"]
)
def test_what_is_not_about_the_function_costs_nothing(referee, text):
    verdict = judge(referee, WRONG, [text])
    assert verdict.suites[0].outcome == SuiteOutcome(True, (), 0, 0, 0)


def test_one_text_may_hold_many_tests(referee):
    tests = ["for n in range(3):\n    assert inc(n) == n + 1", "assert inc(5) == 6"]
    verdict = judge(referee, WRONG, tests)
    assert [test.text for test in verdict.suites[0].tests] == [
        "assert inc(0) == 1",
        "assert inc(1) == 2",
        "assert inc(2) == 3",
        "assert inc(5) == 6",
    ]
    assert verdict.failed == ("assert inc(5) == 6",)


# The domain


def test_arguments_outside_the_signature(sandbox, referee):
    tests = ["assert inc(7.5) == 8.5", "assert inc(True) == 2", "assert inc(7) == 8"]
    verdict = judge(referee, WRONG, tests, problem=TYPED)
    assert statuses(verdict) == ["invalid", "invalid", "kept"]
    assert verdict.suites[0].tests[0].reason == "outside the signature: n is a float, not int"
    assert verdict.suites[0].outcome.invalid == 2
    for config in (RefereeConfig(domain="any"), PAPER):
        everything = judge(Referee(sandbox, config), WRONG, tests, problem=TYPED)
        assert statuses(everything) == ["kept"] * 3
        assert everything.failed == ("assert inc(7.5) == 8.5", "assert inc(7) == 8")


def test_arguments_unlike_those_of_the_golden_tests(sandbox, referee):
    tests = ("assert inc(1) == 2", "assert inc(2) == 3")
    golden = dataclasses.replace(INC, prompt="def inc(n): # golden", tests=tests)
    assert rule(referee, "assert inc(7.5) == 8.5", problem=golden).status == "invalid"
    anything = Referee(sandbox, RefereeConfig(domain="any"))
    assert rule(anything, "assert inc(7.5) == 8.5", problem=golden).status == "kept"
    # A call that the function cannot take is no test in any domain.
    assert rule(anything, "assert inc(1, 2) == 3", problem=golden).status == "invalid"


# Floats


HALF = Problem("half", "def half(n): ...", "half", "def half(n):\n    return n / 3\n")


@pytest.mark.parametrize(
    ("config", "predicted", "close"),
    [
        (RefereeConfig(), "kept", Outcome.PASS),
        (RefereeConfig(float_tolerance=0), "corrected", Outcome.FAIL),
        (RefereeConfig(float_tolerance=1e-12), "corrected", Outcome.FAIL),
        (PAPER, "corrected", Outcome.FAIL),
    ],
)
def test_floats_within_the_tolerance(sandbox, config, predicted, close):
    other = "def half(n):\n    return [n / 3 + 1e-9, n / 3 + 1e-3][n == 7]\n"
    tests = ["assert half(2) == 0.6666667", "assert half(7) == 2.3333333333333335"]
    [verdict] = Referee(sandbox, config).judge([Round(HALF, other, [tests])])
    first, second = verdict.suites[0].tests
    assert (first.status, first.outcome) == (predicted, close)
    assert first.text == "assert half(2) == 0.6666666666666666"
    assert (second.status, second.outcome) == ("kept", Outcome.FAIL)


def test_a_test_with_a_tolerance_predicts_within_it(sandbox):
    exact = Referee(sandbox, RefereeConfig(float_tolerance=0))
    tests = ["import math\nassert math.isclose(half(2), 0.667, abs_tol=1e-3)"]
    assert statuses(judge(exact, HALF.reference, tests, problem=HALF)) == ["kept"]
    # Not without bound: a tester cannot call any value right.
    tests = ["import math\nassert math.isclose(half(2), 1e9, abs_tol=1e10)"]
    assert "kept" not in statuses(judge(exact, HALF.reference, tests, problem=HALF))


def test_wide_tolerances_do_not_let_wrong_programs_pass(referee):
    tests = ["import math\nassert math.isclose(half(2), 0.66, abs_tol=0.01)"]
    wrong = "def half(n):\n    return n / 3 + 0.005\n"
    assert judge(referee, wrong, tests, problem=HALF).failed == (
        "assert half(2) == 0.6666666666666666",
    )


# The same call


TAKE = Problem(
    "take",
    "def take(xs, n=2, *, last=False): ...",
    "take",
    "def take(xs, n=2, *, last=False):\n    return xs[-n:] if last else xs[:n]\n",
)


def test_calls_are_the_same_if_they_bind_the_same(referee):
    tests = [
        "assert take([1, 2, 3]) == [1, 2]",
        "assert take([1, 2, 3], 2) == [1, 2]",
        "assert take(xs=[1, 2, 3], n=1 + 1) == [1, 2]",
        "assert take(n=2, xs=[1, 2] + [3]) == [1, 2]",
        "assert take([1, 2, 3], last=False) == [1, 2]",
        "data = [1, 2, 3]\nassert [1, 2] == take(data), 'x'",
        "assert take([1, 2, 3], last=True) == [2, 3]",
        "assert take((1, 2, 3)) == (1, 2)",
    ]
    verdict = judge(referee, TAKE.reference, tests, problem=TAKE)
    found = verdict.suites[0].tests
    assert statuses(verdict) == ["kept"] + ["duplicate"] * 5 + ["kept"] * 2
    assert found[5].reason == "is the same call as test 1"
    assert {test.outcome for test in found[1:6]} == {None}
    assert verdict.suites[0].outcome == SuiteOutcome(True, (False,) * 3, 0, 0, 0)


def test_variants_of_one_test_pay_what_one_pays(referee):
    one = ["assert inc(7) == 8"]
    many = [*one, "assert inc(n=7) == 8", "assert 8 == inc(6 + 1)", "x = 7\nassert inc(x) == 8"]
    alone, together = (judge(referee, WRONG, tests).suites[0] for tests in (one, many))
    assert alone.rewards == together.rewards
    assert alone.failed == together.failed


def test_a_right_prediction_goes_before_wrong_ones(referee):
    tests = [f"assert inc(2) == {value}" for value in (9, 3, 8, 3)]
    verdict = judge(referee, RIGHT, tests)
    assert statuses(verdict) == ["invalid", "kept", "invalid", "duplicate"]
    first = verdict.suites[0].tests[0]
    assert first.reason == "predicts 9, the reference returns 3; is the same call as test 2"
    assert (len(verdict.suites[0].outcome.failed), verdict.suites[0].outcome.invalid) == (1, 2)


def test_all_predictions_of_a_call_at_once_are_no_oracle(referee):
    verdict = judge(referee, WRONG, [f"assert inc(7) == {value}" for value in range(16)])
    assert statuses(verdict) == ["invalid"] * 8 + ["kept"] + ["invalid"] * 7
    assert verdict.suites[0].rewards.validity == 0
    assert verdict.failed == ("assert inc(7) == 8",)


def test_wrong_predictions_of_one_call_attack_once(referee):
    verdict = judge(referee, WRONG, [f"assert inc(7) == {value}" for value in (1, 2, 3)])
    assert statuses(verdict) == ["corrected", "invalid", "invalid"]
    assert verdict.suites[0].outcome == SuiteOutcome(True, (True,), 3, 0, 0)


def test_the_same_test_in_two_suites_is_no_duplicate(referee):
    [verdict] = referee.judge([Round(INC, WRONG, [["assert inc(7) == 8"]] * 2)])
    assert verdict.failed == ("assert inc(7) == 8",) * 2
    assert [suite.failed for suite in verdict.suites] == [("assert inc(7) == 8",)] * 2


def test_long_suites_are_cut(sandbox):
    referee = Referee(sandbox, RefereeConfig(max_suite_tests=2))
    verdict = judge(referee, RIGHT, [f"assert inc({n}) == {n + 1}" for n in range(4)])
    assert statuses(verdict) == ["kept"] * 2 + ["invalid"] * 2
    assert verdict.suites[0].tests[3].reason == "comes after the first 2 tests"
    assert verdict.suites[0].outcome.invalid == 2
    # What comes later cannot take the place of what came before.
    verdict = judge(referee, RIGHT, [f"assert inc(1) == {n}" for n in (5, 6, 2)])
    assert statuses(verdict) == ["corrected", "invalid", "invalid"]


# Rewards


def test_rewards_are_those_of_the_outcomes(referee):
    suites: list[Any] = [
        ["assert inc(7) == 8", "assert inc(1) == 2", "assert inc(2) == 9", "assert inc(n=1) == 2"],
        Suite(
            (),
            (Dropped("cannot be parsed", "assert"), Dropped("a print", "p", invalid=False)),
            0.25,
        ),
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
    assert read.nonprintable_ratio > 0  # which a list of texts, as the book has it, does not have
    [verdict] = referee.judge([Round(INC, WRONG, [read, [text], [text[:10], text[-2:]]])])
    first, second, _ = verdict.suites
    assert first.tests == second.tests
    assert first.rewards.test == second.rewards.test - read.nonprintable_ratio


def test_without_any_evidence_the_program_is_not_scored(sandbox, referee):
    assert judge(referee, RIGHT, ["assert inc(1)>0"]).code_reward is None
    assert judge(referee, RIGHT, []).code_reward is None
    assert judge(Referee(sandbox, PAPER), RIGHT, ["assert inc(1)>0"]).code_reward == 0.0
    [verdict] = referee.judge([Round(INC, RIGHT, [[], ["assert inc(1) == 2"]])])
    assert [suite.rewards.code for suite in verdict.suites] == [None, 1.0]
    assert verdict.code_reward == 1.0
    [verdict] = Referee(sandbox, PAPER).judge([Round(INC, RIGHT, [[], ["assert inc(1) == 2"]])])
    assert verdict.code_reward == 0.5


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def inc(n) return n", Outcome.SYNTAX_ERROR),
        ("def other(n):\n    return n\n", Outcome.ERROR),
        ("raise ValueError('at import')", Outcome.ERROR),
        ("import sys\nsys.exit(0)", Outcome.EXITED),
        ("import os\nos._exit(0)", Outcome.EXITED),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", Outcome.SIGNALLED),
        ("while True: pass", Outcome.TIMEOUT),
        ("x = [0] * 10 ** 10", Outcome.MEMORY),
        ("def inc(n):\n    return '\0'", Outcome.SYNTAX_ERROR),
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


@pytest.mark.parametrize("answer", ["", "x" * 70_000, "   ", "\0", "no program", "(" * 60_000])
def test_answers_without_a_program(sandbox, referee, answer):
    program = parse_program(answer, "inc", sandbox)
    verdict = judge(referee, program, ["assert inc(1) == 2"], ["assert inc(3) == 4"])
    assert not verdict.code_executes
    assert verdict.load.outcome in (Outcome.SYNTAX_ERROR, Outcome.ERROR)
    assert (verdict.code_reward, verdict.suites[0].rewards.test) == (0, 0)
    assert verdict.load.message


def test_what_a_prompt_brings_is_there(sandbox):
    prompt = "import math\nRATE = 3\ndef area(r): ..."
    problem = Problem("area", prompt, "area", "def area(r):\n    return math.floor(r * RATE)\n")
    answer = "def area(r):\n    return int(r * RATE)\n"
    [verdict] = Referee(sandbox).judge(
        [Round(problem, read_program(problem, answer, sandbox), [["assert area(2.5) == 7"]])]
    )
    assert (verdict.code_reward, statuses(verdict)) == (1.0, ["kept"])


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


def test_history_outside_the_signature_is_stale(referee):
    history = ["assert inc(7.5) == 8.5", "assert inc(7) == 8"]
    verdict = judge(referee, WRONG, [], history, TYPED)
    assert (verdict.stale, verdict.history_passed) == (tuple(history[:1]), ())
    assert [test.text for test in verdict.history] == history[1:]


def test_what_breaks_a_program_is_replayed_and_forgotten(referee):
    first = judge(referee, WRONG, ["assert inc(n=7) == 3", "assert inc(6) == 7"])
    assert first.failed == ("assert inc(7) == 8", "assert inc(6) == 7")
    again = judge(referee, RIGHT, [], first.failed)
    assert again.history_passed == again.forgettable == first.failed


# Batches


def timeless(verdict: Verdict) -> Verdict:
    return dataclasses.replace(verdict, load=dataclasses.replace(verdict.load, cpu_time=0.0))


def test_a_batch_gives_the_same_as_one_by_one(sandbox):
    double = Problem("double", "def double(n): ...", "double", "def double(n):\n    return 2 * n\n")
    hangs = "def inc(n):\n    while n > 100: pass\n    return n + 1\n"
    slow = [f"assert inc({n}) == {n + 1}" for n in (101, 1, 102, 2, 103, 3)]
    fast = [f"assert inc({n}) == {n + 1}" for n in (3, 2, 103, 4)]
    rounds = [
        Round(INC, WRONG, [["assert inc(7) == 8", "assert inc(7) == 9"], []]),
        Round(double, "def double(n):\n    return n ** 2\n", [["assert double(2) == 4"]]),
        Round(INC, RIGHT, [["assert inc(7) == 8"]], ["assert inc(1) == 2", "assert inc(1) == 1"]),
        Round(INC, hangs, [slow]),
        Round(INC, hangs, [fast], ["assert inc(1) == 2", "assert inc(104) == 105"]),
        Round(INC, hangs, [slow, fast, ["assert inc(4) == 5"]]),
        Round(INC, parse_program("", "inc", sandbox), [["assert inc(7) == 8"]]),
    ]
    config = RefereeConfig(limits=Limits(call_cpu_time=0.15, call_wall_time=1.0))
    together = [timeless(verdict) for verdict in Referee(sandbox, config).judge(rounds)]
    referee = Referee(sandbox, config)
    assert together == [timeless(referee.judge([each])[0]) for each in reversed(rounds)][::-1]
    assert together == [timeless(verdict) for verdict in referee.judge(rounds)]
    assert Referee(sandbox).judge([]) == []
    late, passed = Outcome.TIMEOUT, Outcome.PASS
    found = [[test.outcome for test in suite.tests] for suite in together[5].suites]
    assert found == [
        [late, passed, late, late, late, late],
        [passed] * 2 + [late, passed],
        [passed],
    ]


def test_a_batch_of_slow_references_gives_the_same_as_one_by_one(sandbox):
    code = "def f(n):\n    while n > 100: pass\n    return n\n"
    problem = Problem("slow", "def f(n): ...", "f", code)
    suites = [
        [f"assert f({n}) == {n}" for n in (101, 1, 102, 2, 103, 3)],
        [f"assert f({n}) == {n}" for n in (3, 103, 2)],
        [f"assert f({n}) == {n}" for n in (103, 102, 101, 1)],
    ]
    config = RefereeConfig(limits=Limits(call_cpu_time=0.4, call_wall_time=2.0))
    quick = "def f(n):\n    return n\n"
    rounds = [Round(problem, quick, [suite]) for suite in suites]
    found = [Referee(sandbox, config).judge([each])[0].suites[0] for each in rounds]
    assert found == [verdict.suites[0] for verdict in Referee(sandbox, config).judge(rounds)]
    assert found == list(Referee(sandbox, config).judge([Round(problem, quick, suites)])[0].suites)
    assert [[test.status == "kept" for test in suite.tests] for suite in found] == [
        [False, True, False, False, False, False],
        [True, False, True],
        [False] * 4,
    ]
    assert "takes too long on the reference" in found[0].tests[0].reason
    assert (
        found[0].tests[3].reason
        == "comes after 2 calls that reached the time limit on the reference"
    )


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


# Data, failures, values


def test_a_broken_reference_is_an_error_in_the_data(referee):
    for code, message in (
        ("def inc(n) return n", "'broken' to run and to define inc, actually: syntax_error"),
        ("def other(n):\n    return n", "inc"),
        ("raise KeyError('x')", "error: KeyError"),
    ):
        broken = Problem("broken", "def inc(n): ...", "inc", code)
        for tests in (["assert inc(1) == 2"], []):
            with pytest.raises(BrokenReferenceError, match=message):
                referee.judge([Round(broken, RIGHT, [tests])])
        assert referee.references_run([broken, INC, broken]) == [False, True, False]


ECHO = Problem("echo", "def echo(x): ...", "echo", "def echo(x):\n    return x\n")
VALUES = [
    "None",
    "-1.5",
    "-0.0",
    "'it\\'s \\\\n'",
    "b'\\x00'",
    "[1, (2,), {3}]",
    "{'a': {}}",
    "set()",
    "frozenset({1})",
    "True",
    "1e400",
    "float('-inf')",
    "float('nan')",
    "(1+2j)",
    "10 ** 100",
    "'\\u20ac'",
]


def test_values_of_many_kinds_can_be_predicted_and_corrected(sandbox):
    right = [f"assert echo({value}) == {value}" for value in VALUES]
    wrong = [f"assert echo({value}) == 'wrong'" for value in VALUES]
    referee = Referee(sandbox)
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


# Wrong use


def test_wrong_use_is_explained():
    with pytest.raises(ValueError, match=r"wrong_oracle to be one of correct, drop, actually: 'x'"):
        RefereeConfig(wrong_oracle="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"domain to be one of signature, any, actually: 'x'"):
        RefereeConfig(domain="x")  # type: ignore[arg-type]
    for value in (-1, 1, float("nan"), True, "0"):
        with pytest.raises(ValueError, match="float_tolerance to be a number from 0"):
            RefereeConfig(float_tolerance=value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reference_share"):
        RefereeConfig(reference_share=0)
    with pytest.raises(ValueError, match="max_suite_tests"):
        RefereeConfig(max_suite_tests=0)
    with pytest.raises(TypeError, match=r"suites to hold lists of tests.*\[test\]"):
        Round(INC, RIGHT, ["assert inc(1) == 2"])
    with pytest.raises(TypeError, match="history to hold lists of tests"):
        Round(INC, RIGHT, [], "assert inc(1) == 2")
    with pytest.raises(TypeError, match="code to be a str or Program"):
        Round(INC, None, [])  # type: ignore[arg-type]


def test_what_the_paper_has_is_said_by_one_switch():
    assert (PAPER.domain, PAPER.tolerance, PAPER.wrong_oracle) == ("any", 0.0, "correct")
    default = RefereeConfig()
    assert (default.domain, default.tolerance) == ("signature", 1e-6)
    chosen = dataclasses.replace(PAPER, domain="signature", float_tolerance=1e-3)
    assert (chosen.domain, chosen.tolerance) == ("signature", 1e-3)


def test_verdicts_are_plain_frozen_values(referee):
    verdict = judge(referee, RIGHT, ["assert inc(1) == 2"])
    assert isinstance(verdict.suites[0], SuiteVerdict)
    assert hash(verdict.suites[0].tests[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.code_reward = 1.0  # type: ignore[misc]
