"""The judge of the game: which tests count, what breaks a program, what both players are paid.

Three steps, each done once for a batch of rounds: rule (the oracle says which tests are right), run (each distinct
program makes the calls of all tests that attack it), pay (`codea1_env.rewards`). Failures of the sandbox itself are
raised and never become a reward.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from codea1_env.judging.answers import (
    Judged,
    WrittenTests,
    by_problem,
    joined,
    judge_answers,
    key_of,
)
from codea1_env.judging.comparison import (
    MAX_REPLY,
    Returned,
    judge_reply,
    read_reply,
    same,
    without_addresses,
)
from codea1_env.judging.verdicts import (
    NOT_MADE,
    Counters,
    RefereeConfig,
    Round,
    SuiteVerdict,
    TestVerdict,
    Verdict,
)
from codea1_env.oracle import (
    COSTLY,
    MOST_TIMEOUTS,
    BrokenReferenceError,
    Oracle,
    Subject,
    Truth,
    gather,
    to_make,
)
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Program, Suite, Test
from codea1_env.rewards import SuiteOutcome, program_reward, suite_rewards
from codea1_env.sandbox import RETURNED, Outcome, Sandbox, TestResult

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

_SHOWN = 60
_MOST_RELATIVE = 1e-2  # of a test's own tolerance
# Twice the CPU time, not the five times of other jobs: a call neither prints nor waits for anything.
_WALL_FACTOR = 2
_LATE = TestResult(Outcome.TIMEOUT, NOT_MADE)
_COSTLY = frozenset({Outcome.TIMEOUT, Outcome.EXITED, Outcome.SIGNALLED, Outcome.FORBIDDEN})


class _Attack(NamedTuple):
    """A program and the problem that it is for."""

    subject: Subject
    code: str


class _Read(NamedTuple):
    """A round whose texts have been read."""

    attack: _Attack
    suites: list[Suite]
    history: list[Suite]


class _Results(NamedTuple):
    """How a program ran: loading it, and its verdict on each call, by the call's text."""

    load: TestResult
    calls: Mapping[str, TestResult]


class Referee:
    r"""Judges rounds of the game. Rounds of different problems do not depend on each other.

    Args:
        sandbox: Where references and programs run.
        config: How rounds are judged.

    Example:
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.sandbox import Sandbox
        >>> problem = Problem("inc", "def inc(n):", "inc", "def inc(n):\n    return n + 1")
        >>> suite = ["assert inc(1) == 2", "assert inc(-1) == 7", "assert inc(1 + 0) == 2"]
        >>> with Sandbox() as sandbox:
        ...     [verdict] = Referee(sandbox).judge([Round(problem, "def inc(n): return 2", [suite])])
        >>> for test in verdict.suites[0].tests:
        ...     print(test.status, test.outcome and test.outcome.value, test.text)
        kept pass assert inc(1) == 2
        corrected fail assert inc(-1) == 0
        duplicate None assert inc(1) == 2
    """

    def __init__(self, sandbox: Sandbox, config: RefereeConfig | None = None) -> None:
        self.sandbox = sandbox
        self.config = RefereeConfig() if config is None else config
        self.counters = Counters()
        self._counting = threading.Lock()
        limits = sandbox.limits if self.config.limits is None else self.config.limits
        self._limits = replace(
            limits,
            call_wall_time=min(limits.call_wall_time, _WALL_FACTOR * limits.call_cpu_time),
            # Longer ones would not be compared, and all replies to a program are held at once.
            result=min(limits.result, MAX_REPLY),
        )
        share = self.config.reference_share
        self._oracle = Oracle(
            sandbox,
            replace(
                self._limits,
                call_cpu_time=self._limits.call_cpu_time * share,
                call_wall_time=self._limits.call_wall_time * share,
            ),
        )
        self._texts = WrittenTests(sandbox)

    def judge(self, rounds: Sequence[Round]) -> list[Verdict]:
        """Judge a batch. The same rounds give the same verdicts, however they are batched.

        But for programs that remember earlier calls: all calls of a program in a batch are made in one process.

        Returns:
            One verdict per round, in order.

        Raises:
            BrokenReferenceError: The reference of a problem does not run: an error in the data.
            InfraError: The sandbox failed, so that there is no verdict.
        """
        read = self._read(rounds)
        wanted: dict[Subject, list[Sequence[Test]]] = {}
        for each in read:
            asked = wanted.setdefault(each.attack.subject, [])
            asked += [self._allowed(suite) for suite in (*each.suites, *each.history)]
        truths = self._oracle.ask(wanted)
        ruled = [self._rule(each, truths[each.attack.subject]) for each in read]
        results = self._run(rounds, read, ruled, truths)
        return [
            self._pay(*parts, results[parts[1].attack])
            for parts in zip(rounds, read, ruled, strict=True)
        ]

    def judge_answers(
        self,
        problems: Sequence[Problem],
        programs: Sequence[Program],
        attacks: Sequence[str],
        history: Mapping[str, Sequence[str]],
    ) -> list[Judged]:
        """Read and judge what testers answered.

        Args:
            problems: The problem of each program; those of one problem stand together.
            programs: The programs.
            attacks: The answers, an equal share for each program.
            history: Tests to replay, by the problem's id.

        Returns:
            For each program the suites that attacked it, and the verdict. Raises as `judge` does.
        """
        parts = by_problem(problems, programs, attacks, history)
        return judge_answers(parts, self.sandbox, self.judge)

    def references_run(self, problems: Sequence[Problem]) -> list[bool]:
        """Whether the reference of each problem runs and defines its entry point.

        Those of the data do; ask where something else stands in for them.
        """
        return self._oracle.loads([Subject.of(problem) for problem in problems])

    def corrected(self, suites: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[str]]:
        """Tests as they attack: with the reference's value where they predict another one.

        Args:
            suites: Problems whose reference runs, each with tests.

        Returns:
            The texts of each suite, in order; a text that is not one valid test stays as it is.
        """
        read = self._texts.read([(problem, text) for problem, texts in suites for text in texts])
        subjects = [Subject.of(problem) for problem, _ in suites]
        wanted: dict[Subject, list[Sequence[Test]]] = {}
        for subject, (problem, texts) in zip(subjects, suites, strict=True):
            found = (self._allowed(read[key_of(problem, text)]) for text in texts)
            wanted.setdefault(subject, []).extend(found)
        truths = self._oracle.ask(wanted)
        return [
            [
                self._as_it_attacks(text, read[key_of(problem, text)], truths[subject])
                for text in texts
            ]
            for subject, (problem, texts) in zip(subjects, suites, strict=True)
        ]

    def _as_it_attacks(self, text: str, read: Suite, truths: Mapping[str, Truth]) -> str:
        tests = self._sorted_out(read, truths)
        one = len(tests) == 1 and not read.dropped and tests[0].attacks
        return tests[0].text if one else text

    # Read

    def _read(self, rounds: Sequence[Round]) -> list[_Read]:
        """Read what came as text, and find out which program each round is about."""
        texts = self._texts.read(
            [
                (each.problem, text)
                for each in rounds
                for texts in (*each.suites, each.history)
                if not isinstance(texts, Suite)
                for text in texts
            ]
        )
        subjects: dict[int, Subject] = {}
        read = []
        for each in rounds:
            problem = each.problem
            subject = subjects.get(id(problem))
            if subject is None:
                subject = subjects[id(problem)] = Subject.of(problem)
            suites = [
                suite
                if isinstance(suite, Suite)
                else joined([texts[key_of(problem, text)] for text in suite])
                for suite in each.suites
            ]
            history = [texts[key_of(problem, text)] for text in dict.fromkeys(each.history)]
            code = each.code.code if isinstance(each.code, Program) else each.code
            read.append(_Read(_Attack(subject, code), suites, history))
        return read

    def _allowed(self, suite: Suite) -> list[Test]:
        """The tests of a suite whose calls the oracle is asked about."""
        tests = suite.tests[: self.config.max_suite_tests]
        return [test for test in tests if test.fault is None or self._overlooked(test)]

    def _overlooked(self, test: Test) -> bool:
        return test.fault is InvalidReason.OUTSIDE_SIGNATURE and self.config.domain == "any"

    # Rule

    def _rule(self, each: _Read, truths: Mapping[str, Truth]) -> _Ruled:
        suites = [self._sorted_out(suite, truths) for suite in each.suites]
        replayed: list[TestVerdict | None] = []
        for suite in each.history:
            tests = self._sorted_out(suite, truths)
            kept = len(tests) == 1 and tests[0].status == "kept" and not suite.dropped
            replayed.append(tests[0] if kept else None)
        return _Ruled(suites, replayed)

    def _sorted_out(self, suite: Suite, truths: Mapping[str, Truth]) -> list[TestVerdict]:
        """The tests of a suite with their rulings. Of those with the same call, one is kept.

        A right prediction goes before a wrong one. Said again, it neither attacks nor counts as invalid.
        """
        limit = self.config.max_suite_tests
        verdicts: list[TestVerdict] = []
        first: dict[str, int] = {}
        late = 0
        for number, test in enumerate(suite.tests):
            call = test.call_text
            # Another suite may have asked for a call that this one may not.
            truth = truths.get(call) if late < MOST_TIMEOUTS else None
            if number >= limit:
                verdict = _invalid(
                    test, InvalidReason.TOO_MANY, f"comes after the first {limit} tests"
                )
            elif test.fault is not None and not self._overlooked(test):
                verdict = _invalid(test, test.fault, test.reason)
            elif truth is None:
                verdict = _invalid(test, InvalidReason.NOT_ASKED, f"{NOT_MADE} on the reference")
            elif truth.fault is not None:
                late += truth.fault in COSTLY
                verdict = _invalid(test, truth.fault, truth.reason)
            elif test.predicted == truth.value:
                verdict = TestVerdict(f"assert {call} == {test.value}", "kept", call=call)
            else:
                verdict = self._compared(test, truth)
            if verdict.attacks:
                other = first.get(test.same_as)
                if other is None:
                    first[test.same_as] = number
                elif verdict.status == "corrected":
                    verdict = _wrong_again(test, verdict, other)
                elif verdicts[other].status == "corrected":
                    verdicts[other] = _wrong_again(suite.tests[other], verdicts[other], number)
                    first[test.same_as] = number
                else:
                    reason = f"is the same call as test {other + 1}"
                    verdict = TestVerdict(test.text, "duplicate", reason)
            verdicts.append(verdict)
        return verdicts

    def _compared(self, test: Test, truth: Truth) -> TestVerdict:
        """The ruling where the bytes of prediction and value differ."""
        source, right = truth.source, truth.read
        if not isinstance(right, Returned):
            reason = f"the reference returns what cannot be compared: {right.message}"
            return _invalid(test, InvalidReason.NO_LITERAL, reason)
        # The test's own tolerance is in the units of the value.
        absolute = test.tolerance or 0.0
        tolerance = max(self.config.tolerance, min(absolute, _MOST_RELATIVE))
        predicted = read_reply(RETURNED + test.predicted)  # within a budget
        if isinstance(predicted, Returned) and same(
            predicted.value, right.value, tolerance, absolute
        ):
            # What has no literal may equal one that has, as a Counter equals a dict.
            text = f"assert {test.call_text} == {test.value if source is None else source}"
            return TestVerdict(text, "kept", call=test.call_text)
        if source is None:
            reason = "the reference returns what has no literal, or too long a one"
            return _invalid(test, InvalidReason.NO_LITERAL, reason)
        reason = f"predicts {_short(test.value)}, the reference returns {_short(source)}"
        if self.config.wrong_oracle == "drop":
            return _invalid(test, InvalidReason.WRONG_VALUE, reason)
        text = f"assert {test.call_text} == {source}"
        return TestVerdict(
            text, "corrected", reason, call=test.call_text, fault=InvalidReason.WRONG_VALUE
        )

    # Run

    def _run(
        self,
        rounds: Sequence[Round],
        read: Sequence[_Read],
        ruled: Sequence[_Ruled],
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> dict[_Attack, _Results]:
        """Run each distinct program once, on the calls of all tests that any round has for it."""
        suites: dict[_Attack, list[list[Test]]] = {}
        loads: dict[_Attack, TestResult] = {}
        for each, parts, rulings in zip(rounds, read, ruled, strict=True):
            if isinstance(each.code, Program) and each.code.problem is not None:
                loads[parts.attack] = TestResult(Outcome.SYNTAX_ERROR, each.code.problem)
                continue
            attacking = suites.setdefault(parts.attack, [])
            for suite, verdicts in zip(parts.suites, rulings.suites, strict=True):
                attacking.append(
                    [test for test, v in zip(suite.tests, verdicts, strict=True) if v.attacks]
                )
            attacking.append(
                [s.tests[0] for s, v in zip(parts.history, rulings.history, strict=True) if v]
            )
        results = {attack: _Results(load, {}) for attack, load in loads.items()}
        results |= self._call(suites, truths)
        with self._counting:
            for attack in suites:
                outcomes = (result.outcome for result in results[attack].calls.values())
                self.counters.add(outcomes, results[attack].load.cpu_time)
        return results

    def _call(
        self,
        suites: Mapping[_Attack, Sequence[Sequence[Test]]],
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> dict[_Attack, _Results]:
        known: dict[_Attack, dict[str, TestResult]] = {attack: {} for attack in suites}
        loads: dict[_Attack, TestResult] = {}
        tolerance = self.config.tolerance
        while True:
            asked = {}
            for attack, groups in suites.items():
                if attack in loads and not loads[attack].passed:
                    continue
                calls = to_make(groups, known[attack], _is_late)
                if calls or attack not in loads:
                    asked[attack] = calls
            if not asked:
                return {attack: _Results(loads[attack], known[attack]) for attack in suites}
            answers = gather(
                [
                    self.sandbox.submit_encoded(
                        attack.code,
                        attack.subject.entry_point,
                        [test.call for test in calls],
                        limits=self._limits,
                    )
                    for attack, calls in asked.items()
                ]
            )
            for (attack, calls), answer in zip(asked.items(), answers, strict=True):
                right = truths[attack.subject]
                found = known[attack]
                spent = answer.cpu_time + (loads[attack].cpu_time if attack in loads else 0.0)
                loads[attack] = replace(_repeatable(loads.get(attack, answer.load)), cpu_time=spent)
                # Fewer replies than calls: one reached a time limit.
                for test, reply in zip(calls, answer.replies, strict=False):
                    call = test.call_text
                    found[call] = (
                        _repeatable(reply)
                        if isinstance(reply, TestResult)
                        else judge_reply(reply, right[call].reply, tolerance)
                    )

    # Pay

    def _pay(self, each: Round, read: _Read, ruled: _Ruled, results: _Results) -> Verdict:
        load = results.load
        texts = dict.fromkeys(each.history)
        replayed = [
            ruling._replace(text=text)
            for text, ruling in zip(texts, ruled.history, strict=True)
            if ruling
        ]
        stale = [text for text, ruling in zip(texts, ruled.history, strict=True) if not ruling]
        history = _judged(replayed, results)
        passed = sum(not test.broke for test in history)
        suites = []
        for suite, rulings in zip(read.suites, ruled.suites, strict=True):
            tests = _judged(rulings, results)
            outcome = SuiteOutcome(
                code_executes=load.passed,
                failed=tuple(test.broke for test in tests if test.attacks),
                invalid=sum(test.status in ("corrected", "invalid") for test in tests)
                + sum(item.invalid for item in suite.dropped),
                history_passed=passed,
                history_total=len(history),
                nonprintable_ratio=suite.nonprintable_ratio,
            )
            suites.append(SuiteVerdict(tests, outcome, suite_rewards(outcome, self.config.rewards)))
        return Verdict(
            task_id=each.problem.task_id,
            code_executes=load.passed,
            load=load,
            code_reward=program_reward(suite.rewards for suite in suites),
            suites=tuple(suites),
            history=history,
            stale=tuple(stale),
        )


class _Ruled(NamedTuple):
    """The rulings on a round: of each suite, and of each replayed test; None if it is stale."""

    suites: list[list[TestVerdict]]
    history: list[TestVerdict | None]


def _repeatable(result: TestResult) -> TestResult:
    """With a message that is the same in every run."""
    message = without_addresses(result.message)
    return result if message is result.message else replace(result, message=message)


def _is_late(result: TestResult) -> bool:
    """Whether a call cost a process, and so more than other calls."""
    return result.outcome in _COSTLY and result.error != "SystemExit"


def _invalid(test: Test, fault: InvalidReason | None, reason: str) -> TestVerdict:
    return TestVerdict(test.text, "invalid", reason, fault=fault)


def _wrong_again(test: Test, verdict: TestVerdict, other: int) -> TestVerdict:
    """A wrong prediction whose call another test makes: it does not attack a second time."""
    return _invalid(test, verdict.fault, f"{verdict.reason}; is the same call as test {other + 1}")


def _short(source: str) -> str:
    return source if len(source) <= _SHOWN else f"{source[: _SHOWN - 4]} ..."


def _judged(tests: Sequence[TestVerdict], results: _Results) -> tuple[TestVerdict, ...]:
    """The tests of a suite with what became of them on the program."""
    late = 0
    judged = []
    for test in tests:
        if test.attacks:
            result = results.calls.get(test.call) if late < MOST_TIMEOUTS else None
            skipped = result is None and results.load.passed
            if result is None:
                result = _LATE if skipped else results.load
            late += _is_late(result)
            text, status, reason, _, _, call, _, fault = test
            test = TestVerdict(
                text, status, reason, result.outcome, result.message, call, skipped, fault
            )
        judged.append(test)
    return tuple(judged)
