"""A problem that adds one, programs for it, and how they are judged: for the tests of the referee."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import Program, Suite
from codea1_env.rewards import RewardConfig

INC = Problem("inc", "def inc(n):\n    ...", "inc", "def inc(n):\n    return n + 1\n")
TYPED = Problem(
    "typed", "def inc(n: int) -> int:\n    ...", "inc", "def inc(n):\n    return n + 1\n"
)
RIGHT = "def inc(n):\n    return 1 + n\n"
WRONG = "def inc(n):\n    return n + 1 if n < 5 else n + 2\n"
PAPER = RefereeConfig(RewardConfig(strict_paper=True))


def judge(
    referee: Referee,
    code: str | Program,
    tests: Sequence[str] | Suite,
    history: Sequence[str] = (),
    problem: Problem = INC,
) -> Verdict:
    [verdict] = referee.judge([Round(problem, code, [tests], history)])
    return verdict


def statuses(verdict: Verdict) -> list[str]:
    return [test.status for test in verdict.suites[0].tests]
