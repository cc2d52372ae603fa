"""Runs the programs of players on the calls that attack them; judges predictions.

What a program returned is kept from one batch to the next only where `RefereeConfig.reuse_programs` says so: a program may
remember earlier calls, or depend on time and chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from codea1_env.judging.verdicts import Counters
from codea1_env.oracle import Attack, Subject, Truth, make_calls
from codea1_env.responses import Test
from codea1_env.sandbox import RETURNED, Answers, Comparison, Limits, Outcome, Sandbox, TestResult
from codea1_env.support.texts import LRUCache

_COSTLY = frozenset({Outcome.TIMEOUT, Outcome.EXITED, Outcome.SIGNALLED, Outcome.FORBIDDEN})
_RESULT_CHARS = 150  # what a remembered result costs, about


class ProgramResults(NamedTuple):
    """How a program ran: loading it, and its verdict on each call that was made, by the call's text."""

    load: TestResult
    calls: Mapping[str, TestResult]


class ProgramRuns:
    """Makes the calls of suites on programs, and where `reuse` each call on a program only once."""

    def __init__(self, sandbox: Sandbox, limits: Limits, tolerance: float, reuse: bool) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._tolerance = tolerance
        self._reuse = reuse
        self._kept = LRUCache[Attack, ProgramResults]()

    def run(
        self,
        suites: Mapping[Attack, Sequence[Sequence[Test]]],
        truths: Mapping[Subject, Mapping[str, Truth]],
        count: Callable[[Counters], None],
    ) -> dict[Attack, ProgramResults]:
        """Run each program once, on the calls of all suites."""
        kept = {attack: each for attack in suites if (each := self._kept.get(attack)) is not None}
        loads = {attack: each.load for attack, each in kept.items()}
        known = {attack: dict(kept[attack].calls) if attack in kept else {} for attack in suites}

        def enter(attack: Attack, tests: Sequence[Test], answers: Sequence[Answers]) -> bool:
            [answer] = answers
            load = loads.get(attack)
            spent = answer.cpu_time + (load.cpu_time if load else 0.0)
            load = loads[attack] = replace(repeatable(load or answer.load), cpu_time=spent)
            results, right, subject = known[attack], truths[attack.subject], attack.subject
            comparison = subject.comparison(self._tolerance)
            unlike: dict[str, tuple[bytes, bytes, bytes]] = {}
            # Fewer replies than calls: one reached a time limit.
            for test, reply in zip(tests, answer.replies, strict=False):
                call = test.call_text
                if isinstance(reply, TestResult):
                    results[call] = repeatable(reply)
                    continue
                expected = right[call].reply
                results[call] = judge_reply(reply, expected, comparison)
                if subject.checker and not results[call].passed:
                    unlike[call] = (test.call, reply, expected)
            if unlike:
                said = check_replies(subject.checker, [*unlike.values()], self._sandbox)
                results |= zip(unlike, said, strict=True)
            return load.passed

        new = suites.keys() - kept.keys()
        made = make_calls(self._sandbox, self._limits, suites, known, _is_late, enter, new)
        found = {}
        for attack in suites:
            load = loads[attack]
            results = made[attack] if load.passed else known[attack]
            count(Counters.of((each.outcome for each in results.values()), load.cpu_time))
            found[attack] = ProgramResults(load, results if load.passed else {})
            if self._reuse and load.passed:
                self._keep(attack, load, known[attack])
        return found

    def _keep(self, attack: Attack, load: TestResult, calls: Mapping[str, TestResult]) -> None:
        judged = {
            text: each for text, each in calls.items() if each.outcome is not Outcome.UNJUDGED
        }
        memory = ProgramResults(replace(load, cpu_time=0.0), judged)
        self._kept.put(attack, memory, len(attack.code) + _RESULT_CHARS * len(judged))


def _is_late(result: TestResult) -> bool:
    """Whether a call cost a process, and so more than other calls."""
    outcome = result.outcome
    if outcome is Outcome.PASS or outcome is Outcome.FAIL:  # most are
        return False
    return outcome in _COSTLY and result.error != "SystemExit"


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
    if same(predicted.value, right.value, subject.comparison(tolerance)):
        return _RIGHT
    if test.absolute or test.relative:
        stated = Comparison(atol=test.absolute or 0.0, rtol=test.relative or 0.0)
        # What a test states holds between numbers of which either is a float, as Python has it.
        if same(predicted.value, right.value, stated) or same(right.value, predicted.value, stated):
            return _RIGHT
    if not subject.checker:
        return _WRONG
    return check_replies(subject.checker, [(test.call, frame, reply)], sandbox)[0]


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
