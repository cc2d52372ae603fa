"""What the referee is asked, the rules that it judges by, and what it answers: plain values."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Program, Suite
from codea1_env.rewards import RewardConfig, SuiteOutcome, SuiteRewards
from codea1_env.sandbox import UNANSWERED, Limits, Outcome, TestResult
from codea1_env.sandbox.jobs import exact

NOT_MADE = "comes behind slow calls of the suite, and is slow itself"
"""Reason of a test that is not made, since the reference would take too long."""
SHOWN = "was shown to the coder with its value"
"""Reason of a test that a repaired program gets nothing for passing."""
BEHIND = "comes behind as many tests as count"
"""Reason of a test with which the suite has ended before."""
NOT_JUDGED = "the sandbox failed at it three times, while other jobs were judged"
"""Reason of a test of which nothing is known: its `outcome` is UNJUDGED."""
Status = Literal["kept", "corrected", "duplicate", "not made", "invalid"]


@dataclass(frozen=True)
class Round:
    """One program, the suites that attack it, and the tests replayed from the Mistake Book."""

    problem: Problem
    code: str | Program
    suites: Sequence[Suite | Sequence[str]]
    """Suites as `codea1_env.responses` finds them, or just texts, each with a test or some."""
    history: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", exact(self.code))
        for name, lists in (("suites", (self.suites, *self.suites)), ("history", (self.history,))):
            if any(isinstance(each, str) for each in lists):
                raise TypeError(f"Expect Round.{name} to be lists of tests, actually a str.")


class TestVerdict(NamedTuple):
    """What became of one test."""

    text: str
    """The test in the one form of its call, with the reference's value if it counts; an invalid one with its own."""
    status: Status
    """``"kept"``; ``"corrected"``: counts as invalid, but attacks with the reference's value; ``"duplicate"``: says
    again what another test of the suite says; ``"not made"``: the suite had ended, or nothing is known of its call. These
    two neither attack nor count. ``"invalid"``."""
    reason: str = ""
    """Why it is not kept as it was written; "" if it is."""
    outcome: Outcome | None = None
    """How it ended on the program; None if it was not run."""
    message: str = ""
    """What became of the call, in words."""
    call: str = ""
    """The call in its one form, which says which test it is; "" if it does not count."""
    fault: InvalidReason | None = None
    """Why it counts as invalid; None if it does not."""
    unpaid: bool = False
    """Whether the program gave no answer in the time that its run had: it has not passed, and nobody is paid for that."""

    @property
    def attacks(self) -> bool:
        """Whether its call is made on the program."""
        return self.status in ("kept", "corrected")

    @property
    def broke(self) -> bool:
        """Whether it counts, the program did not pass it, and that pays."""
        return self.attacks and not self.unpaid and self.outcome not in (None, Outcome.PASS)

    @property
    def passed(self) -> bool:
        """Whether it counts and the program passed it."""
        return self.attacks and self.outcome is Outcome.PASS


BEGAN_ANEW = TestResult(
    Outcome.EXITED,
    "a call before it ended the process, and what the program kept there is lost: what it passes behind that does not count",
)
"""Result of a call that a program passed in a fresh process, where it may keep something from call to call."""


def calls_of(tests: Iterable[TestVerdict]) -> tuple[str, ...]:
    """Return the calls of a run, in the order written."""
    return tuple([test.call for test in tests if test.call])


def on_program(test: TestVerdict, result: TestResult, paper: bool) -> TestVerdict:
    """Return a test that attacks with what came of it on the program."""
    if result.outcome is not Outcome.UNJUDGED:
        text, status, reason, _, _, call, fault, _ = test  # `_replace` takes twice as long
        unpaid = (result is UNANSWERED or result is BEGAN_ANEW) and not paper
        ended, message = result.outcome, result.message
        return TestVerdict(text, status, reason, ended, message, call, fault, unpaid)
    test = test._replace(outcome=result.outcome, message=result.message, call="")
    if test.status == "corrected":  # that it is wrong is known all the same
        return test._replace(status="invalid")
    return test._replace(status="not made", reason=NOT_JUDGED)


def without_score(test: TestVerdict) -> TestVerdict:
    """Return a passed test that the coder had seen with its value: a table of values would pass it."""
    status: Status = "invalid" if test.fault else "not made"
    return test._replace(status=status, reason=test.reason or SHOWN, call="", outcome=None)


TestVerdict.__test__ = False  # type: ignore[attr-defined] # pytest would collect a class of this name


@dataclass(frozen=True)
class SuiteVerdict:
    """What became of one suite."""

    tests: tuple[TestVerdict, ...]
    """In the order of the suite."""
    outcome: SuiteOutcome
    rewards: SuiteRewards

    @property
    def failed(self) -> tuple[str, ...]:
        """The tests that broke the program."""
        return tuple(test.text for test in self.tests if test.broke)


@dataclass(frozen=True)
class Verdict:
    """What became of one round."""

    task_id: str
    code_executes: bool
    """Whether the program runs to its end and defines the entry point."""
    load: TestResult
    """How running the program itself ended."""
    code_reward: float | None
    """The program's reward over all suites; None if no suite could score it."""
    suites: tuple[SuiteVerdict, ...]
    history: tuple[TestVerdict, ...]
    """The replayed tests whose calls were made."""
    stale: tuple[str, ...] = ()
    """Tests of the Mistake Book that were not replayed, because the reference does not pass them (any more)."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The tests of all suites that broke the program, with repetition: what the book remembers."""
        return tuple(text for suite in self.suites for text in suite.failed)

    @property
    def history_passed(self) -> tuple[str, ...]:
        """The replayed tests that the program passed."""
        return tuple(test.text for test in self.history if test.passed)

    @property
    def forgettable(self) -> tuple[str, ...]:
        """What the book may forget: the replayed tests that the program passed, and the stale ones.

        A test that the reference does not pass would otherwise keep its place among the most frequent ones.
        """
        return (*self.history_passed, *self.stale)


def never_passed(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the replayed tests that every program of a step failed. Those that do not run say nothing of them."""
    running = [verdict for verdict in verdicts if verdict.code_executes]
    history = [test for verdict in running for test in verdict.history]
    others = {test.text for test in history if not test.broke}
    return [text for text in dict.fromkeys(test.text for test in history) if text not in others]


@dataclass
class Counters:
    """What a referee has done since it was made."""

    programs: int = 0
    """Programs that were run."""
    tests: int = 0
    """Tests that were run on programs."""
    timeouts: int = 0
    """Tests that reached a time limit."""
    errors: int = 0
    """Tests that raised, crashed or broke another limit."""
    unjudged: int = 0
    """Tests at which the sandbox failed, while other jobs were judged: they pay nobody."""
    seconds: float = 0.0
    """CPU seconds of programs and their tests."""

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], seconds: float) -> Counters:
        """One program, with what became of its tests."""
        found = list(outcomes)
        timeouts, unjudged = found.count(Outcome.TIMEOUT), found.count(Outcome.UNJUDGED)
        known = found.count(Outcome.PASS) + found.count(Outcome.FAIL) + timeouts + unjudged
        return cls(1, len(found), timeouts, len(found) - known, unjudged, seconds)

    def __add__(self, other: Counters) -> Counters:
        return Counters(*map(operator.add, vars(self).values(), vars(other).values()))

    def __iadd__(self, other: Counters) -> Counters:
        vars(self).update(vars(self + other))
        return self

    def __sub__(self, other: Counters) -> Counters:
        return Counters(*map(operator.sub, vars(self).values(), vars(other).values()))


WrongOracle = Literal["correct", "drop"]
Domain = Literal["signature", "any"]

GAME_LIMITS = Limits(call_cpu_time=0.5)
"""Half a second for a call. Programs that loop are common while players learn, and each costs its whole time."""
FLOAT_TOLERANCE = 1e-6
"""EvalPlus's tolerance for floats."""


@dataclass(frozen=True)
class RefereeConfig:
    """How rounds are judged.

    Raises:
        ValueError: A field is outside its range.
    """

    rewards: RewardConfig = field(default_factory=RewardConfig)
    """How outcomes turn into rewards."""
    wrong_oracle: WrongOracle = "correct"
    """What becomes of a test that predicts another value than the reference returns. It counts as invalid in
    any case. ``"correct"``: its call still attacks, with the reference's value, as released. ``"drop"``: it
    does not, as drawn in the paper's figure."""
    domain: Domain | None = None
    """Which arguments a test may use. ``"signature"``: those that the problem's signature allows (its annotations, or
    else what its golden tests and examples show), so that what the prompt leaves open cannot fail a right program.
    ``"any"``: all, as released. None: ``"any"`` under ``rewards.strict_paper``, else ``"signature"``."""
    float_tolerance: float | None = None
    """Relative and absolute tolerance for floats; 0 compares exactly, as released. None: 0 under
    ``rewards.strict_paper``, else `FLOAT_TOLERANCE`."""
    limits: Limits | None = None
    """What one call of a program may use; None for the limits that the sandbox was given, or `GAME_LIMITS` where it was given
    none. Its wall-clock time is at most twice its CPU time: a call waits for nothing."""
    reference_share: float = 0.25
    """Share of the time of a call that the reference may use: a test that needs more does not count, because
    a program as good as the reference could time out on it by chance."""
    max_suite_tests: int = 64
    """Tests of one suite that are looked at; those after them are invalid. Bounds what a suite can cost. Of an answer no more
    than 64 are read; those after them are left out, and are not invalid."""
    reuse_programs: bool = False
    """Whether a program whose text shows that it keeps nothing is run on a call only once, and its reply is used in later
    batches. For players that choose among ready programs."""

    def __post_init__(self) -> None:
        paper = self.rewards.strict_paper
        if self.domain is None:
            object.__setattr__(self, "domain", "any" if paper else "signature")
        if self.float_tolerance is None:
            object.__setattr__(self, "float_tolerance", 0.0 if paper else FLOAT_TOLERANCE)
        for name, holds in (
            ("wrong_oracle", self.wrong_oracle in get_args(WrongOracle)),
            ("domain", self.domain in get_args(Domain)),
            ("float_tolerance", 0 <= self.tolerance < 1),
            ("reference_share", 0 < self.reference_share <= 1),
            ("max_suite_tests", self.max_suite_tests >= 1),
        ):
            if not holds:
                raise ValueError(f"RefereeConfig.{name} out of range: {getattr(self, name)!r}")

    @property
    def tolerance(self) -> float:
        """`float_tolerance`, which is never None once the object exists."""
        assert self.float_tolerance is not None
        return self.float_tolerance


Judged = tuple[list[Suite], Verdict]
"""The suites that attacked a program, and the verdict on it."""


class AttackAnswers(NamedTuple):
    """What testers answered to the programs of one problem."""

    problem: Problem
    programs: Sequence[Program]
    attacks: Sequence[str]
    """An equal share for each program."""
    history: Sequence[str]
    """Tests to replay."""


def by_problem(
    problems: Sequence[Problem],
    programs: Sequence[Program],
    attacks: Sequence[str],
    history: Mapping[str, Sequence[str]],
) -> list[AttackAnswers]:
    """Divide answers by their problem. Those to one problem stand together."""
    share = len(attacks) // max(1, len(programs))
    starts = [i for i, problem in enumerate(problems) if not i or problem != problems[i - 1]]
    return [
        AttackAnswers(
            problems[start],
            programs[start:end],
            attacks[start * share : end * share],
            history.get(problems[start].task_id, ()),
        )
        for start, end in itertools.pairwise([*starts, len(problems)])
    ]
