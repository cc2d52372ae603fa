"""The referee's rulings: which tests count, which are the same, and what they then predict."""

from __future__ import annotations

import dataclasses

import pytest
from increments import INC, PAPER, RIGHT, TYPED, WRONG, judge, statuses

import codea1_env
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig, Round, TestVerdict
from codea1_env.rewards import SuiteOutcome
from codea1_env.sandbox import Outcome, Sandbox


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox)


def rule(
    referee: Referee, test: str, code: str = WRONG, problem: Problem = INC
) -> TestVerdict | None:
    """The ruling on a text with one test; None if no test was found in it."""
    tests = judge(referee, code, [test], problem=problem).suites[0].tests
    assert len(tests) < 2
    return tests[0] if tests else None


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
        "assert 8 == inc(n=7), 'message'",
        "r = inc(7)\nassert r == 8",
        "for n in [7]:\n    assert inc(n) == n + 1",
        "def test_inc():\n    assert inc(7) == 8",
        "def check(candidate):\n    assert candidate(7) == 8\ncheck(inc)",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(inc(7), 8)",
        # It is read, not run: nothing else that a text says has any effect.
        "import nothing\nassert inc(7) == 8",
        "def inc(n):\n    return 0\nassert inc(7) == 8",
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
        ("assert not inc(7)", "predicts False, the reference returns 8"),
        ("assert inc(7) == (8,)", "predicts (8,), the reference returns 8"),
    ],
)
def test_a_wrong_prediction_is_corrected(referee, test, reason):
    verdict = judge(referee, WRONG, [test])
    [found] = verdict.suites[0].tests
    assert found == TestVerdict(
        "assert inc(7) == 8", "corrected", reason, Outcome.FAIL, "returned 9, not 8", "inc(7)",
        fault=InvalidReason.WRONG_VALUE,
    )  # fmt: skip
    outcome = verdict.suites[0].outcome
    assert (list(outcome.failed), outcome.invalid) == ([True], 1)
    assert verdict.failed == ("assert inc(7) == 8",)


def test_a_wrong_prediction_is_dropped_if_asked(sandbox):
    strict = Referee(sandbox, RefereeConfig(wrong_oracle="drop"))
    verdict = judge(strict, WRONG, ["assert inc(7) == 7", "assert inc(8) == 9"])
    first, second = verdict.suites[0].tests
    assert first == TestVerdict(
        "assert inc(7) == 7", "invalid", "predicts 7, the reference returns 8",
        fault=InvalidReason.WRONG_VALUE,
    )  # fmt: skip
    assert second.broke
    assert verdict.suites[0].outcome.invalid == 1
    assert verdict.failed == ("assert inc(8) == 9",)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert inc('a') == 'b'", "raises on the reference: TypeError"),
        ("assert inc(1, 2) == 3", "takes at most 1 argument"),
        ("assert inc(m=3) == 3", "has no parameter m"),
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
        "assert isinstance(inc(7), int)",
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
    found = dataclasses.replace(verdict.suites[0].outcome, nonprintable_ratio=0.0)
    assert found == SuiteOutcome(True, (), 1, 0, 0)
    assert verdict.code_reward is None


@pytest.mark.parametrize(
    "text", ["", "assert add(1, 2) == 3", "print(inc(1))", "assert 1 + 1 == 2  # inc"]
)
def test_what_is_not_about_the_function_costs_nothing(referee, text):
    verdict = judge(referee, WRONG, [text])
    assert verdict.suites[0].outcome == SuiteOutcome(True, (), 0, 0, 0)


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


@pytest.mark.parametrize(
    ("value", "test", "kept"),
    [
        ("1000000.0", "abs(total(1) - 1005000) < 0.01", False),
        ("1000000.0", "abs(total(1) - 1000000.005) < 0.01", True),
        ("[1000000.0, 2.0]", "total(1) == pytest.approx([1005000, 2], abs=0.01)", False),
        ("1000000", "abs(total(1) - 1000000.005) < 0.01", True),  # as the test says
        ("1000000", "total(1) == 1000000.5", False),  # the game's tolerance is for floats
        ("1000000.5", "total(1) == 1000001", True),
    ],
)
def test_tolerances_are_what_they_are_called(referee, value, test, kept):
    problem = Problem("total", "def total(n): ...", "total", f"def total(n):\n    return {value}\n")
    found = statuses(judge(referee, problem.reference, [f"assert {test}"], problem=problem))
    assert found in ([], ["kept" if kept else "corrected"])
    assert found or not kept


def test_a_float_is_no_answer_where_the_integer_beside_it_is_expected(referee):
    floats = "def inc(n):\n    return float(n) if n > 10**6 else n + 1\n"
    tests = [f"assert inc({n}) == {n + 1}" for n in (7, 10**7, 10**15)]
    assert judge(referee, floats, tests).failed == tuple(tests[1:])
    exact = "def inc(n):\n    return float(n + 1)\n"
    assert judge(referee, exact, tests).failed == ()


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


@pytest.mark.parametrize(
    ("annotation", "first", "again"),
    [
        ("float", "2", "2.0"),
        ("float", "0", "-0.0"),
        ("list[float]", "[1, 2]", "[1.0, 2]"),
        ("int | bool", "1", "True"),
        ("tuple[float, ...]", "(1, 2.5)", "(1.0, 2.5)"),
    ],
)
def test_equal_arguments_are_one_test_in_any_order(referee, annotation, first, again):
    code = "def same(x):\n    return x\n"
    problem = Problem("same", f"def same(x: {annotation}):", "same", code)
    for one, two in ((first, again), (again, first)):
        tests = [f"assert same({one}) == {one}", f"assert same({two}) == {two}"]
        verdict = judge(referee, code, tests, problem=problem)
        assert statuses(verdict) == ["kept", "duplicate"], (one, two)


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


def test_what_comes_after_the_last_test_takes_no_place(sandbox):
    referee = Referee(sandbox, RefereeConfig(max_suite_tests=2))
    verdict = judge(referee, RIGHT, [f"assert inc({n}) == {n + 1}" for n in range(4)])
    assert statuses(verdict) == ["kept"] * 2 + ["invalid"] * 2
    verdict = judge(referee, RIGHT, [f"assert inc(1) == {n}" for n in (5, 6, 2)])
    assert statuses(verdict) == ["corrected", "invalid", "invalid"]


PLUS_ONE = "def inc(n):\n    return n + 1"
TWO = ["assert inc(1) == 2", "assert inc(2) == 3"]


def test_the_judge_alone() -> None:
    halves = Problem("demo/inc", "def inc(n):", "inc", PLUS_ONE)
    for problem in (PLUS_ONE, (PLUS_ONE, "inc"), halves):
        verdict = codea1_env.judge(problem, "def inc(n): return 2", TWO)
        assert (verdict.code_reward, verdict.suites[0].rewards.test) == (0.5, 0.1875)
    for name in ("is_even", "starter/is_even"):
        verdict = codea1_env.judge(
            name, "```\ndef is_even(n): return not n % 2\n```", "assert is_even(2)"
        )
        assert verdict.code_reward == 1.0
    helped = "def one(): return 1\n\n\ndef inc(n): return n + one()"
    assert codea1_env.judge(helped, PLUS_ONE, "\n".join(TWO), entry_point="inc").code_reward == 1.0
    for text, said in (
        (helped, "actually the functions: one, inc"),
        ("x = 1", "functions: none"),
        ("is_evn", "Did you mean 'starter/is_even'"),
    ):
        with pytest.raises(ValueError, match=said):
            codea1_env.judge(text, PLUS_ONE, TWO)


def test_many_are_judged_as_one_is() -> None:
    texts = (
        "",
        "no program",
        PLUS_ONE,
        "def inc(n): return 2",
        "import os; os._exit(0)",
        "while True: pass",
    )
    items = [(PLUS_ONE, text, tests) for text in texts for tests in (TWO, "nothing", TWO[0])]
    together, alone = codea1_env.judge_many(items), [codea1_env.judge(*item) for item in items]
    for said in (lambda each: each.code_reward, lambda each: each.suites[0].rewards):
        assert list(map(said, together)) == list(map(said, alone))
    assert codea1_env.judge_many(iter(())) == []


def test_what_cannot_be_printed_costs_as_in_the_game():
    suite = "\n".join(f"assert is_even({n}) is False" for n in (1, 3, 5)) + "\n#" + "\u200b" * 200
    program = "def is_even(n):\n    return True"
    env = codea1_env.parallel_env()
    env.reset(seed=1, options={"problem_id": "starter/is_even"})
    env.step({"coder_0": program})
    paid = env.step({"tester_0": suite})[1]["tester_0"]
    whole, lines = codea1_env.judge_many(
        [("starter/is_even", program, given) for given in (suite, suite.splitlines(True))]
    )
    assert whole.suites[0].rewards.test == lines.suites[0].rewards.test == pytest.approx(paid)
