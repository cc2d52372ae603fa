"""The referee: which tests count, which break the program, and both rewards.

Three steps, each done once for a batch of rounds: rule (the oracle says which tests are right), run (each distinct
program with the tests of each suite, and with those of the book), pay (`codea1_env.rewards`). Failures of the sandbox itself are
raised and never become a reward.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from codea1_env.compare import MAX_REPLY, Returned
from codea1_env.judging.programs import (
    ProgramResults,
    ProgramRuns,
    check_predictions,
    judge_prediction,
    require_answers,
)
from codea1_env.judging.verdicts import (
    BEHIND,
    GAME_LIMITS,
    NOT_JUDGED,
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
    calls_of,
    on_program,
    without_score,
)
from codea1_env.oracle import (
    BrokenReferenceError,
    Oracle,
    Truth,
    gather,
    is_infinite,
    is_made,
)
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import MAX_ACTION_CHARS as MOST
from codea1_env.responses import Program, Suite, Test, joined, parse_suites, read_programs, yielding
from codea1_env.rewards import SuiteOutcome, program_reward, suite_rewards
from codea1_env.sandbox import Limits, Outcome, Sandbox, TestResult
from codea1_env.sandbox.inside.analysis import literals
from codea1_env.subjects import Attack, Subject

__all__ = [
    "BrokenReferenceError", "Counters", "Referee", "RefereeConfig", "Round", "SuiteVerdict", "TestVerdict",
    "Verdict",
]  # fmt: skip

_SHOWN = 60
_AT_ONCE = 3  # problems whose answers are judged
# Twice the CPU time, not the five times of other jobs: a call neither prints nor waits for anything.
_WALL_FACTOR = 2
_TOO_LONG = f"as a text it has more than {MOST:,} characters"
_OF_DOMAIN = (InvalidReason.OUTSIDE_SIGNATURE, InvalidReason.OUTSIDE_FORMAT)
_JOB_TIME = 10.0  # seconds, of the release


class _Read(NamedTuple):
    """A round whose texts have been read, and later ruled on."""

    round: Round
    attack: Attack
    suites: list[Suite]
    history: list[Suite]
    rulings: list[list[TestVerdict]]
    """Rulings of each suite."""
    replayed: list[TestVerdict | None]
    """Ruling of each replayed test; None if it is stale."""


class Referee:
    r"""Judges rounds of the game. Rounds of different problems are independent.

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
        given = GAME_LIMITS if sandbox.limits == Limits() else sandbox.limits
        limits = given if self.config.limits is None else self.config.limits
        self._limits = replace(
            limits,
            call_wall_time=min(limits.call_wall_time, _WALL_FACTOR * limits.call_cpu_time),
            # Longer ones would not be compared, and all replies to a program are held at once.
            result=min(limits.result, MAX_REPLY),
        )
        paper = self.config.rewards.strict_paper
        self._programs = ProgramRuns(
            sandbox,
            _of_a_job(limits) if paper else self._limits,
            self.config.tolerance,
            reuse=self.config.reuse_programs,
            whole=paper,
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
        """Judge a batch. The same rounds give the same verdicts, however they are batched, and so does a suite beside others.

        With `reuse_programs` a program is not run on the same call in a later batch.

        Returns:
            One verdict per round, in order.

        Raises:
            BrokenReferenceError: The reference of a problem does not run, or its checker hangs: an error in the data.
            InfraError: The sandbox failed, so that there is no verdict.
        """
        read, truths = self._rule_batch(rounds)
        results = self._run(read, truths)
        return [self._pay(each, results[each.attack]) for each in read]

    def judge_answers(
        self,
        problems: Sequence[Problem],
        programs: Sequence[Program],
        attacks: Sequence[str],
        history: Mapping[str, Sequence[str]],
    ) -> list[Judged]:
        """Read and judge the answers of testers, an equal share for each program. Programs of one problem stand together.

        Returns:
            For each program the suites that attacked it, and the verdict. Raises as `judge` does.
        """
        return self.judge_parts(by_problem(problems, programs, attacks, history))

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Judge several parts at once: while one program runs, another answer is read."""
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

    def read_programs(self, problems: Sequence[Problem], answers: Sequence[str]) -> list[Program]:
        """Find the programs in coders' answers, one for each."""
        paper = self.config.rewards.strict_paper
        return read_programs(problems, answers, self.sandbox, first_block=paper)

    def references_run(self, problems: Sequence[Problem]) -> list[bool]:
        """Whether the reference of each problem runs and defines its entry point.

        Those of the data do; ask where something else stands in for them.
        """
        return self._oracle.loads([Subject.of(problem) for problem in problems])

    def corrected(self, suites: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[str]]:
        """Return tests as they attack: with the reference's value where they predict another one."""
        rounds = [Round(problem, "", [[text] for text in texts]) for problem, texts in suites]
        read, _ = self._rule_batch(rounds)
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
        """Return the parsed answers, by the problem's id and the text."""
        pairs = {(id(problem), text): (text, problem) for problem, text in wanted}
        return dict(zip(pairs, parse_suites(list(pairs.values()), self.sandbox), strict=True))

    def _read(self, rounds: Sequence[Round]) -> list[_Read]:
        """Read the answers, and find the program of each round."""
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
        by_rule = not self.config.rewards.strict_paper
        listed = yielding(list(distinct.values()), self.sandbox)
        subjects = {
            key: Subject.of(problem, with_contract=bounded, with_rule=by_rule, yields=yields)
            for (key, problem), yields in zip(distinct.items(), listed, strict=True)
        }
        read = []
        for each in rounds:
            problem, subject = each.problem, subjects[id(each.problem)]
            suites = [
                suite
                if isinstance(suite, Suite)
                else joined(suite, [texts[id(problem), text] for text in suite])
                for suite in each.suites
            ]
            history = [texts[id(problem), text] for text in dict.fromkeys(each.history)]
            code = each.code.code if isinstance(each.code, Program) else each.code
            read.append(_Read(each, Attack(subject, code), suites, history, [], []))
        return read

    def _allowed(self, suite: Suite) -> list[Test]:
        """Return the tests of a suite whose calls go to the oracle."""
        tests = suite.tests[: self.config.max_suite_tests]
        return [test for test in tests if test.fault is None or self._overlooked(test)]

    def _overlooked(self, test: Test) -> bool:
        return test.fault in _OF_DOMAIN and self.config.domain == "any"

    # Rule

    def _rule_batch(
        self, rounds: Sequence[Round]
    ) -> tuple[list[_Read], dict[Subject, dict[str, Truth]]]:
        read = self._read(rounds)
        wanted: dict[Subject, list[Sequence[Test]]] = {}
        for each in read:
            asked = wanted.setdefault(each.attack.subject, [])
            asked += [self._allowed(suite) for suite in (*each.suites, *each.history)]
        truths = self._oracle.ask(wanted)
        problems = {each.attack.subject: each.round.problem for each in read}
        for subject, suites in wanted.items():
            if subject.checker:
                require_answers(subject, problems[subject], self.sandbox)
                tests = [test for suite in suites for test in suite]
                check_predictions(subject, tests, truths[subject], self.sandbox)
        return [self._rule_round(each, truths[each.attack.subject]) for each in read], truths

    def _rule_round(self, each: _Read, truths: Mapping[str, Truth]) -> _Read:
        subject = each.attack.subject
        rulings = [self._rule_suite(suite, subject, truths) for suite in each.suites]
        replayed: list[TestVerdict | None] = []
        for suite in each.history:
            tests = self._rule_suite(suite, subject, truths)
            status = tests[0].status if len(tests) == 1 and not suite.dropped else ""
            kept = status in ("kept", "not made")
            replayed.append(tests[0] if kept else None)
        return each._replace(rulings=rulings, replayed=replayed)

    def _rule_suite(
        self, suite: Suite, subject: Subject, truths: Mapping[str, Truth]
    ) -> list[TestVerdict]:
        """Return the tests of a suite with their rulings. It ends with its Kth test that attacks, but in the paper.

        Of tests with the same call one attacks. A right prediction goes before a wrong one. Said again, it neither attacks
        nor counts as invalid.
        """
        tests, verdicts = suite.tests, list[TestVerdict]()
        paying, slow, attacking = self.config.rewards, set[str](), set[str]()
        for number, test in enumerate(tests):
            if len(attacking) >= paying.num_tests and not paying.strict_paper:
                verdicts.append(TestVerdict(test.text, "not made", BEHIND))
                continue
            ruled = self._rule_test(number, test, subject, truths, slow)
            if ruled.call and len(ruled.text) > MOST:  # the book could not replay it
                ruled = _invalid(test, InvalidReason.NO_LITERAL, _TOO_LONG)
            verdicts.append(ruled)
            if verdicts[-1].call:
                attacking.add(test.same_as)
        made = [test.same_as for test, ruled in zip(tests, verdicts, strict=True) if ruled.call]
        if len({*made}) < len(made):
            same: dict[str, list[int]] = {}
            for number, test in enumerate(tests):
                if verdicts[number].call:
                    same.setdefault(test.same_as, []).append(number)
            for numbers in same.values():
                if len(numbers) > 1:
                    self._keep_one(numbers, suite, verdicts)
        return verdicts

    @staticmethod
    def _keep_one(numbers: Sequence[int], suite: Suite, verdicts: list[TestVerdict]) -> None:
        """Let one of the tests with equal arguments attack, and the same call whatever their order."""
        right = [number for number in numbers if verdicts[number].status == "kept"]
        first, *_ = able = right or numbers
        made = verdicts[min(able, key=lambda number: verdicts[number].call)]
        verdicts[first] = verdicts[first]._replace(text=made.text, call=made.call)
        said = f"is the same call as test {first + 1}"
        for number in numbers:
            if number == first:
                continue
            test, verdict = suite.tests[number], verdicts[number]
            if verdict.status == "kept":
                verdicts[number] = TestVerdict(test.text, "duplicate", said)
            else:
                verdicts[number] = _invalid(test, verdict.fault, f"{verdict.reason}; {said}")

    def _rule_test(
        self,
        number: int,
        test: Test,
        subject: Subject,
        truths: Mapping[str, Truth],
        slow: set[str],
    ) -> TestVerdict:
        """Return the ruling on one test. Of its suite it knows the slow calls before it."""
        call, limit = test.call_text, self.config.max_suite_tests
        if number >= limit:
            reason = f"comes after the first {limit} tests"
            return _invalid(test, InvalidReason.TOO_MANY, reason)
        if test.fault is not None and not self._overlooked(test):
            return _invalid(test, test.fault, test.reason)
        truth = truths[call]
        if not is_made(test, truths, slow):
            return TestVerdict(test.text, "not made", NOT_MADE)
        if truth.unjudged:
            return TestVerdict(test.text, "not made", NOT_JUDGED, Outcome.UNJUDGED)
        if truth.fault is not None:
            return _invalid(test, truth.fault, truth.reason)
        if not (truth.is_finite or self.config.rewards.strict_paper or is_infinite(call)):
            reason = "the reference returns inf or nan for finite arguments"
            return _invalid(test, InvalidReason.NOT_FINITE, reason)
        if test.predicted == truth.value:
            return TestVerdict(f"assert {call} == {test.value}", "kept", call=call)
        return self._compared(test, subject, truth)

    def _compared(self, test: Test, subject: Subject, truth: Truth) -> TestVerdict:
        """Return the ruling where the bytes of prediction and value differ."""
        right = truth.read
        if not isinstance(right, Returned):
            reason = f"the reference returns what cannot be compared: {right.message}"
            return _invalid(test, InvalidReason.NO_LITERAL, reason)
        tolerance = self.config.tolerance
        said = judge_prediction(test, subject, truth.reply, right, tolerance, self.sandbox)
        if said.outcome is Outcome.UNJUDGED:
            return TestVerdict(test.text, "not made", NOT_JUDGED, Outcome.UNJUDGED)
        source = literals.write(right.value)
        if said.passed:
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
    ) -> dict[Attack, ProgramResults]:
        """Run each distinct program on the tests of all its runs in all rounds."""
        suites: dict[Attack, list[list[Test]]] = {}
        unread: dict[Attack, ProgramResults] = {}
        for each in read:
            program = each.round.code
            if isinstance(program, Program) and program.problem is not None:
                load = TestResult(Outcome.SYNTAX_ERROR, program.problem)
                unread[each.attack] = ProgramResults(load, {})
                continue
            attacking = suites.setdefault(each.attack, [])
            for suite, verdicts in zip(each.suites, each.rulings, strict=True):
                by_call = {test.call_text: test for test in suite.tests}
                attacking.append([by_call[call] for call in calls_of(verdicts)])
            replayed = zip(each.history, each.replayed, strict=True)
            attacking.append([suite.tests[0] for suite, kept in replayed if kept and kept.attacks])
        return unread | self._programs.run(suites, truths, self._count)

    def _count(self, done: Counters) -> None:
        with self._counting:
            self.counters += done

    # Pay

    def _pay(self, each: _Read, results: ProgramResults) -> Verdict:
        load, program = results.load, each.round.code
        seen = program.shown if isinstance(program, Program) else frozenset()
        texts = zip(dict.fromkeys(each.round.history), each.replayed, strict=True)
        known = [(text, ruling and ruling._replace(text=text)) for text, ruling in texts]
        replayed = [ruling for _, ruling in known if ruling]
        shown = self._judged(replayed, results, seen)
        history = tuple([test for test in shown if test.attacks])
        suites = []
        for suite, rulings in zip(each.suites, each.rulings, strict=True):
            tests = self._judged(rulings, results, seen)
            attacking = [test for test in tests if test.call]
            unpaid = tuple([test.unpaid for test in attacking])
            outcome = SuiteOutcome(
                code_executes=load.passed,
                failed=tuple([test.outcome is not Outcome.PASS for test in attacking]),
                invalid=len([test for test in tests if test.fault is not None])
                + sum([item.invalid for item in suite.dropped]),
                history_passed=len([test for test in history if test.passed]),
                history_total=len(history),
                nonprintable_ratio=suite.nonprintable_ratio,
                unpaid=unpaid if any(unpaid) else (),
                history_unpaid=len([test for test in history if test.unpaid]),
            )
            rewards = suite_rewards(outcome, self.config.rewards)
            if Outcome.UNJUDGED in (load.outcome, *[test.outcome for test in (*tests, *shown)]):
                rewards = replace(rewards, code=None, test=None)
            suites.append(SuiteVerdict(tests, outcome, rewards))
        return Verdict(
            task_id=each.round.problem.task_id,
            code_executes=load.passed,
            load=load,
            code_reward=program_reward(suite.rewards for suite in suites),
            suites=tuple(suites),
            history=history,
            stale=tuple(text for text, ruling in known if not ruling),
        )

    def _judged(
        self, tests: Sequence[TestVerdict], results: ProgramResults, seen: frozenset[str]
    ) -> tuple[TestVerdict, ...]:
        """Return the tests of one run with their outcomes on the program. To pass one that its coder has `seen` counts nothing."""
        whole, calls = results.load, results.of(calls_of(tests))
        # In the paper, what has no result when the time of the job is over has failed, and pays.
        paper = self.config.rewards.strict_paper
        judged = [
            on_program(test, calls[test.call] if whole.passed else whole, paper)
            if test.call
            else test
            for test in tests
        ]
        if seen:
            judged = [
                without_score(test) if test.passed and test.call in seen else test
                for test in judged
            ]
        return tuple(judged)


def _of_a_job(limits: Limits) -> Limits:
    """Limits of the release: those of a whole job, which is a run here."""
    cpu, wall = limits.call_cpu_time, limits.call_wall_time
    if limits == GAME_LIMITS:
        cpu, wall = _JOB_TIME, _WALL_FACTOR * _JOB_TIME
    return replace(
        limits,
        call_cpu_time=cpu,
        call_wall_time=wall,
        run_cpu_time=cpu,
        run_wall_time=wall,
        result=min(limits.result, MAX_REPLY),
    )


def _invalid(test: Test, fault: InvalidReason | None, reason: str) -> TestVerdict:
    return TestVerdict(test.text, "invalid", reason, fault=fault)


def _short(source: str) -> str:
    return source if len(source) <= _SHOWN else f"{source[: _SHOWN - 4]} ..."
