"""The judge of the game: which tests count, what breaks a program, what both players are paid.

Three steps, each done once for a batch of rounds: rule (the oracle says which tests are right), run (each distinct
program makes the calls of all tests that attack it), pay (`codea1_env.rewards`). Failures of the sandbox itself are
raised and never become a reward.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

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
    AttackAnswers,
    Counters,
    Judged,
    RefereeConfig,
    Round,
    SuiteVerdict,
    TestVerdict,
    Verdict,
    by_problem,
)
from codea1_env.oracle import (
    COSTLY,
    MOST_TIMEOUTS,
    Attack,
    BrokenReferenceError,
    Oracle,
    Subject,
    Truth,
    gather,
    make_calls,
)
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Program, Suite, Test, parse_suites
from codea1_env.rewards import SuiteOutcome, program_reward, suite_rewards
from codea1_env.sandbox import RETURNED, Answers, Outcome, Sandbox, TestResult

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
_AT_ONCE = 3  # problems whose answers are judged
# Twice the CPU time, not the five times of other jobs: a call neither prints nor waits for anything.
_WALL_FACTOR = 2
_LATE = TestResult(Outcome.TIMEOUT, NOT_MADE)
_COSTLY = frozenset({Outcome.TIMEOUT, Outcome.EXITED, Outcome.SIGNALLED, Outcome.FORBIDDEN})


class _Read(NamedTuple):
    """A round whose texts have been read, and later ruled on."""

    round: Round
    attack: Attack
    suites: list[Suite]
    history: list[Suite]
    rulings: list[list[TestVerdict]]
    """Of each suite."""
    replayed: list[TestVerdict | None]
    """Of each test of the history; None if it is stale."""


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

    def judge(self, rounds: Sequence[Round]) -> list[Verdict]:
        """Judge a batch. The same rounds give the same verdicts, however they are batched.

        But for programs that remember earlier calls: all calls of a program in a batch are made in one process.

        Returns:
            One verdict per round, in order.

        Raises:
            BrokenReferenceError: The reference of a problem does not run: an error in the data.
            InfraError: The sandbox failed, so that there is no verdict.
        """
        read, truths = self._ruled(rounds)
        results = self._run(read, truths)
        return [self._pay(each, results[each.attack]) for each in read]

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
        return self.judge_parts(by_problem(problems, programs, attacks, history))

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Do so with some parts at once: while one program runs, another answer is read."""
        if len(parts) == 1:
            return self._judge_part(parts[0])
        with ThreadPoolExecutor(_AT_ONCE, "judge-part") as threads:
            found = gather([threads.submit(self._judge_part, part) for part in parts])
            return [item for items in found for item in items]

    def _judge_part(self, part: AttackAnswers) -> list[Judged]:
        parsed = parse_suites([(text, part.problem) for text in part.attacks], self.sandbox)
        share = len(parsed) // max(1, len(part.programs))
        suites = [parsed[i * share : (i + 1) * share] for i in range(len(part.programs))]
        rounds = [
            Round(part.problem, program, against, part.history)
            for program, against in zip(part.programs, suites, strict=True)
        ]
        return list(zip(suites, self.judge(rounds), strict=True))

    def references_run(self, problems: Sequence[Problem]) -> list[bool]:
        """Whether the reference of each problem runs and defines its entry point.

        Those of the data do; ask where something else stands in for them.
        """
        return self._oracle.loads([Subject.of(problem) for problem in problems])

    def corrected(self, suites: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[str]]:
        """Return tests as they attack: with the reference's value where they predict another one.

        Args:
            suites: Problems whose reference runs, each with tests.

        Returns:
            The texts of each suite, in order; a text that is not one valid test stays as it is.
        """
        rounds = [Round(problem, "", [[text] for text in texts]) for problem, texts in suites]
        read, _ = self._ruled(rounds)
        return [
            [
                tests[0].text
                if len(tests) == 1 and not suite.dropped and tests[0].attacks
                else text
                for text, suite, tests in zip(texts, each.suites, each.rulings, strict=True)
            ]
            for (_, texts), each in zip(suites, read, strict=True)
        ]

    # Read

    def _parsed(self, wanted: Sequence[tuple[Problem, str]]) -> dict[tuple[int, str], Suite]:
        """Return what is in texts, by the id of the problem and the text."""
        pairs = {(id(problem), text): (text, problem) for problem, text in wanted}
        return dict(zip(pairs, parse_suites(list(pairs.values()), self.sandbox), strict=True))

    def _read(self, rounds: Sequence[Round]) -> list[_Read]:
        """Read what came as text, and find out which program each round is about."""
        texts = self._parsed(
            [
                (each.problem, text)
                for each in rounds
                for texts in (*each.suites, each.history)
                if not isinstance(texts, Suite)
                for text in texts
            ]
        )
        distinct = {id(each.problem): each.problem for each in rounds}
        bounded = self.config.domain != "any"
        subjects = {key: Subject.of(problem, bounded) for key, problem in distinct.items()}
        read = []
        for each in rounds:
            problem, subject = each.problem, subjects[id(each.problem)]
            suites = [
                suite
                if isinstance(suite, Suite)
                else _joined([texts[id(problem), text] for text in suite])
                for suite in each.suites
            ]
            history = [texts[id(problem), text] for text in dict.fromkeys(each.history)]
            code = each.code.code if isinstance(each.code, Program) else each.code
            read.append(_Read(each, Attack(subject, code), suites, history, [], []))
        return read

    def _allowed(self, suite: Suite) -> list[Test]:
        """Return the tests of a suite whose calls the oracle is asked about."""
        tests = suite.tests[: self.config.max_suite_tests]
        return [test for test in tests if test.fault is None or self._overlooked(test)]

    def _overlooked(self, test: Test) -> bool:
        return test.fault is InvalidReason.OUTSIDE_SIGNATURE and self.config.domain == "any"

    # Rule

    def _ruled(
        self, rounds: Sequence[Round]
    ) -> tuple[list[_Read], dict[Subject, dict[str, Truth]]]:
        read = self._read(rounds)
        wanted: dict[Subject, list[Sequence[Test]]] = {}
        for each in read:
            asked = wanted.setdefault(each.attack.subject, [])
            asked += [self._allowed(suite) for suite in (*each.suites, *each.history)]
        truths = self._oracle.ask(wanted)
        return [self._rule(each, truths[each.attack.subject]) for each in read], truths

    def _rule(self, each: _Read, truths: Mapping[str, Truth]) -> _Read:
        rulings = [self._sorted_out(suite, truths) for suite in each.suites]
        replayed: list[TestVerdict | None] = []
        for suite in each.history:
            tests = self._sorted_out(suite, truths)
            kept = len(tests) == 1 and tests[0].status == "kept" and not suite.dropped
            replayed.append(tests[0] if kept else None)
        return each._replace(rulings=rulings, replayed=replayed)

    def _sorted_out(self, suite: Suite, truths: Mapping[str, Truth]) -> list[TestVerdict]:
        """Return the tests of a suite with their rulings. Of those with the same call, one is kept.

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
        """Return the ruling where the bytes of prediction and value differ."""
        source, right = truth.source, truth.read
        if not isinstance(right, Returned):
            reason = f"the reference returns what cannot be compared: {right.message}"
            return _invalid(test, InvalidReason.NO_LITERAL, reason)
        relative, absolute = self.config.tolerance, self.config.tolerance
        if test.absolute is not None or test.relative is not None:  # used as the test says it
            relative, absolute = test.relative or 0.0, test.absolute or 0.0
        predicted = read_reply(RETURNED + test.predicted)  # within a budget
        if isinstance(predicted, Returned) and same(
            predicted.value, right.value, relative, absolute
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
        self, read: Sequence[_Read], truths: Mapping[Subject, Mapping[str, Truth]]
    ) -> dict[Attack, _Results]:
        """Run each distinct program once, on the calls of all tests that any round has for it."""
        suites: dict[Attack, list[list[Test]]] = {}
        known: dict[Attack, dict[str, TestResult]] = {}
        loads: dict[Attack, TestResult] = {}
        unread: dict[Attack, TestResult] = {}
        for each in read:
            known[each.attack] = {}
            program = each.round.code
            if isinstance(program, Program) and program.problem is not None:
                unread[each.attack] = TestResult(Outcome.SYNTAX_ERROR, program.problem)
                continue
            attacking = suites.setdefault(each.attack, [])
            for suite, verdicts in zip(each.suites, each.rulings, strict=True):
                pairs = zip(suite.tests, verdicts, strict=True)
                attacking.append([test for test, verdict in pairs if verdict.attacks])
            replayed = zip(each.history, each.replayed, strict=True)
            attacking.append([suite.tests[0] for suite, kept in replayed if kept])

        def enter(attack: Attack, tests: Sequence[Test], answers: Sequence[Answers]) -> bool:
            [answer] = answers
            load = loads.get(attack)
            spent = answer.cpu_time + (load.cpu_time if load else 0.0)
            load = loads[attack] = replace(_repeatable(load or answer.load), cpu_time=spent)
            # Fewer replies than calls: one reached a time limit.
            for test, reply in zip(tests, answer.replies, strict=False):
                right = truths[attack.subject][test.call_text].reply
                known[attack][test.call_text] = (
                    _repeatable(reply)
                    if isinstance(reply, TestResult)
                    else judge_reply(reply, right, self.config.tolerance)
                )
            return load.passed

        make_calls(self.sandbox, self._limits, suites, known, _is_late, enter, new=suites)
        with self._counting:
            for attack in suites:
                outcomes = (result.outcome for result in known[attack].values())
                self.counters += Counters.of(outcomes, loads[attack].cpu_time)
        return {attack: _Results(load, known[attack]) for attack, load in (unread | loads).items()}

    # Pay

    def _pay(self, each: _Read, results: _Results) -> Verdict:
        load = results.load
        texts = zip(dict.fromkeys(each.round.history), each.replayed, strict=True)
        known = [(text, ruling and ruling._replace(text=text)) for text, ruling in texts]
        replayed = [ruling for _, ruling in known if ruling]
        history = _judged(replayed, results)
        passed = sum(not test.broke for test in history)
        suites = []
        for suite, rulings in zip(each.suites, each.rulings, strict=True):
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
            task_id=each.round.problem.task_id,
            code_executes=load.passed,
            load=load,
            code_reward=program_reward(suite.rewards for suite in suites),
            suites=tuple(suites),
            history=history,
            stale=tuple(text for text, ruling in known if not ruling),
        )


def _joined(parts: Sequence[Suite]) -> Suite:
    """Several texts as one suite."""
    tests = tuple(test for part in parts for test in part.tests)
    return Suite(tests, tuple(item for part in parts for item in part.dropped))


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
    """Return a wrong prediction whose call another test makes: it does not attack a second time."""
    return _invalid(test, verdict.fault, f"{verdict.reason}; is the same call as test {other + 1}")


def _short(source: str) -> str:
    return source if len(source) <= _SHOWN else f"{source[: _SHOWN - 4]} ..."


def _judged(tests: Sequence[TestVerdict], results: _Results) -> tuple[TestVerdict, ...]:
    """Return the tests of a suite with what became of them on the program."""
    late = 0
    judged = []
    for test in tests:
        if test.attacks:
            result = results.calls.get(test.call) if late < MOST_TIMEOUTS else None
            skipped = result is None and results.load.passed
            if result is None:
                result = _LATE if skipped else results.load
            late += _is_late(result)
            test = test._replace(outcome=result.outcome, message=result.message, skipped=skipped)
        judged.append(test)
    return tuple(judged)
