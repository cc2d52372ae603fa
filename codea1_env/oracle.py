"""The oracle: the reference's value of each call, asked once and remembered.

Everything stays in the codec's bytes until two values differ: equal bytes are equal values, without an object
having been made.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from codea1_env.compare import Returned, read_reply, same, without_addresses
from codea1_env.problem_sets.contracts import refused
from codea1_env.reading.hash_seeds import MANY, seeds_of
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.reading.keeping import may_keep
from codea1_env.responses import Test
from codea1_env.sandbox import (
    RETURNED,
    UNANSWERED,
    Answers,
    Comparison,
    Limits,
    Outcome,
    RunRules,
    Sandbox,
    TestResult,
)
from codea1_env.sandbox.inside.analysis import literals
from codea1_env.subjects import Subject
from codea1_env.support.texts import ENTRY_CHARS, REMEMBERED_CHARS, LRUCache, in_batches

MOST_SLOW = 4
"""Calls of one suite that may need more than a small share of the reference's time; those behind them are not made."""
_LOADS = 3
"""Times that a reference may be loaded which reaches a time limit. It ends a run of hours, and on a shared machine CPU time
may hold that of others."""

# An encoded float whose exponent is that of inf and nan; what else may hold one.
_MAY_BE_INFINITE = re.compile(rb"f.{6}[\xf0-\xff][\x7f\xff]|[cGHKL]", re.DOTALL)
_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"")
_INFINITE = frozenset({"inf", "infinity", "nan"})
_MOST_KEPT = REMEMBERED_CHARS // 4  # characters of the answers of one reference
_FINITE = frozenset((b"", b"j", b"s", b"N", b"T", b"F", b"I", b"J"))
"""How encoded integers, texts, None, True, False and rows of integers begin."""
_SMALL = 64  # bytes of a reply that is not looked at before somebody asks: no budget forbids to
_ENDS = {
    Outcome.ERROR: ("raises on the reference", InvalidReason.RAISES),
    Outcome.TIMEOUT: ("takes too long on the reference", InvalidReason.TIMEOUT),
    Outcome.MEMORY: ("needs too much memory on the reference", InvalidReason.LIMIT),
    Outcome.EXITED: ("ends the process", InvalidReason.LIMIT),
    Outcome.UNENCODABLE: ("returns no plain data on the reference", InvalidReason.UNENCODABLE),
}
TOGETHER = "of the contract and the reference together"
NON_DETERMINISTIC = "is non-deterministic: two runs on the reference differ"

T = TypeVar("T")


class BrokenReferenceError(ValueError):
    """The reference of a problem does not run, or does not define its entry point; or its checker hangs."""


class Truth(NamedTuple):
    """The reference's answer to a call."""

    reply: bytes = b""
    """The frame that a right program answers; b"" where the call cannot be a test."""
    value: bytes = b""
    """The value in it, encoded."""
    reason: str = ""
    """Why the call cannot be a test; "" if it can."""
    fault: InvalidReason | None = None
    unjudged: bool = False
    """Whether nothing is known of it, since the sandbox failed at the reference. It is asked again another time."""
    slow: bool = False
    """Whether the reference needs more than a small share of its time. Programs then get the whole time of a call at once."""

    @property
    def source(self) -> str | None:
        """The value as a literal; None if it has none or is too long."""
        read = self.read
        return literals.write(read.value) if isinstance(read, Returned) else None

    @property
    def is_finite(self) -> bool:
        """Whether the value is free of inf and nan."""
        value = self.value
        if value[:1] in _FINITE or not _MAY_BE_INFINITE.search(value):
            return True
        read = self.read
        return not isinstance(read, Returned) or not _holds_infinity(read.value)

    @property
    def read(self) -> Returned | TestResult:
        """The value, decoded."""
        return read_reply(self.reply)


def _holds_infinity(value: Any) -> bool:
    """Whether plain data holds inf or nan. It is no deeper than the codec allows."""
    if isinstance(value, (float, complex)):
        return not cmath.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_holds_infinity, (*value, *value.values())))
    if isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray, range)):
        return any(map(_holds_infinity, value))
    return False


def is_infinite(call: str) -> bool:
    """Whether an argument of a call, in its one form, is or holds inf or nan, or a text that says no more than that."""
    return any(text[1:-1].strip(" +-").lower() in _INFINITE for text in _TEXTS.findall(call))


class _Answered(NamedTuple):
    """Answers of a reference to calls."""

    truths: dict[str, Truth]
    size: int
    """Characters, about."""


# For all oracles of this process: it is known of the text alone.
_seeds = LRUCache[str, int]()


class Oracle:
    """Asks references under two hash seeds, or four; see `codea1_env.reading.hash_seeds`."""

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._truths = LRUCache[Subject, _Answered]()

    def ask(
        self, wanted: Mapping[Subject, Sequence[Sequence[Test]]]
    ) -> dict[Subject, dict[str, Truth]]:
        """Return the truth of calls, by their text. It depends on the call alone.

        Only the first `MOST_SLOW` slow calls of a suite, in the order written, are made with the whole time: see `is_made`.
        """
        answered = {subject: self._truths.get(subject) for subject in wanted}
        known = {subject: dict(each.truths) if each else {} for subject, each in answered.items()}
        for subject, refusals in self._refused_inputs(wanted).items():
            known[subject] |= refusals
        new = {
            subject: unknown
            for subject, suites in wanted.items()
            if (unknown := _unknown(suites, known[subject])) or answered[subject] is None
        }
        self._make(new, known, at_once=())
        slow = {
            subject: again
            for subject, suites in wanted.items()
            if (again := _to_make_again(suites, known[subject]))
        }
        self._make(slow, known, at_once=None)
        return {
            subject: {
                test.call_text: known[subject][test.call_text] for suite in suites for test in suite
            }
            for subject, suites in wanted.items()
        }

    def _refused_inputs(
        self, wanted: Mapping[Subject, Sequence[Sequence[Test]]]
    ) -> dict[Subject, dict[str, Truth]]:
        """Return the truth of inputs that a validator refuses, or of which it says nothing."""
        validators = {
            subject: asked for subject in wanted if (asked := subject.validator) is not None
        }
        if not validators:
            return {}
        inputs: dict[Subject, list[Sequence[Test]]] = {}
        for subject, each in validators.items():
            inputs.setdefault(each, []).extend(wanted[subject])
        said = self.ask(inputs)
        return {
            subject: {
                call: truth._replace(reason=_of_validator(truth))
                for call, truth in said[each].items()
                if truth.fault is not None or truth.unjudged
            }
            for subject, each in validators.items()
        }

    def _make(
        self,
        asked: Mapping[Subject, Sequence[Test]],
        known: Mapping[Subject, dict[str, Truth]],
        at_once: tuple[()] | None,
    ) -> None:
        """Make calls, and enter what comes of them."""
        seeds, parts = self._seeds_for(list(asked)), self._parts(asked)
        started = [
            self._started(subject, part, seed, at_once)
            for subject in asked
            for seed in range(seeds[subject])
            for part in parts[subject]
        ]
        replies = iter(gather(started))
        for subject, tests in asked.items():
            answers = []
            for seed in range(seeds[subject]):
                found = _joined([next(replies) for _ in parts[subject]])
                found = self._loaded(subject, seed, parts[subject], found, at_once)
                answers.append(self._alone(subject, seed, tests, found, at_once))
            truths: dict[str, Truth] = {}
            if any(answer.load.outcome is Outcome.UNJUDGED for answer in answers):
                truths = {test.call_text: _UNJUDGED for test in tests}
            else:
                for answer in answers:
                    if not answer.load.passed:
                        raise broken_reference(subject.task_id, subject.entry_point, answer.load)
                truths = _truths_of(subject, tests, answers, slow=at_once is None)
                self._remember(subject, truths)
            known[subject].update(truths)

    def _started(
        self, subject: Subject, tests: Sequence[Test], seed: int, at_once: tuple[()] | None
    ) -> Future[Answers]:
        return self._sandbox.submit(
            self._sandbox.run_calls,
            *subject.program,
            [test.call for test in tests],
            limits=self._limits.with_room_for(len(tests)),
            hash_seed=seed,
            rules=RunRules(at_once, allowance=math.inf, again=False),
        )

    def _loaded(
        self,
        subject: Subject,
        seed: int,
        parts: Sequence[Sequence[Test]],
        answers: Answers,
        at_once: tuple[()] | None,
    ) -> Answers:
        """Ask again, some times, where the reference reached a time limit before the first call."""
        for _ in range(_LOADS - 1):
            if answers.load.outcome is not Outcome.TIMEOUT:
                break
            started = [self._started(subject, part, seed, at_once) for part in parts]
            answers = _joined(gather(started))
        return answers

    def _alone(
        self,
        subject: Subject,
        seed: int,
        tests: Sequence[Test],
        answers: Answers,
        at_once: tuple[()] | None,
    ) -> Answers:
        """Make calls again, each in a process of its own, that reached a limit which others before them had a part in."""
        again = [number for number, reply in enumerate(answers.replies) if is_spent(reply)]
        if len(tests) == 1 or not again:
            return answers
        started = [self._started(subject, [tests[number]], seed, at_once) for number in again]
        replies = list(answers.replies)
        for number, found in zip(again, gather(started), strict=True):
            replies[number] = found.replies[0] if found.load.passed else found.load
        return replace(answers, replies=replies)

    def _parts(
        self, asked: Mapping[Subject, Sequence[Test]]
    ) -> dict[Subject, list[Sequence[Test]]]:
        """Divide calls by the processes that make them: each call has its own where the reference may keep something."""
        keeps = may_keep([subject.code for subject in asked], self._sandbox)
        return {
            subject: [[test] for test in tests]
            if tests and keeps[subject.code] and not subject.prints
            else [tests]
            for subject, tests in asked.items()
        }

    def _remember(self, subject: Subject, truths: dict[str, Truth]) -> None:
        """Keep the known answers of a reference."""
        old = self._truths.get(subject)
        if old is None or old.size > _MOST_KEPT:
            old = _Answered({}, len(subject.code))
        judged = {call: truth for call, truth in truths.items() if not truth.unjudged}
        old.truths.update(judged)
        replies = sum([len(truth.reply) for truth in judged.values()])
        size = old.size + sum(map(len, judged)) + 4 * replies + ENTRY_CHARS * len(judged)
        self._truths.put(subject, _Answered(old.truths, size), size)

    def _seeds_for(self, subjects: Sequence[Subject]) -> dict[Subject, int]:
        """Return the number of hash seeds for each reference."""
        numbers = {each.code: _seeds.get(each.code) for each in subjects}
        new = [code for code, number in numbers.items() if number is None]
        found = in_batches(
            new, len, lambda batch: self._sandbox.analyse(seeds_of, batch), lambda code, error: MANY
        )
        for code, number in zip(new, found, strict=True):
            numbers[code] = number
            _seeds.put(code, number, len(code))
        return {each: numbers[each.code] or MANY for each in subjects}

    def loads(self, subjects: Sequence[Subject]) -> list[bool]:
        """Whether each reference runs and defines its entry point."""
        new = [each for each in dict.fromkeys(subjects) if self._truths.get(each) is None]
        jobs = [
            self._sandbox.submit(self._sandbox.run_calls, *each.program, [], limits=self._limits)
            for each in new
        ]
        found = zip(new, gather(jobs), strict=True)
        broken = {subject for subject, answers in found if not answers.load.passed}
        for subject in set(new) - broken:
            self._remember(subject, {})
        return [subject not in broken for subject in subjects]


def _unknown(suites: Iterable[Iterable[Test]], known: Mapping[str, Truth]) -> list[Test]:
    """Return the calls that nothing is known of, each once."""
    calls = {test.call_text: test for suite in suites for test in suite}
    return [test for call, test in calls.items() if call not in known]


def is_made(test: Test, truths: Mapping[str, Truth], slow: set[str]) -> bool:
    """Whether a call of a suite is made, and note it among the slow ones of its suite before it, if it is slow."""
    if truths[test.call_text].slow:
        if len(slow) >= MOST_SLOW and test.call_text not in slow:
            return False
        slow.add(test.call_text)
    return True


def _to_make_again(suites: Iterable[Iterable[Test]], known: Mapping[str, Truth]) -> list[Test]:
    """Return the slow calls that are to be made with the whole time and were not yet."""
    again: dict[str, Test] = {}
    for suite in suites:
        slow: set[str] = set()
        made = [test for test in suite if is_made(test, known, slow)]
        again |= {test.call_text: test for test in made if known[test.call_text] is _SLOW}
    return list(again.values())


def is_spent(reply: bytes | TestResult) -> bool:
    """Whether a call came to the end of memory, of the stack, or of what may be held, of which calls before it may have taken a part."""
    if isinstance(reply, bytes):
        if reply.startswith(RETURNED):  # most are: nothing is decoded for them
            return False
        read = read_reply(reply)
        return isinstance(read, TestResult) and (
            read.outcome is Outcome.MEMORY or read.error == "RecursionError"
        )
    return reply.outcome in (Outcome.MEMORY, Outcome.OUTPUT_LIMIT)


def _joined(parts: Sequence[Answers]) -> Answers:
    """Join the answers of several processes; one that does not load stands for all."""
    first = next((each for each in parts if not each.load.passed), parts[0])
    if len(parts) == 1 or not first.load.passed:
        return first
    return replace(first, replies=[reply for each in parts for reply in each.replies])


def gather(futures: Sequence[Future[T]]) -> list[T]:
    """Return all results in order. If one fails, cancel those that have not begun."""
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


_UNJUDGED = Truth(unjudged=True)
_SLOW = Truth(b"", b"", "takes too long on the reference", InvalidReason.TIMEOUT, slow=True)
"""Truth of a call that gave no answer in a small share of the time, and was not made again."""


def _truths_of(
    subject: Subject, tests: Sequence[Test], answers: Sequence[Answers], slow: bool
) -> dict[str, Truth]:
    """Return the truth of calls from the runs of a reference; `slow` says that they are known to be."""
    exactly = Comparison(subject.rule, 0.0, 0.0)
    truths = {}
    for test, first, *others in zip(tests, *(each.replies for each in answers), strict=True):
        if not slow and UNANSWERED in (first, *others):
            truths[test.call_text] = _SLOW
            continue
        truth = _agreed(first, others, exactly) if others else _truth(first)
        if subject.prints and truth.fault is None and _is_blank(truth):
            truth = _PRINTS_NOTHING
        if truth.fault is InvalidReason.TIMEOUT and subject.contract and not subject.prints:
            truth = truth._replace(reason=f"{truth.reason} ({TOGETHER})")
        truths[test.call_text] = truth._replace(slow=True) if slow else truth
    return truths


def _agreed(
    first: bytes | TestResult, others: Sequence[bytes | TestResult], comparison: Comparison
) -> Truth:
    """Return the truth from several runs of one call."""
    truth = _truth(first)
    for other in others if not truth.unjudged else ():
        if isinstance(other, TestResult) and other.outcome is Outcome.UNJUDGED:
            return _UNJUDGED
        if other != first and truth.fault is None:
            truth = _compared(first, other, comparison)
    return truth


def _truth(reply: bytes | TestResult) -> Truth:
    """Return the truth from one run."""
    if isinstance(reply, TestResult):
        return _UNJUDGED if reply.outcome is Outcome.UNJUDGED else _no_truth(reply)
    if reply.startswith(RETURNED):
        truth = Truth(reply, reply[len(RETURNED) :])
        # A right program may say the same in other bytes: a value that cannot be compared is no test.
        if len(reply) <= _SMALL or isinstance(truth.read, Returned):
            return truth
    end = read_reply(reply)
    return Truth(reply, reply[len(RETURNED) :]) if isinstance(end, Returned) else _no_truth(end)


def _compared(one: bytes | TestResult, other: bytes | TestResult, comparison: Comparison) -> Truth:
    """Return the truth from two runs with different replies."""
    first, second = (
        each if isinstance(each, TestResult) else read_reply(each) for each in (one, other)
    )
    ends = [end for end in (first, second) if isinstance(end, TestResult)]
    late = [end for end in ends if end.outcome is Outcome.TIMEOUT]
    if late or len({end.outcome for end in ends}) < len(ends):
        return _no_truth((late or ends)[0])
    both = isinstance(first, Returned) and isinstance(second, Returned)
    if isinstance(one, bytes) and both and same(first.value, second.value, comparison):  # type: ignore[union-attr]
        return Truth(one, one[len(RETURNED) :])
    return _CHANGES


_PRINTS_NOTHING = Truth(reason="the reference prints nothing", fault=InvalidReason.NO_LITERAL)


def _is_blank(truth: Truth) -> bool:
    return (
        not truth.unjudged and isinstance(value := truth.read, Returned) and not value.value.strip()
    )


def _of_validator(truth: Truth) -> str:
    return truth.reason.replace("on the reference", "on the validator")


_CHANGES = Truth(reason=NON_DETERMINISTIC, fault=InvalidReason.NON_DETERMINISTIC)


def _no_truth(end: TestResult) -> Truth:
    """Truth of a call that ended so on the reference: it is no test."""
    outside = refused(end)
    if outside is not None:
        return Truth(b"", b"", *outside)
    words, fault = _ENDS.get(end.outcome, ("fails on the reference", InvalidReason.LIMIT))
    if end.outcome is Outcome.ERROR and end.error == ModuleNotFoundError.__name__:
        fault = InvalidReason.NOT_INSTALLED
    message = without_addresses(end.message)
    return Truth(b"", b"", f"{words}: {message}" if message else words, fault)


def broken_reference(task_id: str, entry_point: str, load: TestResult) -> BrokenReferenceError:
    """Return the error of a reference that did not load."""
    return BrokenReferenceError(
        f"Expect the reference of problem {task_id!r} to run and to define {entry_point}, actually: "
        f"{load.outcome.value}: {load.message}. Check the data with `codea1 problems validate`."
    )
