"""Runs the programs of players on the tests that attack them; judges predictions.

The unit is a run: one program with the tests of one suite, or with the replayed ones. What comes of it depends on nothing
else. Runs of a program that keeps nothing share a process, as long as each call answers at once: that says the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from codea1_env.compare import (
    Returned,
    check_replies,
    judge_reply,
    read_reply,
    repeatable,
    same,
)
from codea1_env.judging.verdicts import BEGAN_ANEW, Counters
from codea1_env.oracle import BrokenReferenceError, Truth, gather, is_spent
from codea1_env.problem_sets.judging import checker_fault
from codea1_env.problems import Problem
from codea1_env.reading.inputs import left_by
from codea1_env.reading.keeping import may_keep
from codea1_env.responses import Test
from codea1_env.sandbox import (
    ALLOWANCE,
    RETURNED,
    UNANSWERED,
    Answers,
    Comparison,
    Limits,
    Outcome,
    RunRules,
    Sandbox,
    SandboxError,
    TestResult,
)
from codea1_env.subjects import Attack, Subject
from codea1_env.support.texts import LRUCache

Calls = tuple[str, ...]
"""Texts of the calls of a run, in order."""
_RESULT_CHARS = 150  # what a remembered result costs, about
_NOT_KEPT = (Outcome.TIMEOUT, Outcome.MEMORY, Outcome.UNJUDGED)


class ProgramResults(NamedTuple):
    """How a program ran: loading it, and its verdict on each call, by the call's text."""

    load: TestResult
    calls: Mapping[str, TestResult]
    """Verdicts that are the same in all runs."""
    runs: Mapping[Calls, Mapping[str, TestResult]] = {}
    """Verdicts of each run, where runs had processes of their own."""

    def of(self, run: Calls) -> Mapping[str, TestResult]:
        """Verdicts of one run."""
        return self.runs.get(run, self.calls)


class _RunsOfOne:
    """A program whose runs are being made."""

    def __init__(
        self, runs: Sequence[Sequence[Test]], kept: ProgramResults | None, keeps: bool
    ) -> None:
        """Take the runs, of which equal ones are made once; what is known from another batch; whether it may keep something."""
        self.keeps = keeps
        self.runs = {tuple([test.call_text for test in run]): run for run in runs if run}
        self.load = kept.load if kept else None
        self.calls = dict(kept.calls) if kept else {}
        self.separate: dict[Calls, dict[str, TestResult]] = {}
        self.cpu_time = 0.0
        self.dear: set[str] = set()
        """Calls of runs that used more than the shares of their calls: how these end decides about other calls."""

    def unknown(self, run: Sequence[Test]) -> list[Test]:
        """Tests of a run that are still to be made."""
        return [test for test in run if test.call_text not in self.calls]

    def rest(self) -> list[Calls]:
        """Runs of which something is not known."""
        return [
            run
            for run, tests in self.runs.items()
            if run not in self.separate and self.unknown(tests)
        ]

    def results(self) -> ProgramResults:
        """What came of it."""
        assert self.load is not None
        load = replace(self.load, cpu_time=self.cpu_time)
        if not load.passed:
            return ProgramResults(load, {})
        return ProgramResults(load, self.calls, self.separate)


class ProgramRuns:
    """Makes the runs of programs, and where `reuse` each call on a program only once."""

    def __init__(
        self, sandbox: Sandbox, limits: Limits, tolerance: float, *, reuse: bool, whole: bool
    ) -> None:
        """Take the rules. With `whole` the limits are those of a whole run, which ends with the process."""
        self._sandbox = sandbox
        self._limits = limits
        self._tolerance = tolerance
        self._reuse = reuse
        self._whole = whole
        self._kept = LRUCache[Attack, ProgramResults]()

    def run(
        self,
        runs: Mapping[Attack, Sequence[Sequence[Test]]],
        truths: Mapping[Subject, Mapping[str, Truth]],
        count: Callable[[Counters], None],
    ) -> dict[Attack, ProgramResults]:
        """Run each program on the tests of all its runs. Programs of which nothing is asked are loaded."""
        # What a program keeps is gone with the process of its input.
        called = [attack.code for attack in runs if not attack.subject.prints]
        keeps = may_keep(called, self._sandbox)
        programs = {
            attack: _RunsOfOne(each, self._kept.get(attack), keeps.get(attack.code, False))
            for attack, each in runs.items()
        }
        several = [attack for attack, each in programs.items() if len(each.rest()) > 1]
        sharing = self._share(several, programs, truths)
        first = {
            attack: each.rest()[:1]
            for attack, each in programs.items()
            if attack not in sharing and (each.load is None or each.rest())
        }
        self._separately(first, programs, truths)
        loaded = {
            attack: each for attack, each in programs.items() if each.load and each.load.passed
        }
        self._separately({attack: each.rest() for attack, each in loaded.items()}, programs, truths)
        found = {attack: each.results() for attack, each in programs.items()}
        for attack, each in found.items():
            load, outcomes = each.load, {}
            reuse = self._reuse and not programs[attack].keeps
            for run in programs[attack].runs:
                shared = None if reuse or run not in each.runs else run
                for call in run:
                    result = each.of(run)[call] if load.passed else load
                    outcomes[shared, call] = result.outcome
            count(Counters.of(outcomes.values(), load.cpu_time))
            if reuse and each.load.passed:
                self._keep(attack, each, programs[attack].dear)
        return found

    def _share(
        self,
        attacks: Sequence[Attack],
        programs: Mapping[Attack, _RunsOfOne],
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> set[Attack]:
        """Make the calls of all runs in one process, of programs that keep nothing. What one does not answer, none has made."""
        asked = {}
        for attack in attacks:
            if not programs[attack].keeps:
                runs = programs[attack].runs.values()
                calls = {
                    test.call_text: test for run in runs for test in programs[attack].unknown(run)
                }
                asked[attack] = list(calls.values())
        started = [
            self._started(attack, tests, truths, keeps=False, allowance=0.0)
            for attack, tests in asked.items()
        ]
        for (attack, tests), answer in zip(asked.items(), gather(started), strict=True):
            program = programs[attack]
            self._enter_load(program, answer)
            if answer.load.passed and all(isinstance(reply, bytes) for reply in answer.replies):
                # What calls before it have left in memory, or in caches below it, may decide.
                if any(map(is_spent, answer.replies)):
                    continue
                if attack.subject.checker:  # whose time is that of a run
                    self._enter_runs(attack, program, tests, answer, truths)
                else:
                    program.calls |= self._judged(attack, tests, answer.replies, truths)
        return set(asked)

    def _enter_runs(
        self,
        attack: Attack,
        program: _RunsOfOne,
        tests: Sequence[Test],
        answer: Answers,
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> None:
        """Judge the replies of each run by themselves."""
        replies = {test.call_text: each for test, each in zip(tests, answer.replies, strict=True)}
        for run in program.rest():
            unknown = program.unknown(program.runs[run])
            answers = [replies[test.call_text] for test in unknown]
            known = {call: program.calls[call] for call in run if call in program.calls}
            program.separate[run] = known | self._judged(attack, unknown, answers, truths)

    def _separately(
        self,
        asked: Mapping[Attack, Sequence[Calls]],
        programs: Mapping[Attack, _RunsOfOne],
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> None:
        """Make runs, each in processes of its own. A program without any is loaded."""
        jobs = [
            (attack, run, programs[attack].unknown(programs[attack].runs.get(run, ())))
            for attack, runs in asked.items()
            for run in runs or ([()] if programs[attack].load is None else [])
        ]
        started = [
            self._started(attack, tests, truths, keeps=programs[attack].keeps)
            for attack, _, tests in jobs
        ]
        for (attack, run, tests), answer in zip(jobs, gather(started), strict=True):
            program = programs[attack]
            self._enter_load(program, answer)
            known = {call: program.calls[call] for call in run if call in program.calls}
            judged = self._judged(attack, tests, answer.replies, truths)
            if program.keeps and not self._whole:
                _leave_out_what_follows_an_end(judged, tests, answer.replies)
            program.separate[run] = known | judged
            if not answer.in_shares:
                program.dear.update(judged)

    def _started(
        self,
        attack: Attack,
        tests: Sequence[Test],
        truths: Mapping[Subject, Mapping[str, Truth]],
        *,
        keeps: bool,
        allowance: float = ALLOWANCE,
    ) -> Future[Answers]:
        of = truths[attack.subject]
        slow = {number for number, test in enumerate(tests) if of[test.call_text].slow}
        limits = self._limits if self._whole else self._limits.with_room_for(len(tests) + 4)
        return self._sandbox.submit(
            self._sandbox.run_calls,
            *attack.program,
            [test.call for test in tests],
            limits=limits,
            rules=RunRules(
                at_once=None if self._whole else slow,
                allowance=0.0 if self._whole else allowance,
                keeps=keeps and not self._whole,
            ),
        )

    @staticmethod
    def _enter_load(program: _RunsOfOne, answer: Answers) -> None:
        """Keep how the first load ended."""
        program.cpu_time += answer.cpu_time
        if program.load is None:
            program.load = repeatable(answer.load)

    def _judged(
        self,
        attack: Attack,
        tests: Sequence[Test],
        replies: Sequence[bytes | TestResult],
        truths: Mapping[Subject, Mapping[str, Truth]],
    ) -> dict[str, TestResult]:
        """Compare replies with the reference's."""
        results: dict[str, TestResult] = {}
        right, subject = truths[attack.subject], attack.subject
        comparison = subject.comparison(self._tolerance)
        unlike: dict[str, tuple[bytes, bytes, bytes]] = {}
        for test, reply in zip(tests, replies, strict=True):
            call = test.call_text
            if isinstance(reply, TestResult):
                results[call] = reply if reply is UNANSWERED else repeatable(reply)
                continue
            expected = right[call].reply
            results[call] = _compared(reply, expected, comparison)
            if subject.checker and not results[call].passed:
                unlike[call] = (test.call, reply, expected)
        if unlike:
            said = check_replies(subject.checker, [*unlike.values()], self._sandbox, together=True)
            results |= zip(unlike, said, strict=True)
        return results

    def _keep(self, attack: Attack, found: ProgramResults, dear: set[str]) -> None:
        calls = dict(found.calls)
        for run in found.runs.values():
            calls |= run
        calls = {
            call: each
            for call, each in calls.items()
            if call not in dear and each.outcome not in _NOT_KEPT
        }
        memory = ProgramResults(replace(found.load, cpu_time=0.0), calls)
        self._kept.put(attack, memory, len(attack.code) + _RESULT_CHARS * len(calls))


def _leave_out_what_follows_an_end(
    judged: dict[str, TestResult], tests: Sequence[Test], replies: Sequence[bytes | TestResult]
) -> None:
    """Let a program that may keep something pass nothing behind a call that ended its process: it began anew there.

    Otherwise to end a process, or to loop in it, would undo what the program keeps, and so pay.
    """
    ended = False
    for test, reply in zip(tests, replies, strict=True):
        if ended and judged[test.call_text].passed:
            judged[test.call_text] = BEGAN_ANEW
        ended = ended or isinstance(reply, TestResult)


def _compared(reply: bytes, expected: bytes, comparison: Comparison) -> TestResult:
    """Judge a reply. If we fail at it, that is its own fault: it is no way out."""
    try:
        return judge_reply(reply, expected, comparison)
    except SandboxError:
        raise
    except Exception as error:
        return TestResult(Outcome.FORBIDDEN, f"a reply that cannot be read: {type(error).__name__}")


# Is what a test predicts the reference's value?

_RIGHT, _WRONG = TestResult(Outcome.PASS), TestResult(Outcome.FAIL)


def judge_prediction(
    test: Test, subject: Subject, reply: bytes, right: Returned, tolerance: float, sandbox: Sandbox
) -> TestResult:
    """Judge a prediction."""
    frame = RETURNED + test.predicted
    predicted = read_reply(frame)  # within a budget
    if not isinstance(predicted, Returned):
        return _WRONG
    value = left_by(test.stripped, right.value)
    if same(predicted.value, value, subject.comparison(tolerance)):
        return _RIGHT
    if test.absolute is not None or test.relative is not None:
        stated = Comparison(atol=test.absolute or 0.0, rtol=test.relative or 0.0)
        # What a test states holds between all numbers, as Python has it.
        if same(predicted.value, right.value, stated) or same(right.value, predicted.value, stated):
            return _RIGHT
        if _are_close(predicted.value, right.value, stated):
            return _RIGHT
    if not subject.checker:
        return _WRONG
    return check_replies(subject.checker, [(test.call, frame, reply)], sandbox)[0]


_looked_at = LRUCache[tuple[Subject, str, int], str]()


def require_answers(subject: Subject, problem: Problem, sandbox: Sandbox) -> None:
    """Raise a `BrokenReferenceError` where the checker of a problem hangs on golden cases, or finds no expected output right."""
    key = (subject, problem.task_id, len(problem.cases))
    said = _looked_at.get(key)
    if said is None:
        said = checker_fault(problem, sandbox, accepting=True)
        _looked_at.put(key, said, len(subject.code) + len(subject.checker))
    if said:
        raise BrokenReferenceError(
            f"Expect the checker of problem {problem.task_id!r} to find expected outputs right within some seconds, actually: {said}. "
            "Check the data with `codea1 problems validate`."
        )


def _are_close(one: object, other: object, stated: Comparison) -> bool:
    """Whether whole or printed numbers differ by no more than a test allows; `same` compares them, and texts, exactly."""
    if type(one) is str and type(other) is str:
        try:
            numbers = float(one), float(other)
        except ValueError:
            return False
        return math.isclose(*numbers, rel_tol=stated.rtol, abs_tol=stated.atol)
    if type(one) is not int or type(other) is not int:
        return False
    apart, size = abs(one - other), max(abs(one), abs(other), 1)
    return apart <= stated.atol or apart / size <= stated.rtol


def check_predictions(
    subject: Subject, tests: Sequence[Test], truths: Mapping[str, Truth], sandbox: Sandbox
) -> None:
    """Ask the checker of a problem about many predictions at once; it remembers what it has said."""
    questions = [
        (test.call, RETURNED + test.predicted, truth.reply)
        for test in tests
        if (truth := truths.get(test.call_text)) and truth.value not in (b"", test.predicted)
    ]
    check_replies(subject.checker, questions, sandbox)
