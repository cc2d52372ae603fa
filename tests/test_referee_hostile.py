"""Tests, programs and references that want more than they deserve, judged by the referee."""

from __future__ import annotations

import marshal
import time
from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env.oracle import MOST_SLOW
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig, Round, TestVerdict, Verdict
from codea1_env.rewards import RewardConfig, SuiteOutcome
from codea1_env.sandbox import InfraError, Limits, Outcome, Sandbox
from codea1_env.sandbox.supervise import Supervised

INC = Problem("inc", "def inc(n):\n    ...", "inc", "def inc(n):\n    return n + 1\n")
RIGHT = "def inc(n):\n    return 1 + n\n"
WRONG = "def inc(n):\n    return n + 1 if n < 5 else n + 2\n"
LIMITS = Limits(call_cpu_time=0.3, call_wall_time=1.2)


@pytest.fixture(scope="module")
def referee(sandbox: Sandbox) -> Referee:
    return Referee(sandbox, RefereeConfig(limits=LIMITS))


def judge(referee: Referee, code: str, tests: Sequence[str], problem: Problem = INC) -> Verdict:
    return referee.judge([Round(problem, code, [tests])])[0]


def of(reference: str, name: str = "f") -> Problem:
    """A problem with a reference that is an expression of n."""
    code = reference if "\n" in reference else f"def f(n):\n    return {reference}\n"
    return Problem(name, "def f(n): ...", "f", code)


def rulings(referee: Referee, problem: Problem, *tests: str) -> list[TestVerdict]:
    return list(judge(referee, problem.reference, tests, problem).suites[0].tests)


# Tests


@pytest.mark.parametrize(
    "test",
    [
        # Would end, hang or fill the process that evaluates it.
        "assert inc(exit()) == 1",
        "import sys\nassert inc(sys.exit(0)) == 1",
        "assert inc(__import__('os')._exit(0)) == 1",
        "import time\nassert inc(time.sleep(60) or 1) == 2",
        "while inc(1):\n    pass",
        "assert inc([0] * 10 ** 10) == 1",
        "assert inc('x' * 10 ** 10) == 1",
        "assert inc(10 ** 10 ** 10) == 1",
        "assert inc(1) == 10 ** 10 ** 10",
        "assert inc(1 << 10 ** 10) == 1",
        "assert inc(" + "9" * 60_000 + ") == 1",
        "for n in range(10 ** 10):\n    assert inc(n) == n + 1",
        "for a in range(10 ** 4):\n  for b in range(10 ** 4):\n    assert inc(a) == b",
        "assert inc(" + "[" * 30_000 + "]" * 30_000 + ") == 1",
        "assert inc(1) == " + "-" * 60_000 + "1",
        # Looks at the program, at the clock, or at nothing.
        "import datetime as d\nassert inc(d.datetime.now().microsecond) == 7",
        "assert inc.__code__.co_code == b''",
        "assert (inc := lambda n: n + 1)(7) == 8",
        "copy = {}\nexec('def inc(n): return n + 2', copy)\nassert [inc(n) for n in range(24)] != [copy['inc'](n) for n in range(24)]",
        "assert str(inc('a')) == 'x'",
        "import pytest\nwith pytest.raises(TypeError):\n    inc('a')",
    ],
)  # fmt: skip
def test_hostile_tests_break_no_right_program(referee, test):
    """Whatever else is read into them: a right program loses nothing, and the tester pays."""
    started = time.monotonic()
    verdict = judge(referee, RIGHT, [test])
    assert verdict.failed == ()
    assert verdict.suites[0].rewards.adversarial == 0
    assert "kept" not in [found.status for found in verdict.suites[0].tests] or len(test) < 100
    assert time.monotonic() - started < 5


def test_huge_suites_are_cut_short(referee):
    long = "\n".join(f"assert inc({n}) == {n + 1}" for n in range(2000))
    wide = (
        "for a in range(64):\n  for b in range(64):\n    assert inc(a * 64 + b) == a * 64 + b + 1"
    )
    for text in (long, wide):
        started = time.monotonic()
        verdict = judge(referee, WRONG, [text])
        outcome = verdict.suites[0].outcome
        assert len(outcome.failed) <= referee.config.max_suite_tests
        assert time.monotonic() - started < 5
    assert judge(referee, WRONG, ["x" * 10_000_000]).suites[0].outcome.failed == ()


def test_the_visible_program_in_a_test_is_no_weapon(referee):
    """A text that knows nothing of the problem: it asks for a difference from a copy of the program."""
    text = (
        f"{RIGHT.replace('inc', 'copy')}\n"
        "def same(a):\n    try:\n        return inc(a) == copy(a)\n    except Exception as e:\n        return str(e)\n"
        "assert not all(same(a) is True for a in [0, -1, None, '', [], {}, (), 1e9, float('nan'), 2 ** 70])\n"
        "assert inc(None) == copy(None)\nassert not same('x') is True\n"
    )
    verdict = judge(referee, RIGHT, [text])
    assert verdict.failed == ()
    assert verdict.suites[0].rewards.test <= 0
    assert verdict.code_reward is None


def test_tests_that_any_program_passes_are_worth_nothing(referee):
    tests = [
        *(f"assert inc({n}) is not None" for n in range(4)),
        *(f"assert inc({n}) == inc({n})" for n in range(4)),
    ]
    verdict = judge(referee, WRONG, tests)
    assert verdict.suites[0].outcome == SuiteOutcome(True, (), 8, 0, 0)
    assert verdict.suites[0].rewards.validity == 0


@pytest.mark.parametrize("count", [15, 900])
def test_colliding_keys_cost_nothing_and_break_nothing(sandbox, count):
    keys = [number * (2**61 - 1) for number in range(count)]
    literal = "{" + ", ".join(map(str, keys)) + "}"
    echo = Problem("echo", "def f(x): ...", "f", "def f(x):\n    return x\n")
    tests = [f"assert f({literal}) == {literal}", f"assert f(1) == {literal}", "assert f(2) == 2"]
    other = "def f(x):\n    return set(sorted(x)[::-1]) if isinstance(x, set) else x\n"
    wrong = "def f(x):\n    return {x} if isinstance(x, int) else x\n"
    right, broken = Referee(sandbox).judge([Round(echo, code, [tests]) for code in (other, wrong)])
    assert (right.failed, right.code_reward) == ((), 1.0)
    assert "assert f(2) == 2" in broken.failed


# References


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("1 / 0", "raises on the reference: ZeroDivisionError: division by zero"),
        ("object()", "returns no plain data on the reference: a value of type 'object'"),
        ("(x for x in [n])", "returns no plain data on the reference: a value of type 'generator'"),
        ("__import__('collections').deque([n])", "no literal"),
        ("__import__('decimal').Decimal(n)", "costs too much to read"),
        ("10 ** 20_000", "costs too much to read"),
        ("'x' * 30_000", "too long"),
        ("'x' * 40_000_000", "on the reference"),
        ("exec('x = []; x.append(x)') or (lambda x: x.append(x) or x)([])", "cyclic"),
        ("__import__('sys').exit(3)", "ends the process"),
        ("__import__('os').kill(__import__('os').getpid(), 15)", "fails on the reference"),
        ("[0] * 10 ** 12", "needs too much memory on the reference"),
        ("open('/etc/passwd').read()", "raises on the reference"),
        ("f(n)", "raises on the reference: RecursionError"),
        ("__import__('time').sleep(100)", "takes too long on the reference"),
        ("list({chr(97 + x) * 9 for x in range(26)})", "is non-deterministic"),
        ("hash('abc')", "is non-deterministic"),
        ("__import__('time').time()", "is non-deterministic"),
        ("__import__('random').random()", "is non-deterministic"),
        ("__import__('os').urandom(8)", "is non-deterministic"),
        ("__import__('os').getpid() ** 9", ""),
    ],
)  # fmt: skip
def test_calls_on_which_the_reference_has_no_value(referee, reference, reason):
    [found] = rulings(referee, of(reference), "assert f(1) == 5")
    if reason:
        assert (found.status, found.outcome) == ("invalid", None)
        assert reason in found.reason
    assert "0x7" not in found.reason
    wrong = judge(referee, "def f(n):\n    return 6\n", ["assert f(1) == 5"], of(reference))
    assert not reason or wrong.failed == ()


@pytest.mark.parametrize(
    ("value", "infinite"),
    [
        ("float('nan')", True),
        ("-float('inf')", True),
        ("n * 1e308 * 10", True),
        ("[1, 2.5, float('nan'), 4, 5]", True),
        ("(float('inf'), 1.5, 2.5, 3.5, 4.5)", True),
        ("complex(1, float('inf'))", True),
        ("{float('-inf')}", True),
        ("-1.5", False),
        ("[-1, 'inf', b'\\x7f\\xff']", False),
        ("1e308", False),
    ],
)
def test_an_overflow_of_the_reference_is_no_test(sandbox, referee, value, infinite):
    """A program that does not overflow, or raises, is not wrong."""
    problem = of(value)
    [found] = rulings(referee, problem, "assert f(1) == 'wrong'")
    assert found.status == ("invalid" if infinite else "corrected")
    assert (found.fault is InvalidReason.NOT_FINITE) == infinite
    if not infinite:
        return
    # Whoever gives inf or nan asks for it; and the release pays for all.
    test = "assert f(float('inf')) == 'wrong'"
    assert rulings(referee, of(value.replace("n * 1e308", "n")), test)[0].status == "corrected"
    paper = Referee(sandbox, RefereeConfig(RewardConfig(strict_paper=True)))
    assert rulings(paper, problem, "assert f(1) == 'wrong'")[0].status == "corrected"


def test_a_reference_that_is_sometimes_right_is_asked_only_once(sandbox):
    """What two processes disagree about is settled, whatever a third would say."""
    referee = Referee(sandbox)
    problem = of("__import__('time').time_ns() % 2 + hash('a') % 2 * 2")
    reasons = {rulings(referee, problem, "assert f(1) == 1")[0].reason for _ in range(5)}
    assert len(reasons) == 1


def test_a_heavy_test_does_not_count_although_the_reference_can_do_it(sandbox):
    heavy = Problem(
        "total", "def total(n): ...", "total", "def total(n):\n    return sum(range(n))\n"
    )
    test = f"assert total({10**7}) == {10**7 * (10**7 - 1) // 2}"
    limits = Limits(call_cpu_time=4.0)
    generous = Referee(sandbox, RefereeConfig(limits=limits, reference_share=1.0))
    careful = Referee(sandbox, RefereeConfig(limits=limits, reference_share=0.01))
    rounds = [Round(heavy, heavy.reference, [[test]])]
    assert generous.judge(rounds)[0].suites[0].tests[0].status == "kept"
    found = careful.judge(rounds)[0].suites[0].tests[0]
    assert found.status == "invalid"
    assert "takes too long on the reference" in found.reason


# Programs


@pytest.mark.parametrize(
    "body",
    [
        "class Yes:\n    def __eq__(self, other): return True\n    def __bool__(self): return True\n"
        "def inc(n):\n    return Yes()\n",
        "class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def inc(n):\n    return Yes(7)\n",
        "class Yes(int): pass\ndef inc(n):\n    return Yes(n + 1)\n",
        "class Yes(float): pass\ndef inc(n):\n    return Yes(n + 1)\n",
        "class Yes(dict):\n    def __eq__(self, other): return True\ndef inc(n):\n    return [Yes()]\n",
        "class Meta(type):\n    def __eq__(self, other): return True\n    __hash__ = type.__hash__\n"
        "class Yes(metaclass=Meta): pass\ndef inc(n):\n    return Yes\n",
        "class Lie:\n    @property\n    def __class__(self): return int\n    def __index__(self): return 2\n"
        "    __int__ = __index__\ndef inc(n):\n    return Lie()\n",
        "import unittest.mock\ndef inc(n):\n    return unittest.mock.ANY\n",
        "import numpy\ndef inc(n):\n    return numpy.array([n + 1])\n",
        "import numpy\ndef inc(n):\n    return numpy.float64('nan')\n",
        "import decimal\ndef inc(n):\n    return decimal.Decimal(n + 1)\n",
        "import decimal\ndef inc(n):\n    return decimal.Decimal('sNaN')\n",
        "import fractions\ndef inc(n):\n    return fractions.Fraction(n + 1)\n",
        "def inc(n):\n    return [n + 1]\n",
        "def inc(n):\n    return str(n + 1)\n",
        "def inc(n):\n    return [0] * 7 * 10 ** 6\n",
        "def inc(n):\n    return 'x' * 10 ** 7\n",
        "def inc(n):\n    return 'x' * 10 ** 9\n",
        "def inc(n):\n    return 10 ** 10 ** 5\n",
        "def inc(n):\n    return {k * (2 ** 61 - 1) for k in range(1000)}\n",
        "def inc(n):\n    x = []\n    x.append(x)\n    return x\n",
        "def inc(n):\n    x = {}\n    x[1] = x\n    return x\n",
        "def inc(n):\n    x = []\n    for _ in range(10 ** 5): x = [x]\n    return x\n",
        "def inc(n):\n    x = []\n    for _ in range(60): x = [x, x]\n    return x\n",
        "def inc(n):\n    yield n + 1\n",
        "async def inc(n):\n    return n + 1\n",
        "inc = 3\n",
        "class inc:\n    def __init__(self, n): self.n = n\n    def __eq__(self, other): return True\n",
        "def inc(n):\n    raise AssertionError\n",
        "class E(BaseException):\n    def __str__(self): raise self\ndef inc(n):\n    raise E\n",
        "class E(Exception):\n    def __str__(self): return 'x' * 10 ** 8\ndef inc(n):\n    raise E\n",
        "def inc(n):\n    raise KeyError('\\ud800\\x1b[2J\\n')\n",
        "def inc(n):\n    raise SystemExit(0)\n",
        "def inc(n):\n    raise KeyboardInterrupt\n",
        "def inc(n):\n    return inc(n)\n",
        "import os\ndef inc(n):\n    print('PASS'); os._exit(0)\n",
        "import os\ndef inc(n):\n    os.kill(os.getpid(), 9)\n",
        "import ctypes\ndef inc(n):\n    ctypes.string_at(0)\n",
        "import sys\ndef inc(n):\n    for f in sys._current_frames().values():\n"
        "        while f:\n            for v in list(f.f_locals.values()):\n"
        "                if v == n + 1: return 'found'\n            f = f.f_back\n",
        "def inc(n, k=[]):\n    k.append(1)\n    return n + 1 if len(k) > 10 ** 6 else k\n",
    ],
)  # fmt: skip
def test_a_program_cannot_win_by_cheating(referee, body):
    tests = ["assert inc(1) == 2", "assert inc(0) == 1"]
    started = time.monotonic()
    verdict = judge(referee, body, tests)
    assert not any(test.passed for test in verdict.suites[0].tests)
    assert verdict.failed == tuple(tests)
    assert verdict.code_reward == 0
    assert all(len(test.message) <= 500 for test in verdict.suites[0].tests)
    assert all(test.message.isprintable() for test in verdict.suites[0].tests)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "body",
    [
        "import numpy\ndef inc(n):\n    return numpy.int64(n + 1)\n",
        "import numpy\ndef inc(n):\n    return numpy.array(n + 1)\n",
        "import numpy\ndef inc(n):\n    return numpy.float32(n + 1)\n",
        "def inc(n):\n    return float(n + 1)\n",
        "def inc(n):\n    return n + 1 + 0j\n",
        "def inc(n):\n    return True if n == 0 else n + 1\n",
        "def inc(n):\n    print('x' * 10 ** 7)\n    return n + 1\n",
        "import sys\ndef inc(n):\n    sys.stdout = sys.stderr = None\n    return n + 1\n",
    ],
)  # fmt: skip
def test_equal_values_of_another_kind_are_right(referee, body):
    verdict = judge(referee, body, ["assert inc(1) == 2", "assert inc(0) == 1"])
    assert (verdict.failed, verdict.code_reward) == ((), 1.0)


# Time


SLOW = [f"assert f({n}) == {n % 7}" for n in range(101, 117)]
FAST = [f"assert f({n}) == {n % 7}" for n in range(8)]


def test_a_suite_of_slow_calls_costs_few_seconds(sandbox: Sandbox) -> None:
    mod = of("n % 7")
    sleeps = "import time\ndef f(n):\n    if n > 100: time.sleep(100)\n    return n % 7"
    limits = Limits(call_cpu_time=0.2)
    referee = Referee(sandbox, RefereeConfig(limits=limits))
    started = time.monotonic()
    both = [*SLOW[3:5], *FAST, "assert f(9) == 2"]
    [verdict] = referee.judge([Round(mod, sleeps, [SLOW, FAST, both], FAST[:3])])
    assert (
        time.monotonic() - started < 15
    )  # for each suite 16 calls of 0.08 s and two of 0.4 s, on a busy machine
    slow, fast, mixed = verdict.suites
    assert [test.outcome for test in slow.tests] == [Outcome.TIMEOUT] * 8 + [None] * 8
    assert slow.outcome.failed == (True,) * 8
    assert slow.outcome.unpaid == (False,) * 2 + (True,) * 6
    assert slow.outcome.invalid == 0
    assert [test.outcome for test in fast.tests] == [Outcome.PASS] * 8
    assert (mixed.outcome.failed, mixed.outcome.unpaid) == ((True,) * 2 + (False,) * 6, ())
    assert [test.passed for test in verdict.history] == [True] * 3
    assert fast.rewards.code == 1.0


def test_a_suite_of_calls_that_are_slow_on_the_reference_costs_few_seconds(sandbox):
    code = "import time\ndef f(n):\n    if n > 100: time.sleep(100)\n    return n % 7\n"
    referee = Referee(sandbox, RefereeConfig(limits=Limits(call_cpu_time=0.8)))
    started = time.monotonic()
    [verdict] = referee.judge([Round(of(code), "def f(n): return n % 7", [SLOW, FAST])])
    assert time.monotonic() - started < 15  # four calls of 0.4 s in each of four processes
    slow, fast = verdict.suites
    assert slow.outcome == SuiteOutcome(True, (), MOST_SLOW, 0, 0)
    assert [test.status for test in slow.tests[MOST_SLOW:]] == ["not made"] * (16 - MOST_SLOW)
    assert [test.outcome for test in fast.tests] == [Outcome.PASS] * 8
    started = time.monotonic()
    again = referee.judge([Round(of(code), "def f(n): return n % 7", [SLOW, FAST])])[0]
    assert again.suites == verdict.suites
    assert time.monotonic() - started < 2  # it is remembered


# What is sent where


def test_no_process_that_runs_a_program_sees_an_expected_value(sandbox, monkeypatch):
    sent: list[bytes] = []
    send = Supervised.send

    def spy(self: Supervised, *payloads: bytes) -> None:
        sent.extend(payloads)
        send(self, *payloads)

    monkeypatch.setattr(Supervised, "send", spy)
    code = "def f(n):\n    return chr(110) + 'eedle' + '-' * 3 + str(n)\n"
    tests = ["assert f(1) == 'needle---1'", "assert f(2) == 'needle---0'"]
    program = "def f(n):\n    return 'x'\n"
    verdict = judge(Referee(sandbox), program, [*tests, "assert f(3) == 'y'"], of(code))
    assert len(verdict.failed) == 3
    assert "needle---2" in verdict.failed[1]
    jobs = [marshal.loads(job) for job in sent if job]  # and that nothing more will come
    assert {job[0] for job in jobs} == {program, code}
    assert not any(b"needle" in job for job in sent)
    for _, entry_point, names, calls, *_ in jobs:
        assert "f" in (entry_point, *(names or ()))
        assert [marshal.loads(call) for call in calls] == [([n], {}) for n in (1, 2, 3)]


class Counting(Sandbox):
    """A sandbox that remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__(workers=2)
        self.asked: list[tuple[str, int, int]] = []

    def submit(self, method: Any, /, *arguments: Any, **options: Any) -> Any:
        if method == self.run_calls:
            code, _, calls = arguments
            self.asked.append((code, len(calls), options.get("hash_seed", 0)))
        return super().submit(method, *arguments, **options)


def test_with_reuse_each_program_runs_once_and_each_call_is_asked_once():
    suites = [
        ["assert inc(7) == 8", "assert inc(1) == 2", "assert inc(n=1) == 2"],
        ["assert inc(7) == 9", "assert inc(7) < 9"],
    ]
    reference = "def inc(n):\n    return n + 1  # which was never asked\n"
    problem = Problem("inc", "def inc(n):\n    ...", "inc", reference)
    with Counting() as sandbox:
        referee = Referee(sandbox, RefereeConfig(reuse_programs=True))
        rounds = [
            Round(problem, code, suites, ["assert inc(3) == 4"]) for code in (WRONG, RIGHT, WRONG)
        ]
        first = referee.judge(rounds)
        seeds = [(reference, 3, seed) for seed in range(2)]
        assert sandbox.asked == [*seeds, (WRONG, 3, 0), (RIGHT, 3, 0)]
        assert (referee.counters.programs, referee.counters.tests) == (2, 6)
        del sandbox.asked[:]
        assert [each.suites for each in referee.judge(rounds)] == [each.suites for each in first]
        assert sandbox.asked == []
        more = [
            Round(problem, code, [["assert inc(8) == 9", "assert inc(7) == 8"]])
            for code in (WRONG, RIGHT)
        ]
        assert [each.failed for each in referee.judge(more)] == [
            ("assert inc(8) == 9", "assert inc(7) == 8"),
            (),
        ]
        seeds = [(reference, 1, seed) for seed in range(2)]
        assert sandbox.asked == [*seeds, (WRONG, 1, 0), (RIGHT, 1, 0)]


def test_without_reuse_programs_are_run_again():
    """What a program answers may depend on what it was asked before."""
    counts = "k = []\ndef inc(n):\n    k.append(n)\n    return n + 1 if len(k) < 3 else 0\n"
    chance = "import random\ndef inc(n):\n    return n + random.choice([1, 1])\n"
    broken = "def inc(n) return n\n"
    tests = ["assert inc(1) == 2", "assert inc(2) == 3"]
    codes = (counts, chance, RIGHT, broken)
    with Counting() as sandbox:
        referee = Referee(sandbox)
        rounds = [Round(INC, code, [tests]) for code in codes]
        first = referee.judge(rounds)
        del sandbox.asked[:]
        assert [each.suites for each in referee.judge(rounds)] == [each.suites for each in first]
        assert [code for code, *_ in sandbox.asked] == list(codes)
        more = [Round(INC, counts, [[*tests, "assert inc(3) == 4"]])]
        assert referee.judge(more)[0].failed == ("assert inc(3) == 4",)


def test_what_is_remembered_decides_nothing_about_limits():
    """A call that no suite would have made is not known because an earlier batch made it."""
    loops = "def inc(n):\n    while n > 5: pass\n    return n + 1\n"
    tests = [f"assert inc({n}) == {n + 1}" for n in (6, 7, 8, 9)]
    config = RefereeConfig(limits=Limits(call_cpu_time=0.05), reuse_programs=True)
    with Sandbox(workers=1) as sandbox:
        fresh = Referee(sandbox, config).judge([Round(INC, loops, [tests])])
        referee = Referee(sandbox, config)
        for some in (tests[2:], tests[:1], tests):
            found = referee.judge([Round(INC, loops, [some])])
        assert [each.suites for each in found] == [each.suites for each in fresh]
        assert found[0].suites[0].outcome.unpaid == (False,) * 2 + (True,) * 2


class Failing(Sandbox):
    """A sandbox whose machine is out of order, for some of its jobs."""

    def __init__(self, broken: str) -> None:
        super().__init__(workers=1)
        self.broken = broken

    def run_calls(self, code: str, name: str, calls: Any, **options: Any) -> Any:
        if code != self.broken:
            return super().run_calls(code, name, calls, **options)
        raise InfraError("no memory")


@pytest.mark.parametrize("broken", [INC.reference, WRONG])
def test_a_failure_of_the_sandbox_is_no_verdict_and_is_forgotten(broken):
    rounds = [Round(INC, code, [["assert inc(7) == 8"]]) for code in (RIGHT, WRONG)]
    with Failing(broken) as sandbox:
        referee = Referee(sandbox)
        for _ in range(2):
            with pytest.raises(InfraError, match="no memory"):
                referee.judge(rounds)
        assert referee.counters.programs == 0
        sandbox.broken = ""
        assert [verdict.failed for verdict in referee.judge(rounds)] == [
            (),
            ("assert inc(7) == 8",),
        ]


def test_a_reader_that_fails_is_no_verdict_and_is_forgotten(monkeypatch):
    problem = Problem("new", "def unread(n):", "unread", "def unread(n): return n")
    with Sandbox(workers=1) as sandbox:
        referee = Referee(sandbox)
        rounds = [Round(problem, problem.reference, [["assert unread(7) == 7"]])]

        def fail(*_: object) -> object:
            raise InfraError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(sandbox, "analyse", fail)
            with pytest.raises(InfraError, match="killed"):
                referee.judge(rounds)
        assert referee.judge(rounds)[0].code_reward == 1.0
