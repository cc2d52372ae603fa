"""Tests and programs that want more than they deserve, judged by the referee."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, TestVerdict, Verdict
from codea1_env.sandbox import Job, JobResult, Limits, Outcome, Sandbox, TestResult

INC = Problem("inc", "def inc(n):\n    ...", "inc", "def inc(n):\n    return n + 1\n")
RIGHT = "def inc(n):\n    return 1 + n\n"
WRONG = "def inc(n):\n    return n + 1 if n < 5 else n + 2\n"


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox, RefereeConfig(limits=Limits(call_cpu_time=1.0, call_wall_time=4.0)))


def judge(referee: Referee, code: str, tests: Sequence[str]) -> Verdict:
    return referee.judge([Round(INC, code, [tests])])[0]


def rule(referee: Referee, test: str) -> TestVerdict:
    return judge(referee, WRONG, [test]).suites[0].tests[0]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        # Ends or hangs the process that evaluates the arguments.
        ("assert inc(exit()) == 1", "raises on the reference"),
        ("import sys\nassert inc(sys.exit(0)) == 1", "ends the process"),
        ("assert inc(__import__('os')._exit(0)) == 1", "ends the process"),
        ("import os\ninc(1)\nos.kill(os.getpid(), 9)", "reference"),
        ("import time\nassert inc(time.sleep(60) or 1) == 2", "takes too long"),
        ("while inc(1):\n    pass", "takes too long"),
        # Passes by luck, or on the reference only.
        ("import datetime as d\nassert inc(1) and d.datetime.now().microsecond == 7", "reference"),
        # Puts something else in the place of the function.
        ("inc = lambda n: n + 1\nassert inc(7) == 8", "rebinds inc"),
        ("assert (inc := lambda n: n + 1)(7) == 8", "rebinds inc"),
        ("globals()['inc'] = lambda n: n + 1\nassert inc(7) == 8", "never calls inc"),
        ("exec('def inc(n): return n + 1')\nassert inc(7) == 8", "never calls inc"),
        ("import builtins\nbuiltins.len = lambda _: 8\ndel builtins\nassert len('inc') == 8", ""),
        # Does not care what the function does.
        ("try:\n    inc(7)\nexcept Exception:\n    pass", "passes whatever inc does"),
        ("import contextlib\nwith contextlib.suppress(BaseException):\n    assert inc(7) == 0", "passes whatever inc does"),
        ("def t(g):\n    try:\n        return g()\n    except BaseException:\n        return 1\nassert t(lambda: inc(7)) or True is not None", "passes whatever inc does"),
        # The reference manages only just.
        ("assert sum(range(10 ** 9)) and inc(7) == 8", "takes too long"),
        ("def deep(n):\n    return n and deep(n - 1)\nassert deep(10 ** 5) == 0 and inc(7) == 8", "RecursionError"),
        ("assert inc(len([0] * 10 ** 11)) > 0", "reference"),
    ],
)  # fmt: skip
def test_hostile_tests_do_not_count(referee, test, reason):
    found = rule(referee, test)
    assert (found.status, found.outcome) == ("invalid", None)
    assert reason in found.reason


def test_expected_exceptions_are_no_swallowed_ones(sandbox):
    root = Problem(
        "root", "def root(n): ...", "root",
        "def root(n):\n    if n < 0:\n        raise ValueError('negative')\n    return n ** 0.5\n",
    )  # fmt: skip
    test = "try:\n    root(-1)\n    assert False, 'no error'\nexcept ValueError:\n    pass"
    referee = Referee(sandbox)
    careless = "def root(n):\n    return abs(n) ** 0.5\n"
    verdicts = referee.judge([Round(root, code, [[test]]) for code in (root.reference, careless)])
    assert [verdict.suites[0].tests[0].status for verdict in verdicts] == ["kept", "kept"]
    assert [verdict.failed for verdict in verdicts] == [(), (test,)]


def test_a_heavy_test_does_not_count_although_the_reference_can_do_it(sandbox):
    heavy = Problem(
        "total", "def total(n): ...", "total", "def total(n):\n    return sum(range(n))\n"
    )
    test = f"assert total({3 * 10**7}) == {3 * 10**7 * (3 * 10**7 - 1) // 2}"
    limits = Limits(call_cpu_time=2.0)
    generous = Referee(sandbox, RefereeConfig(limits=limits, reference_share=1.0))
    careful = Referee(sandbox, RefereeConfig(limits=limits, reference_share=0.02))
    rounds = [Round(heavy, heavy.reference, [[test]])]
    assert generous.judge(rounds)[0].suites[0].tests[0].status == "kept"
    found = careful.judge(rounds)[0].suites[0].tests[0]
    assert found.status == "invalid"
    assert "takes too long on the reference" in found.reason


def test_a_test_that_depends_on_the_hash_seed_is_not_deterministic(referee):
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    tests = [
        f"w = list({set(words)})\nassert w.index({one!r}) < w.index({other!r}) and inc(7) == 8"
        for one, other in itertools.permutations(words, 2)
    ]
    reasons = [test.reason for test in judge(referee, RIGHT, tests).suites[0].tests]
    assert any("non-deterministic" in reason for reason in reasons)


def test_a_reference_that_depends_on_the_hash_seed_has_no_value(sandbox):
    code = "def first(words):\n    return list(set(words))\n"
    problem = Problem("first", "def first(words): ...", "first", code)
    words = [f"word {n}" for n in range(50)]
    [verdict] = Referee(sandbox).judge([Round(problem, code, [[f"assert first({words}) == []"]])])
    assert "non-deterministic" in verdict.suites[0].tests[0].reason


class Unlucky(Sandbox):
    """A sandbox in which some tests fail from a certain run on, as one does that reads a clock."""

    def __init__(self, good_runs: int) -> None:
        super().__init__(workers=1)
        self.good_runs = good_runs

    def submit(self, job: Job) -> Future[JobResult]:
        future = super().submit(job)
        if not any("datetime" in test for test in job.tests):
            return future
        self.good_runs -= 1
        if self.good_runs >= 0:
            return future
        late: Future[JobResult] = Future()
        results = tuple(
            TestResult(Outcome.FAIL, "late") if "datetime" in test else result
            for test, result in zip(job.tests, future.result().tests, strict=True)
        )
        late.set_result(dataclasses.replace(future.result(), tests=results))
        return late


def test_a_test_that_fails_by_the_clock_gives_itself_away():
    test = "import datetime\nassert inc(1) == 2 and datetime.datetime.now().year > 2000"
    with Unlucky(good_runs=3) as sandbox:
        referee = Referee(sandbox)
        assert judge(referee, RIGHT, [test]).suites[0].tests[0].status == "kept"
        verdict = judge(referee, RIGHT + "\n", [test, "assert inc(1) == 2"])
        assert verdict.suites[0].tests[0] == TestVerdict(
            test, "invalid", "is non-deterministic: two runs on the reference differ"
        )
        assert verdict.failed == ()
        assert judge(referee, RIGHT, [test]).suites[0].tests[0].status == "invalid"


@pytest.mark.parametrize(
    "body",
    [
        "class Yes:\n    def __eq__(self, other): return True\n    def __bool__(self): return True\n"
        "def inc(n):\n    return Yes()\n",
        "class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def inc(n):\n    return Yes(7)\n",
        "import sys\ndef inc(n):\n    for f in sys._current_frames().values():\n"
        "        while f:\n            if 'expected' in f.f_locals: return f.f_locals['expected']\n"
        "            f = f.f_back\n",
        "import os\ndef inc(n):\n    print('PASS'); os._exit(0)\n",
    ],
)
def test_a_program_cannot_win_by_cheating(referee, body):
    tests = [
        "assert inc(1) == 2",
        "expected = 8\nassert inc(7) == expected",
        "for n in [3]:\n    assert inc(n) == 4",
    ]
    verdict = judge(referee, body, tests)
    assert verdict.failed == tuple(tests)
    assert verdict.code_reward == 0


def test_slow_tests_take_no_time_from_those_beside_them(sandbox: Sandbox) -> None:
    mod = Problem("mod", "def f(n): ...", "f", "def f(n): return n % 7")
    hangs = "def f(n):\n    while n > 100: pass\n    return n % 7"
    slow = [f"assert f({n}) == {n % 7}" for n in range(101, 111)]
    history = [f"assert f({n}) == {n % 7}" for n in range(5)]
    referee = Referee(sandbox, RefereeConfig(limits=Limits(call_cpu_time=0.1, run_cpu_time=0.5)))
    (verdict,) = referee.judge([Round(mod, hangs, [slow], history)])
    assert [test.broke for test in verdict.history] == [False] * 5
    assert [test.outcome for test in verdict.suites[0].tests] == [Outcome.TIMEOUT] * 10
