"""Runs the programs of players on the calls that attack them, and remembers what came of it; judges predictions.

What a program returned is kept from one batch to the next where its text says that a call depends on nothing but its
arguments (`codea1_env.reading.steadiness`): not on state, time, chance or identity. Another program may remember earlier
calls, and is run again. Players that choose among the same programs, as tabular ones do, have them judged once.
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
from codea1_env.judging.repeats import are_free
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


class _ProgramMemory(NamedTuple):
    """What is remembered of a program."""

    load: TestResult
    calls: dict[str, TestResult]
    is_free: bool | None = None
    """Whether that may be used again; None before anybody has asked."""


class ProgramRuns:
    """Makes the calls of suites on programs."""

    def __init__(self, sandbox: Sandbox, limits: Limits, tolerance: float) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._tolerance = tolerance
        self._kept = LRUCache[Attack, _ProgramMemory]()

    def run(
        self,
        suites: Mapping[Attack, Sequence[Sequence[Test]]],
        truths: Mapping[Subject, Mapping[str, Truth]],
        count: Callable[[Counters], None],
    ) -> dict[Attack, ProgramResults]:
        """Run each program once, on the calls of all suites."""
        kept = self._usable(suites)
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

        running = {
            attack: some
            for attack, some in suites.items()
            if attack not in kept or loads[attack].passed
        }
        new = suites.keys() - kept.keys()
        made = make_calls(self._sandbox, self._limits, running, known, _is_late, enter, new)
        found = {}
        for attack in suites:
            load = loads[attack]
            results = made[attack] if load.passed else known[attack]
            count(Counters.of((each.outcome for each in results.values()), load.cpu_time))
            found[attack] = ProgramResults(load, results if load.passed else {})
            self._keep(attack, load, known[attack], kept.get(attack))
        return found

    def _usable(self, attacks: Mapping[Attack, object]) -> dict[Attack, _ProgramMemory]:
        kept = {attack: each for attack in attacks if (each := self._kept.get(attack)) is not None}
        unread = [attack for attack, each in kept.items() if each.is_free is None]
        free = are_free([(each.code, each.subject.entry_point) for each in unread], self._sandbox)
        for attack, is_free in zip(unread, free, strict=True):
            kept[attack] = kept[attack]._replace(is_free=is_free)
            self._put(attack, kept[attack])
        return {attack: each for attack, each in kept.items() if each.is_free}

    def _keep(
        self,
        attack: Attack,
        load: TestResult,
        calls: dict[str, TestResult],
        used: _ProgramMemory | None,
    ) -> None:
        if load.outcome is Outcome.UNJUDGED:
            return
        calls = {text: each for text, each in calls.items() if each.outcome is not Outcome.UNJUDGED}
        if used is not None:
            if len(calls) > len(used.calls):
                self._put(attack, used._replace(calls=calls))
            return
        known = self._kept.get(attack)
        if known is None:
            self._put(attack, _ProgramMemory(replace(load, cpu_time=0.0), calls))

    def _put(self, attack: Attack, kept: _ProgramMemory) -> None:
        if kept.is_free is False:
            kept = kept._replace(calls={})
        self._kept.put(attack, kept, len(attack.code) + _RESULT_CHARS * len(kept.calls))


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
