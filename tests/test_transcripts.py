"""What programs do on the calls of a suite, and what that pays: worked out by hand, by our rule and by the paper's.

The reference squares, K is 8 and alpha 0.5. So a suite of right predictions has `v` tests, and by hand

    program = passed / v, suite = 0.5 * v / 8 + 0.5 * failures that pay / 8;

with the book, the program's reward is the mean of both shares, and failures / 8 becomes (failures / 8 - broken / replayed + 1) / 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from codea1_env import CODER, TESTER, parallel_env
from codea1_env.judging.feedback import feedback, shown_tests
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import Program
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Limits, Sandbox

PROBLEM = Problem(
    "sq", "def sq(n: int) -> int: ...", "sq", "def sq(n: int) -> int:\n    return n * n\n"
)
LIMITS = Limits(call_cpu_time=0.15, call_wall_time=0.4)
ENDS = {
    "wrong": "return -1",
    "raises": "raise ValueError",
    "exits": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit()",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "memory": "return [0] * 10**12",
    "no data": "return sq",
    "too large": "return 'x' * 10**6",
    "loops": "while True: pass",
    "sleeps": "import time; time.sleep(60)",
}


class Paid(NamedTuple):
    """Rewards of the program and of the suite, and the tests that the book remembers."""

    code: float | None
    test: float
    book: int


def squares(*numbers: int) -> list[str]:
    return [f"assert sq({n}) == {n * n}" for n in numbers]


ALL = squares(*range(1, 9))


def paid(
    sandbox: Sandbox, code: str, suite: list[str], history: Sequence[str] = (), *, paper: bool
) -> Paid:
    config = RefereeConfig(RewardConfig(strict_paper=paper), limits=LIMITS)
    [verdict] = Referee(sandbox, config).judge([Round(PROBLEM, code, [suite], history)])
    return of(verdict)


def of(verdict: Verdict, number: int = 0) -> Paid:
    suite = verdict.suites[number]
    assert suite.rewards.test is not None
    return Paid(suite.rewards.code, suite.rewards.test, len(suite.failed))


def program(condition: str, end: str, head: str = "") -> str:
    return f"{head}def sq(n):\n    if {condition}:\n        {ENDS[end]}\n    return n * n\n"


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_an_end_at_six_of_eight_calls(end: str, sandbox: Sandbox) -> None:
    """Two are passed. However it fails the others, it earns no more than by a wrong value."""
    code = program("n > 2", end)
    ours = Paid(0.25, 0.5 + 0.5 * 6 / 8, 6)
    if end in ("loops", "sleeps"):  # a run affords two whole calls
        ours = Paid(0.25, 0.5 + 0.5 * 2 / 8, 2)
    assert paid(sandbox, code, ALL, paper=False) == ours
    assert paid(sandbox, code, ALL, paper=True) == Paid(0.25, 0.5 + 0.5 * 6 / 8, 6)


@pytest.mark.parametrize(
    ("end", "paper"),
    [
        ("wrong", Paid(7 / 8, 0.5 + 0.5 * 1 / 8, 1)),
        ("raises", Paid(7 / 8, 0.5 + 0.5 * 1 / 8, 1)),
        ("exits", Paid(2 / 8, 0.5 + 0.5 * 6 / 8, 6)),  # its job has no other results
        ("signal", Paid(2 / 8, 0.5 + 0.5 * 6 / 8, 6)),
        ("loops", Paid(2 / 8, 0.5 + 0.5 * 6 / 8, 6)),
    ],
)
def test_an_end_at_one_of_eight_calls(end: str, paper: Paid, sandbox: Sandbox) -> None:
    code = program("n == 3", end)
    assert paid(sandbox, code, ALL, paper=False) == Paid(7 / 8, 0.5 + 0.5 * 1 / 8, 1)
    assert paid(sandbox, code, ALL, paper=True) == paper


@pytest.mark.parametrize("end", ["wrong", "exits"])
def test_with_the_book(end: str, sandbox: Sandbox) -> None:
    """Of eight replayed tests four are passed; a replayed test that is passed leaves the book."""
    history = squares(-1, -2, -3, -4, 9, 10, 11, 12)
    code = program("n > 4", end)
    ours = Paid((4 / 8 + 4 / 8) / 2, 0.5 + 0.5 * (4 / 8 - 4 / 8 + 1) / 2, 4)
    assert paid(sandbox, code, ALL, history, paper=False) == ours
    assert paid(sandbox, code, ALL, history, paper=True) == ours


def test_what_does_not_load_passes_nothing_and_pays_nobody(sandbox: Sandbox) -> None:
    for code in ("def sq(n) return n", "import os\nos._exit(0)\ndef sq(n): return n * n"):
        for paper in (False, True):
            assert paid(sandbox, code, ALL, paper=paper) == Paid(0.0, 0.0, 8)


def test_padding(sandbox: Sandbox) -> None:
    """Eight tests that break, and 56 that do not. The reader takes 64 tests."""
    suite = squares(*range(1, 9), *range(11, 67))
    code = program("n < 9", "wrong")
    assert paid(sandbox, code, suite, paper=False) == Paid(0.0, 1.0, 8)
    assert paid(sandbox, code, suite, paper=True) == Paid(56 / 64, 1.0, 8)


def test_few_wrong_and_repeated_tests(sandbox: Sandbox) -> None:
    """Two right predictions, one of them twice; one wrong, which attacks with the right value."""
    suite = [*squares(1, 2, 1), "assert sq(3) == 10"]
    code = program("n > 1", "exits")
    validity = min(3 / 8, 1 - 1 / 8)
    assert paid(sandbox, code, suite, paper=False) == Paid(1 / 3, 0.5 * validity + 0.5 * 2 / 8, 2)


def test_no_test_scores_nothing(sandbox: Sandbox) -> None:
    code = program("n > 1", "wrong")
    assert paid(sandbox, code, ["assert sq(1) > 0"], paper=False) == Paid(None, 0.0, 0)
    assert paid(sandbox, code, ["assert sq(1) > 0"], paper=True) == Paid(0.0, 0.0, 0)


# A run depends on nothing else

STATE = "seen = []\ndef sq(n):\n    seen.append(n)\n    return n * n if len(seen) < 4 else 0\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", [STATE, program("n > 4", "exits"), program("n in (3, 5)", "loops")]
)
def test_a_suite_is_paid_the_same_alone_and_beside_others(code: str, sandbox: Sandbox) -> None:
    suites = [ALL, squares(5, 3, 9), squares(1), squares(2, 1, 7, 6, 5)]
    history = squares(6, 2, 1)
    referee = Referee(sandbox, RefereeConfig(limits=LIMITS))
    [together] = referee.judge([Round(PROBLEM, code, suites, history)])
    rounds = [Round(PROBLEM, code, [suite], history) for suite in suites]
    for number, alone in enumerate(referee.judge(rounds)):
        assert alone.history == together.history
        assert alone.suites[0] == together.suites[number]
        assert of(alone) == of(together, number)
    [turned] = referee.judge([Round(PROBLEM, code, suites[::-1], history)])
    assert turned.suites == together.suites[::-1]


@pytest.mark.slow
def test_a_program_that_loads_slowly_and_loops_pays_as_much_as_one_that_is_wrong_once(
    sandbox: Sandbox,
) -> None:
    head = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    for seconds in (0.02, 0.06, 0.12):
        code = program("n > 0", "loops", head.format(seconds))
        found = paid(sandbox, code, ALL, paper=False)
        assert found.code == 0.0
        assert found.book >= 2
        assert found.test >= 0.5 + 0.5 * 2 / 8


# Repair: to pass what was shown counts nothing for the next program


def test_a_table_of_what_was_shown_earns_nothing(sandbox: Sandbox) -> None:
    suite = "\n".join(squares(*range(2, 9)))
    env = parallel_env(problems=[PROBLEM], sandbox=sandbox, max_rounds=3)
    env.reset(seed=0)
    wrong = "def sq(n): return 0 if n else 0"
    earned, answer = [], wrong
    for _ in range(3):
        env.step({CODER: answer})
        seen, rewards, *_ = env.step({TESTER: suite})
        earned.append(rewards[CODER])
        shown = re.findall(r"assert sq\((.*)\) == (.*)", seen[CODER]["tests"])
        table = ", ".join(f"{call}: {value}" for call, value in shown)
        answer = f"def sq(n): return {{{table}}}.get(n, 0)"
        assert all(f"sq({call})" in seen[CODER]["feedback"] for call, _ in shown)
    assert earned == [0.0, 0.0, 0.0]


def test_what_was_shown_and_is_failed_again_counts(sandbox: Sandbox) -> None:
    """Otherwise to fail one test more would buy that the other no longer counts."""
    book = {
        1: 0 / 1,
        2: 1 / 2,
        4: 2 / 3,
    }  # of the tests that failed in round 1; without those shown and passed
    for number, first in ((1, "n == 1"), (2, "n in (1, 6)"), (4, "n in (1, 6, 7, 8)")):
        env = parallel_env(problems=[PROBLEM], sandbox=sandbox, max_rounds=2)
        env.reset(seed=0)
        rewards = []
        for condition in (first, "n == 1"):
            env.step({CODER: program(condition, "wrong")})
            rewards.append(env.step({TESTER: "\n".join(ALL)})[1][CODER])
        new = 6 / 7 if number == 4 else 7 / 8  # of four failed ones 6 is shown, too, and passed
        assert rewards == [1 - number / 8, pytest.approx((new + book[number]) / 2)]


@pytest.mark.parametrize(("failing", "shown"), [(1, 0), (2, 1), (3, 1), (7, 3)])
def test_half_of_the_failing_tests_are_shown(failing: int, shown: int, sandbox: Sandbox) -> None:
    config = RefereeConfig(limits=LIMITS)
    tests = squares(*range(1, failing + 1))
    [verdict] = Referee(sandbox, config).judge(
        [Round(PROBLEM, program("n > 0", "wrong"), [tests], squares(1))]
    )
    assert [test.text for test in shown_tests(verdict)] == tests[:shown]
    told = feedback(Program(""), verdict)
    assert [text in told for text in tests] == [number < shown for number in range(failing)]


# Programs that keep something


@pytest.mark.parametrize("end", ["wrong", "raises", "exits", "loops", "sleeps"])
@pytest.mark.parametrize("history", [(), squares(6, 2, 1)])
def test_a_fresh_process_does_not_undo_what_a_program_keeps(
    end: str, history: Sequence[str], sandbox: Sandbox
) -> None:
    """It is right at its first call only: an end at the others pays no more than a wrong value."""
    head = "seen = []\n"
    code = f"{head}def sq(n):\n    seen.append(n)\n    if len(seen) > 1:\n        {ENDS[end]}\n    return n * n\n"
    found = paid(sandbox, code, ALL, history, paper=False)
    assert found.code == pytest.approx(1 / 8 if not history else (1 / 8 + 1 / 3) / 2)
    assert found.book >= 1


SPOILT = """
import time
seen = []
def sq(n):
    if seen:
        return -1
    if n == 1:
        seen.append(n)
        {}
    return n * n
"""


@pytest.mark.parametrize("end", ["return -1", *ENDS.values(), "time.sleep(0.1); return n * n"])
def test_a_call_that_ends_does_not_undo_what_it_spoilt(end: str, sandbox: Sandbox) -> None:
    """Its first call spoils all others, and is right itself in the last case."""
    found = paid(sandbox, SPOILT.format(end), ALL, paper=False)
    right = 1 / 8 if end.endswith("n * n") else 0.0
    assert found.code == right
    assert found.book >= 1


def test_behind_an_end_what_is_wrong_is_paid(sandbox: Sandbox) -> None:
    code = "seen = []\n" + program("n == 3", "exits") + "    # seen\n"
    code = code.replace("return n * n", "return n * n if n < 7 else seen or -1")
    assert paid(sandbox, code, ALL, paper=False) == Paid(2 / 8, 0.5 + 0.5 * 3 / 8, 3)


@pytest.mark.parametrize(
    "slow",
    [
        f"time.sleep({1.6 * LIMITS.call_cpu_time})",
        f"end = time.process_time() + {0.8 * LIMITS.call_cpu_time}\n        while time.process_time() < end: pass",
    ],
)
def test_who_spends_the_time_on_right_calls_and_hangs_then_pays_one(
    slow: str, sandbox: Sandbox
) -> None:
    """Five calls are slow and right, three hang, and there is no time to make these again."""
    code = f"import time\ndef sq(n):\n    if n < 6:\n        {slow}\n    while n > 5: pass\n    return n * n\n"
    found = paid(sandbox, code, ALL, paper=False)
    assert found.book == 1
    assert found.code is not None
    assert 1 / 8 <= found.code <= 5 / 8


def test_programs_that_keep_something_are_not_shared_where_results_are_reused(
    sandbox: Sandbox,
) -> None:
    code = "seen = []\ndef sq(n):\n    seen.append(n)\n    return n * n if len(seen) < 4 else 0\n"
    config = RefereeConfig(limits=LIMITS, reuse_programs=True)
    first, second = ALL[:4], ALL[4:]
    [alone] = Referee(sandbox, config).judge([Round(PROBLEM, code, [second])])
    referee = Referee(sandbox, config)
    for suites in ([first, second], [second, first], [second]):
        [verdict] = referee.judge([Round(PROBLEM, code, suites)])
        assert verdict.suites[suites.index(second)] == alone.suites[0]
