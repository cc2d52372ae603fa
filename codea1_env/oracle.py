"""What is right: the reference's value of each call, asked once, in two processes, and remembered.

Everything stays in the codec's bytes until two values differ: equal bytes are equal values, without an object
having been made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from codea1_env.judging.comparison import Returned, read_reply, same, without_addresses
from codea1_env.judging.programs import whole_program
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Test
from codea1_env.sandbox import RETURNED, Limits, Outcome, Sandbox, TestResult
from codea1_env.sandbox.inside.analysis import literals
from codea1_env.support.texts import LRUCache

MOST_TIMEOUTS = 2
"""Calls of one suite that may reach a time limit, or end the process; those after them are not made. Otherwise a suite
could cost as many time limits, or loads of a program, as it has tests."""
COSTLY = frozenset({InvalidReason.TIMEOUT, InvalidReason.LIMIT})
"""What is wrong with such calls, where the reference makes them."""

_SMALL = 64  # bytes of a reply that is not looked at before somebody asks: no budget forbids to
_REASONS = {
    Outcome.ERROR: ("raises on the reference", InvalidReason.RAISES),
    Outcome.TIMEOUT: ("takes too long on the reference", InvalidReason.TIMEOUT),
    Outcome.MEMORY: ("needs too much memory on the reference", InvalidReason.LIMIT),
    Outcome.EXITED: ("ends the process", InvalidReason.LIMIT),
    Outcome.UNENCODABLE: ("returns no plain data on the reference", InvalidReason.UNENCODABLE),
}
_NON_DETERMINISTIC = "is non-deterministic: two runs on the reference differ"

T = TypeVar("T")


class BrokenReferenceError(ValueError):
    """The reference of a problem does not run, or does not define its entry point."""


class Subject(NamedTuple):
    """What tests are about: the parts of a `Problem` that a value depends on."""

    task_id: str
    entry_point: str
    code: str
    """The reference, behind what the problem gives."""

    @classmethod
    def of(cls, problem: Problem) -> Subject:
        """The subject of a problem."""
        code = whole_program(problem, problem.reference)
        return cls(problem.task_id, problem.entry_point, code)


@dataclass(frozen=True)
class Truth:
    """What the reference says of a call."""

    reply: bytes = b""
    """The frame that a right program answers; b"" where the call cannot be a test."""
    value: bytes = b""
    """The value in it, encoded."""
    reason: str = ""
    """Why the call cannot be a test; "" if it can."""
    fault: InvalidReason | None = None

    @cached_property
    def source(self) -> str | None:
        """The value as a literal; None if there is none, or too long a one. Only some tests ask for it."""
        return literals.write(self.read.value) if isinstance(self.read, Returned) else None

    @cached_property
    def read(self) -> Returned | TestResult:
        """The value, decoded."""
        return read_reply(self.reply)


class Oracle:
    """Asks references, each in two processes with different hash seeds.

    Args:
        sandbox: Where references run.
        limits: What one call of a reference may use.
    """

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._truths = LRUCache[tuple[Subject, str], Truth]()
        self._loaded = LRUCache[Subject, TestResult]()

    def ask(
        self, wanted: Mapping[Subject, Sequence[Sequence[Test]]]
    ) -> dict[Subject, dict[str, Truth]]:
        """The truth of calls, by their text. Those that no suite may pay for any more are left out.

        Args:
            wanted: Of each reference, suites of tests.

        Raises:
            BrokenReferenceError: A reference does not run.
            InfraError: The sandbox failed.
        """
        known: dict[Subject, dict[str, Truth]] = {}
        for subject, suites in wanted.items():
            found = known[subject] = {}
            for call in {test.call_text for suite in suites for test in suite}:
                truth = self._truths.get((subject, call))
                if truth is not None:
                    found[call] = truth
        asked: list[tuple[Subject, list[Test]]] = [
            (subject, []) for subject in wanted if self._loaded.get(subject) is None
        ]
        while True:
            of = dict(asked)
            for subject, suites in wanted.items():
                calls = to_make(suites, known[subject], lambda truth: truth.fault in COSTLY)
                if calls:
                    of[subject] = calls
            if not of:
                return known
            self._ask(list(of.items()), known)
            asked = []

    def _ask(
        self, asked: Sequence[tuple[Subject, list[Test]]], known: dict[Subject, dict[str, Truth]]
    ) -> None:
        jobs = [
            self._sandbox.submit_encoded(
                subject.code,
                subject.entry_point,
                [test.call for test in tests],
                limits=self._limits,
                hash_seed=seed,
            )
            for subject, tests in asked
            for seed in (0, 1)
        ]
        answers = gather(jobs)
        for (subject, tests), one, other in zip(asked, answers[::2], answers[1::2], strict=True):
            for load in (one.load, other.load):
                if load.outcome is not Outcome.PASS:
                    raise BrokenReferenceError(
                        f"Expect the reference of problem {subject.task_id!r} to run and to define "
                        f"{subject.entry_point}, actually: {load.outcome.value}: {load.message}. "
                        "Check the data with `codea1 problems validate`."
                    )
            self._loaded.put(subject, one.load, len(subject.code))
            found = known[subject]
            # The first may have got further than the second: then the second has timed out.
            for test, first, second in zip(tests, one.replies, other.replies, strict=False):
                truth = _agreed(first, second)
                found[test.call_text] = truth
                size = len(test.call_text) + 4 * len(truth.reply)
                self._truths.put((subject, test.call_text), truth, size)

    def loads(self, subjects: Sequence[Subject]) -> list[bool]:
        """Whether each reference runs and defines its entry point."""
        new = [each for each in dict.fromkeys(subjects) if self._loaded.get(each) is None]
        jobs = [
            self._sandbox.submit_encoded(each.code, each.entry_point, [], limits=self._limits)
            for each in new
        ]
        found = {each: answers.load for each, answers in zip(new, gather(jobs), strict=True)}
        for subject, load in found.items():
            if load.passed:
                self._loaded.put(subject, load, len(subject.code))
        return [each not in found or found[each].passed for each in subjects]


def to_make(
    suites: Iterable[Sequence[Test]], known: Mapping[str, T], is_late: Callable[[T], bool]
) -> list[Test]:
    """The calls that are still to be made: not those of a suite behind `MOST_TIMEOUTS` that reached a limit.

    Which these are depends on each suite alone, not on those beside it.
    """
    calls: dict[str, Test] = {}
    for suite in suites:
        late = 0
        for test in suite:
            found = known.get(test.call_text)
            if found is None:
                calls[test.call_text] = test
            elif is_late(found):
                late += 1
                if late >= MOST_TIMEOUTS:
                    break
    return list(calls.values())


def gather(futures: Sequence[Future[T]]) -> list[T]:
    """The results of all, in order. If one fails, those that have not begun are cancelled."""
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _agreed(one: bytes | TestResult, other: bytes | TestResult) -> Truth:
    """What two runs of one call amount to."""
    if one == other and isinstance(one, bytes) and one.startswith(RETURNED):
        truth = Truth(one, one[len(RETURNED) :])
        if len(one) <= _SMALL or isinstance(truth.read, Returned):
            return truth
        # A right program may say the same in other bytes: a value that cannot be compared is no test.
        return _no_truth(truth.read)
    first, second = _read(one), _read(other)
    for end in (first, second):
        if isinstance(end, TestResult) and end.outcome is Outcome.TIMEOUT:
            return _no_truth(end)
    if isinstance(first, Returned) and isinstance(second, Returned):
        if same(first.value, second.value, 0):
            assert isinstance(one, bytes)
            return Truth(one, one[len(RETURNED) :])
    elif isinstance(first, TestResult) and isinstance(second, TestResult):
        alike = first.outcome is second.outcome
        if alike:
            return _no_truth(first)
    return Truth(reason=_NON_DETERMINISTIC, fault=InvalidReason.NON_DETERMINISTIC)


def _read(reply: bytes | TestResult) -> Returned | TestResult:
    return reply if isinstance(reply, TestResult) else read_reply(reply)


def _no_truth(end: TestResult) -> Truth:
    reason, fault = _REASONS.get(end.outcome, ("fails on the reference", InvalidReason.LIMIT))
    if end.outcome is Outcome.ERROR and end.error == ModuleNotFoundError.__name__:
        fault = InvalidReason.NOT_INSTALLED
    message = without_addresses(end.message)
    return Truth(reason=f"{reason}: {message}" if message else reason, fault=fault)
