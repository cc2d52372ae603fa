"""The referee: which tests count, what is paid, and what hostile tests cannot do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from codea1_env.problems import Problem
from codea1_env.referee import (
    BrokenReferenceError,
    Referee,
    RefereeConfig,
    Round,
    SuiteVerdict,
    TestVerdict,
    Verdict,
)
from codea1_env.responses import Dropped, Program, Suite, parse_program
from codea1_env.rewards import RewardConfig, SuiteOutcome, suite_rewards
from codea1_env.sandbox import InfraError, Job, JobResult, Limits, Outcome, Sandbox, TestResult

INC = Problem("inc", "def inc(n):\n    ...", "inc", "def inc(n):\n    return n + 1\n")
RIGHT = "def inc(n):\n    return 1 + n\n"
WRONG = "def inc(n):\n    return n + 1 if n < 5 else n + 2\n"


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox, RefereeConfig(limits=Limits(call_cpu_time=1.0, call_wall_time=4.0)))


def judge(
    referee: Referee, code: str | Program, tests: Sequence[str] | Suite, history: Sequence[str] = ()
) -> Verdict:
    [verdict] = referee.judge([Round(INC, code, [tests], history)])
    return verdict


def rule(referee: Referee, test: str, code: str = WRONG) -> TestVerdict:
    return judge(referee, code, [test]).suites[0].tests[0]


def test_tests_as_they_attack(referee: Referee):
    other = dataclasses.replace(INC, reference="def inc(n):\n    return n + 2\n")
    tests = ["assert inc(7) == 8", "assert inc(7) == 7", "assert inc(", "assert inc(7) > 0"]
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
        "assert inc(7) != 9",
        "assert inc(7) < 9",
        "x = 7\nassert inc(x) == x + 1",
        "r = inc(7)\nassert r == 8",
        "for n in range(10):\n    assert inc(n) == n + 1",
        "def check(candidate):\n    assert candidate(7) == 8\ncheck(inc)",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(inc(7), 8)\nT('test_a').debug()",
        "assert [inc(n) for n in range(10)] == list(range(1, 11))",
        "import math\nassert math.isclose(inc(7.0), 8)",
        "import random\nassert inc(random.randint(7, 9)) < 11 and inc(7) == 8",
    ],
)
def test_tests_that_pass_on_the_reference_count(referee, test):
    assert rule(referee, test, RIGHT) == TestVerdict(test, "kept", "", Outcome.PASS)
    broken = rule(referee, test, WRONG)
    assert (broken.text, broken.status, broken.outcome, broken.broke) == (
        test,
        "kept",
        Outcome.FAIL,
        True,
    )


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ("assert inc(7) == 7", "assert inc(7) == 8"),
        ("assert inc(3 + 4) == [1], 'because it is [1]'", "assert inc(3 + 4) == 8"),
        ("assert 'x' == inc(7)", "assert inc(7) == 8"),
        ("n = 7\nexpected = 9\nassert inc(n) == expected", "assert inc(7) == 8"),
        ("assert inc(n=7) == 0", "assert inc(n=7) == 8"),
    ],
)
def test_a_wrong_prediction_is_corrected(referee, test, kept):
    verdict = judge(referee, WRONG, [test])
    [found] = verdict.suites[0].tests
    assert (found.text, found.status, found.outcome) == (kept, "corrected", Outcome.FAIL)
    assert found.reason.endswith("the reference returns 8")
    outcome = verdict.suites[0].outcome
    assert (list(outcome.failed), outcome.invalid) == ([True], 1)
    assert verdict.failed == (kept,)


def test_a_wrong_prediction_is_dropped_if_asked(sandbox):
    strict = Referee(sandbox, RefereeConfig(wrong_oracle="drop"))
    verdict = judge(strict, WRONG, ["assert inc(7) == 7", "assert inc(7) == 8"])
    first, second = verdict.suites[0].tests
    assert first == TestVerdict(
        "assert inc(7) == 7", "invalid", "predicts 7, the reference returns 8"
    )
    assert second.broke
    assert verdict.suites[0].outcome.invalid == 1


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert inc(7) != 8", "contradicts the reference"),
        ("assert inc(7) > 8", "contradicts the reference"),
        ("assert inc(7) is None", "contradicts the reference"),
        ("assert not inc(7)", "contradicts the reference"),
        ("assert inc(7) in [7, 9]", "contradicts the reference"),
        ("for n in [1, 7]:\n    assert inc(n) == n", "contradicts the reference"),
        ("assert inc('a') == 'b'", "raises on the reference: TypeError"),
        ("assert inc(1, 2) == 3", "raises on the reference: TypeError"),
        ("assert inc(undefined) == 3", "raises on the reference: NameError"),
        ("import nothing\nassert inc(1) == 2", "raises on the reference: ModuleNotFoundError"),
        ("assert inc(", "cannot be parsed"),
        ("assert inc(1) == '\0'", "cannot be parsed"),
        ("assert inc('\ud800') == 1", "cannot be parsed"),
        ("assert inc(" + "(" * 100_000 + ")" * 100_000 + ") == 1", "cannot be parsed"),
        ("", "never calls inc"),
        ("assert add(1, 2) == 3", "never calls inc"),
        ("assert 1 + 1 == 2  # inc", "never calls inc"),
        ("if False:\n    assert inc(1) == 2", "never calls inc"),
        ("for n in []:\n    assert inc(n) == 2", "never calls inc"),
        ("def test_inc():\n    assert inc(1) == 2", "never calls inc"),
        ("assert callable(inc)", "never calls inc"),
        ("assert inc(1) == inc(1)", "always true"),
        ("assert (inc(1) == 5, 'never false')", "always true"),
    ],
)
def test_tests_that_do_not_count(referee, test, reason):
    found = rule(referee, test)
    assert found == TestVerdict(test, "invalid", found.reason)
    assert reason in found.reason


# Duplicates


def test_duplicates_are_invalid_however_they_are_written(referee):
    tests = [
        "assert inc(2) == 3",
        "assert inc(1 + 1) == 3",
        "assert 3 == inc(2), 'x'",
        "n = 2\nassert inc(n) == 3",
    ]
    verdict = judge(referee, RIGHT, tests)
    assert [test.status for test in verdict.suites[0].tests] == ["kept"] + ["invalid"] * 3
    assert verdict.suites[0].tests[3].reason == "says the same as test 1"
    assert verdict.suites[0].outcome.invalid == 3


def test_a_right_test_goes_before_one_that_was_corrected_to_it(referee):
    verdict = judge(
        referee, RIGHT, ["assert inc(2) == 9", "assert inc(2) == 3", "assert inc(2) == 8"]
    )
    assert [test.status for test in verdict.suites[0].tests] == ["invalid", "kept", "invalid"]
    assert (len(verdict.suites[0].outcome.failed), verdict.suites[0].outcome.invalid) == (1, 2)


def test_the_same_test_in_two_suites_is_no_duplicate(referee):
    [verdict] = referee.judge([Round(INC, WRONG, [["assert inc(7) == 8"]] * 2)])
    assert verdict.failed == ("assert inc(7) == 8",) * 2
    assert [suite.failed for suite in verdict.suites] == [("assert inc(7) == 8",)] * 2


def test_long_suites_are_cut(sandbox):
    referee = Referee(sandbox, RefereeConfig(max_suite_tests=2))
    verdict = judge(referee, RIGHT, [f"assert inc({n}) == {n + 1}" for n in range(4)])
    assert [test.status for test in verdict.suites[0].tests] == ["kept"] * 2 + ["invalid"] * 2
    assert verdict.suites[0].tests[3].reason == "comes after the first 2 tests"


# Rewards


def test_rewards_are_those_of_the_outcomes(referee):
    suites: list[Any] = [
        ["assert inc(7) == 8", "assert inc(1) == 2", "assert inc(2) == 9", "assert inc(1) == 2"],
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
        SuiteOutcome(True, (True, False, False), 2, 1, 2),
        SuiteOutcome(True, (), 1, 1, 2, 0.25),
        SuiteOutcome(True, (), 0, 1, 2),
    ]
    assert [suite.outcome for suite in verdict.suites] == outcomes
    assert [suite.rewards for suite in verdict.suites] == [suite_rewards(o) for o in outcomes]
    assert verdict.code_reward == pytest.approx(((2 / 3 + 1 / 2) / 2 + 1 / 2 + 1 / 2) / 3)
    assert verdict.history_passed == ("assert inc(0) == 1",)
    assert [test.broke for test in verdict.history] == [True, False]


def test_without_any_evidence_the_program_is_not_scored(sandbox, referee):
    assert judge(referee, RIGHT, ["assert 1"]).code_reward is None
    paper = Referee(sandbox, RefereeConfig(RewardConfig(strict_paper=True)))
    assert judge(paper, RIGHT, ["assert 1"]).code_reward == 0.0


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def inc(n) return n", Outcome.SYNTAX_ERROR),
        ("def other(n):\n    return n\n", Outcome.ERROR),
        ("raise ValueError('at import')", Outcome.ERROR),
        ("import sys\nsys.exit(0)", Outcome.EXITED),
        ("def inc(n):\n    return '\0'", Outcome.SYNTAX_ERROR),
        (parse_program(""), Outcome.SYNTAX_ERROR),
        (parse_program("x" * 70_000), Outcome.SYNTAX_ERROR),
        (parse_program("def inc(n):\n    return '\ud800'"), Outcome.SYNTAX_ERROR),
        (parse_program("(" * 60_000), Outcome.SYNTAX_ERROR),
    ],
)
def test_a_program_that_does_not_run_fails_all_and_pays_no_tester(referee, code, outcome):
    verdict = judge(
        referee, code, ["assert inc(1) == 2", "assert inc(2) == 9"], ["assert inc(3) == 4"]
    )
    assert not verdict.code_executes
    assert verdict.load.outcome is outcome
    assert verdict.load.message
    assert verdict.code_reward == 0
    assert verdict.suites[0].rewards.test == 0
    assert verdict.failed == ("assert inc(1) == 2", "assert inc(2) == 3")
    assert verdict.history_passed == ()


def test_a_program_that_never_ends_times_out(referee):
    limits = Limits(call_cpu_time=0.2, call_wall_time=1.0, run_cpu_time=1.0, run_wall_time=3.0)
    quick = Referee(referee.sandbox, RefereeConfig(limits=limits, reference_share=1.0))
    code = "def inc(n):\n    while n > 5:\n        pass\n    return n + 1\n"
    verdict = judge(quick, code, ["assert inc(7) == 8", "assert inc(1) == 2"])
    assert [test.outcome for test in verdict.suites[0].tests] == [Outcome.TIMEOUT, Outcome.PASS]
    assert (quick.counters.timeouts, quick.counters.programs, quick.counters.tests) == (1, 1, 2)
    assert quick.counters.seconds > 0.1


# The Mistake Book's tests


def test_stale_history_is_not_replayed(referee):
    history = [
        "assert inc(1) == 2",
        "assert inc(1) == 5",
        "assert add(1) == 2",
        "assert inc(7) == 8",
    ]
    verdict = judge(referee, WRONG, [], history)
    assert [test.text for test in verdict.history] == ["assert inc(1) == 2", "assert inc(7) == 8"]
    assert verdict.history_passed == ("assert inc(1) == 2",)
    assert verdict.stale == ("assert inc(1) == 5", "assert add(1) == 2")
    assert verdict.forgettable == (*verdict.history_passed, *verdict.stale)
    assert verdict.code_reward == 0.5


# Batches, caches, failures


def test_a_batch_gives_the_same_as_one_by_one(sandbox):
    double = Problem("double", "def double(n): ...", "double", "def double(n):\n    return 2 * n\n")
    rounds = [
        Round(
            INC, WRONG, [["assert inc(7) == 8"], ["assert inc(1) == 5"]], ["assert inc(9) == 10"]
        ),
        Round(double, "def double(n):\n    return n ** 2\n", [["assert double(3) == 6"]]),
        Round(INC, RIGHT, [["assert inc(7) == 8", "assert inc(exit()) == 1"]]),
        Round(INC, WRONG, [["for n in [7]:\n    assert inc(n) == 8"]]),
        Round(INC, parse_program(""), [["assert inc(7) == 8"]]),
    ]

    def timeless(verdict: Verdict) -> Verdict:
        return dataclasses.replace(verdict, load=dataclasses.replace(verdict.load, cpu_time=0.0))

    together = [timeless(verdict) for verdict in Referee(sandbox).judge(rounds)]
    referee = Referee(sandbox)
    assert together == [timeless(referee.judge([each])[0]) for each in reversed(rounds)][::-1]
    assert together == [timeless(verdict) for verdict in referee.judge(rounds)]
    assert Referee(sandbox).judge([]) == []


class Counting(Sandbox):
    """A sandbox that remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__(workers=2)
        self.jobs: list[Job] = []
        self.calls: list[int] = []

    def submit(self, job: Job) -> Future[JobResult]:
        self.jobs.append(job)
        return super().submit(job)

    def submit_calls(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(len(args[2]))
        return super().submit_calls(*args, **kwargs)


def test_each_program_runs_once_and_each_call_is_asked_once():
    suites = [
        ["assert inc(7) == 8", "assert inc(1) == 2"],
        ["assert inc(7) == 9", "assert inc(7) < 9"],
    ]
    with Counting() as sandbox:
        referee = Referee(sandbox)
        rounds = [
            Round(INC, code, suites, ["assert inc(3) == 4"]) for code in (WRONG, RIGHT, WRONG)
        ]
        referee.judge(rounds)
        assert sandbox.calls == [3, 3]  # three distinct calls, with two hash seeds
        programs = [job for job in sandbox.jobs if job.code != INC.reference]
        assert [job.code for job in programs] == [WRONG, RIGHT]
        assert [len(job.tests) for job in programs] == [4, 4]
        assert [job.hash_seed for job in sandbox.jobs if job.code == INC.reference] == [0, 0, 1]
        del sandbox.jobs[:], sandbox.calls[:]
        referee.judge(rounds)
        assert [job.code for job in sandbox.jobs] == [WRONG, RIGHT]
        assert sandbox.calls == []


def test_a_broken_reference_is_an_error_in_the_data(referee):
    for code, message in (
        ("def inc(n) return n", "'broken' to run and to define inc, actually: syntax_error"),
        ("def other(n):\n    return n", "inc"),
        ("raise KeyError('x')", "error: KeyError"),
    ):
        broken = Problem("broken", "def inc(n): ...", "inc", code)
        with pytest.raises(BrokenReferenceError, match=message):
            referee.judge([Round(broken, RIGHT, [["assert inc(1) == 2"]])])


class Failing(Sandbox):
    """A sandbox whose machine is out of order."""

    def submit(self, job: Job) -> Future[JobResult]:
        future: Future[JobResult] = Future()
        future.set_exception(InfraError("no memory"))
        return future


class Reporting(Sandbox):
    """A sandbox that reports its own failure as an outcome."""

    def submit(self, job: Job) -> Future[JobResult]:
        future: Future[JobResult] = Future()
        result = TestResult(Outcome.INFRA_ERROR, "no memory")
        load = TestResult(Outcome.PASS) if job.code == INC.reference else result
        future.set_result(JobResult(load, (result,) * len(job.tests)))
        return future


@pytest.mark.parametrize("kind", [Failing, Reporting])
def test_a_failure_of_the_sandbox_is_no_verdict(kind):
    for test in ("assert inc(1) == 2", "assert inc(1) < 3"):
        with kind() as sandbox, pytest.raises(InfraError, match="no memory"):
            Referee(sandbox).judge([Round(INC, RIGHT, [[test]])])


def test_values_of_many_kinds_can_be_predicted_and_corrected(sandbox):
    echo = Problem("echo", "def echo(x): ...", "echo", "def echo(x):\n    return x\n")
    values = [
        "None",
        "-1.5",
        "'it\\'s \\\\n'",
        "b'\\x00'",
        "[1, (2,), {3}]",
        "{'a': {}}",
        "set()",
        "True",
        "1e400",
        "(1+2j)",
    ]
    right = [f"assert echo({value}) == {value}" for value in values]
    wrong = [f"assert echo({value}) == 'wrong'" for value in values]
    referee = Referee(sandbox)
    [verdict] = referee.judge([Round(echo, echo.reference, [right, wrong])])
    assert [test.status for test in verdict.suites[0].tests] == ["kept"] * len(values)
    assert [test.status for test in verdict.suites[1].tests] == ["corrected"] * len(values)
    assert verdict.failed == ()
    fixed = [test.text for test in verdict.suites[1].tests]
    [again] = referee.judge([Round(echo, "def echo(x):\n    return 0", [fixed])])
    assert [test.status for test in again.suites[0].tests] == ["kept"] * len(values)
    assert len(again.failed) == len(values)


def test_classes_and_functions_of_objects_can_be_tested(sandbox):
    code = "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n    def pop(self): return self.items.pop()\n"
    stack = Problem("stack", "class Stack: ...", "Stack", code)
    test = "s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2\nassert s.pop() == 1"
    queue = code.replace("self.items.pop()", "self.items.pop(0)")
    verdicts = Referee(sandbox).judge([Round(stack, each, [[test]]) for each in (code, queue)])
    assert [verdict.failed for verdict in verdicts] == [(), (test,)]


def test_messages_hold_no_addresses(referee):
    program = "def inc(n):\n    raise KeyError(inc)\n"
    verdict = judge(referee, program, ["assert inc(1) == 2", "assert inc(inc) == 2"])
    assert "<function inc at 0x...>" in verdict.suites[0].tests[0].message
    assert "at 0x7" not in repr(verdict)
    verdict = judge(referee, "def inc(n): pass\nraise KeyError(inc)", [])
    assert "<function inc at 0x...>" in verdict.load.message


# Wrong use


def test_wrong_use_is_explained(sandbox):
    with pytest.raises(ValueError, match=r"wrong_oracle to be one of correct, drop, actually: 'x'"):
        RefereeConfig(wrong_oracle="x")  # type: ignore[arg-type]
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


def test_verdicts_are_plain_frozen_values(referee):
    verdict = judge(referee, RIGHT, ["assert inc(1) == 2"])
    assert isinstance(verdict.suites[0], SuiteVerdict)
    assert hash(verdict.suites[0].tests[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.code_reward = 1.0  # type: ignore[misc]
