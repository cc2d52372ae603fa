"""The judge of the game: which tests count, what breaks a program, what both players are paid.

For a batch of rounds, the referee asks the references about all distinct tests (`codea1_env.reference`
remembers the answers), runs every distinct program once on the union of the tests that attack it, and pays
(`codea1_env.rewards`). Failures of the sandbox itself are raised and never become a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

from codea1_env.problems import Problem
from codea1_env.reference import (
    BrokenReferenceError,
    Reference,
    Ruling,
    Subject,
    WrongOracle,
    gather,
    without_addresses,
)
from codea1_env.responses import Program, Suite
from codea1_env.rewards import RewardConfig, SuiteOutcome, program_reward, suite_rewards
from codea1_env.sandbox import InfraError, Job, Limits, Outcome, Sandbox, TestResult
from codea1_env.verdicts import Counters, Round, SuiteVerdict, TestVerdict, Verdict

__all__ = [
    "BrokenReferenceError",
    "Counters",
    "Referee",
    "RefereeConfig",
    "Round",
    "SuiteVerdict",
    "TestVerdict",
    "Verdict",
]


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
    limits: Limits | None = None
    """What programs may use; None for the limits of the sandbox. The limits of a run are raised to those of
    all its tests together: that one test takes long must not fail a program on those beside it."""
    reference_share: float = 0.25
    """Share of the time of a call that the reference may use: a test that needs more does not count, because
    a program as good as the reference could time out on it by chance."""
    max_suite_tests: int = 64
    """Tests of one suite that are looked at; those after them are invalid. Bounds what a suite can cost."""

    def __post_init__(self) -> None:
        if self.wrong_oracle not in get_args(WrongOracle):
            raise ValueError(
                f"Expect RefereeConfig.wrong_oracle to be one of {', '.join(get_args(WrongOracle))}, "
                f"actually: {self.wrong_oracle!r}"
            )
        if not isinstance(self.reference_share, (int, float)) or not 0 < self.reference_share <= 1:
            raise ValueError(
                f"Expect RefereeConfig.reference_share to be above 0 and at most 1, "
                f"actually: {self.reference_share!r}"
            )
        if not isinstance(self.max_suite_tests, int) or self.max_suite_tests < 1:
            raise ValueError(
                f"Expect RefereeConfig.max_suite_tests to be a positive integer, "
                f"actually: {self.max_suite_tests!r}"
            )


class _Attack(NamedTuple):
    """A program and the problem that it is for."""

    subject: Subject
    code: str


class Referee:
    r"""Judges rounds of the game.

    Args:
        sandbox: Where references, programs and tests run.
        config: How rounds are judged.

    Example:
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.sandbox import Sandbox
        >>> problem = Problem("inc", "def inc(n):", "inc", "def inc(n):\n    return n + 1")
        >>> suite = ["assert inc(1) == 2", "assert inc(-1) == 7", "assert 1 == 1"]
        >>> with Sandbox() as sandbox:
        ...     [verdict] = Referee(sandbox).judge([Round(problem, "def inc(n): return 2", [suite])])
        >>> for test in verdict.suites[0].tests:
        ...     print(test.status, test.outcome and test.outcome.value, test.text)
        kept pass assert inc(1) == 2
        corrected fail assert inc(-1) == 0
        invalid None assert 1 == 1
    """

    def __init__(self, sandbox: Sandbox, config: RefereeConfig | None = None) -> None:
        self.sandbox = sandbox
        self.config = RefereeConfig() if config is None else config
        self.counters = Counters()
        self._reference = Reference(
            sandbox, self.config.wrong_oracle, self.config.limits, self.config.reference_share
        )

    def judge(self, rounds: Sequence[Round]) -> list[Verdict]:
        """Judges a batch. The same rounds give the same verdicts, however they are batched.

        Returns:
            One verdict per round, in order.

        Raises:
            BrokenReferenceError: The reference of a problem does not run: an error in the data.
            InfraError: The sandbox failed, so that there is no verdict.
        """
        wanted: dict[Subject, list[str]] = {}
        for each in rounds:
            tests = wanted.setdefault(Subject.of(each.problem), [])
            tests.extend(test for suite in each.suites for test in self._tests(suite))
            tests.extend(each.history)
        rulings = self._reference.rule(wanted)
        results = self._run(rounds, rulings)
        failed: dict[Subject, list[str]] = {}
        for (subject, _), (_, by_test) in results.items():
            broken = (test for test, result in by_test.items() if not result.passed)
            failed.setdefault(subject, []).extend(broken)
        if self._reference.confirm(failed):
            rulings = self._reference.rule(wanted)
        return [
            self._verdict(each, rulings[Subject.of(each.problem)], *results[_attack(each)])
            for each in rounds
        ]

    def references_run(self, problems: Sequence[Problem]) -> list[bool]:
        """Whether the reference of each problem runs and defines its entry point.

        Those of the data do; ask where something else stands in for them.
        """
        return self._reference.loads([Subject.of(problem) for problem in problems])

    def corrected(self, suites: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[str]]:
        """Tests as they attack: with the reference's value where they predict another one.

        Args:
            suites: Problems whose reference runs, each with tests.

        Returns:
            The texts of each suite, in order; a test that is invalid stays as it is.
        """
        subjects = [Subject.of(problem) for problem, _ in suites]
        wanted: dict[Subject, list[str]] = {}
        for subject, (_, tests) in zip(subjects, suites, strict=True):
            wanted.setdefault(subject, []).extend(tests)
        rulings = self._reference.rule(wanted)
        return [
            [rulings[subject][test].text for test in tests]
            for subject, (_, tests) in zip(subjects, suites, strict=True)
        ]

    def _run(
        self, rounds: Sequence[Round], rulings: dict[Subject, dict[str, Ruling]]
    ) -> dict[_Attack, tuple[TestResult, dict[str, TestResult]]]:
        """Runs each distinct program once, on all tests that any round has for it."""
        attacks: dict[_Attack, dict[str, None]] = {}
        results: dict[_Attack, tuple[TestResult, dict[str, TestResult]]] = {}
        for each in rounds:
            attack = _attack(each)
            ruled = rulings[attack.subject]
            if isinstance(each.code, Program) and each.code.problem is not None:
                results[attack] = (TestResult(Outcome.SYNTAX_ERROR, each.code.problem), {})
                continue
            tests = attacks.setdefault(attack, {})
            for test in (test for suite in each.suites for test in self._tests(suite)):
                if ruled[test].status != "invalid":
                    tests[ruled[test].text] = None
            tests.update((test, None) for test in each.history if ruled[test].status == "kept")
        limits = self.sandbox.limits if self.config.limits is None else self.config.limits
        jobs = [
            self.sandbox.submit(
                Job(code, tuple(tests), subject.entry_point, limits.with_room_for(len(tests)))
            )
            for (subject, code), tests in attacks.items()
        ]
        for (attack, tests), result in zip(attacks.items(), gather(jobs), strict=True):
            for each_result in (result.load, *result.tests):
                if each_result.outcome is Outcome.INFRA_ERROR:
                    raise InfraError(each_result.message)
            self.counters.add(result)
            results[attack] = (result.load, dict(zip(tests, result.tests, strict=True)))
        return results

    def _verdict(
        self,
        each: Round,
        rulings: dict[str, Ruling],
        load: TestResult,
        results: dict[str, TestResult],
    ) -> Verdict:
        replayed = list(dict.fromkeys(each.history))
        fresh = [test for test in replayed if rulings[test].status == "kept"]
        history = tuple(
            _judged(TestVerdict(test, "kept"), results.get(test, load)) for test in fresh
        )
        suites = []
        for suite in each.suites:
            tests = tuple(
                test if test.status == "invalid" else _judged(test, results.get(test.text, load))
                for test in self._sorted_out(suite, rulings)
            )
            dropped = suite.dropped if isinstance(suite, Suite) else ()
            outcome = SuiteOutcome(
                code_executes=load.passed,
                failed=tuple(test.broke for test in tests if test.status != "invalid"),
                invalid=sum(test.status != "kept" for test in tests)
                + sum(item.invalid for item in dropped),
                history_passed=sum(not test.broke for test in history),
                history_total=len(history),
                nonprintable_ratio=suite.nonprintable_ratio if isinstance(suite, Suite) else 0.0,
            )
            suites.append(SuiteVerdict(tests, outcome, suite_rewards(outcome, self.config.rewards)))
        return Verdict(
            task_id=each.problem.task_id,
            code_executes=load.passed,
            load=replace(load, message=without_addresses(load.message)),
            code_reward=program_reward(suite.rewards for suite in suites),
            suites=tuple(suites),
            history=history,
            stale=tuple(test for test in replayed if rulings[test].status != "kept"),
        )

    def _tests(self, suite: Suite | Sequence[str]) -> Sequence[str]:
        return _texts(suite)[: self.config.max_suite_tests]

    def _sorted_out(
        self, suite: Suite | Sequence[str], rulings: dict[str, Ruling]
    ) -> list[TestVerdict]:
        """The tests of a suite with their rulings. Of tests that say the same, one is kept.

        A test that is right as written goes before one that became the same by correction.
        """
        tests = self._tests(suite)
        verdicts: dict[int, TestVerdict] = {}
        kept: dict[str, int] = {}
        for wanted in ("kept", "corrected", "invalid"):
            for number, test in enumerate(tests):
                ruling = rulings[test]
                if ruling.status != wanted:
                    continue
                if wanted == "invalid":
                    verdicts[number] = TestVerdict(test, "invalid", ruling.reason)
                elif ruling.key in kept:
                    same = f"says the same as test {kept[ruling.key] + 1}"
                    reason = f"{ruling.reason}; {same}" if ruling.reason else same
                    verdicts[number] = TestVerdict(test, "invalid", reason)
                else:
                    kept[ruling.key] = number
                    verdicts[number] = TestVerdict(ruling.text, ruling.status, ruling.reason)
        reason = f"comes after the first {self.config.max_suite_tests} tests"
        late = [TestVerdict(test, "invalid", reason) for test in _texts(suite)[len(tests) :]]
        return [verdicts[number] for number in range(len(tests))] + late


def _texts(suite: Suite | Sequence[str]) -> Sequence[str]:
    return suite.tests if isinstance(suite, Suite) else suite


def _attack(each: Round) -> _Attack:
    code = each.code.code if isinstance(each.code, Program) else each.code
    return _Attack(Subject.of(each.problem), code)


def _judged(test: TestVerdict, result: TestResult) -> TestVerdict:
    message = without_addresses(result.message)
    return TestVerdict(test.text, test.status, test.reason, result.outcome, message)
