"""What is right: the reference's value of each call, asked once, in two processes, and remembered.

Everything stays in the codec's bytes until two values differ: equal bytes are equal values, without an object
having been made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from codea1_env.judging.comparison import Returned, read_reply, same, without_addresses
from codea1_env.problem_sets.contracts import contracted, refused
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.responses import Test, whole_program
from codea1_env.sandbox import RETURNED, Answers, CallResult, Limits, Outcome, Sandbox, TestResult
from codea1_env.sandbox.inside.analysis import literals
from codea1_env.support.texts import LRUCache

MOST_TIMEOUTS = 2
"""Calls of one suite that may reach a time limit, or end the process; those after them are not made. Otherwise a suite
could cost as many time limits, or loads of a program, as it has tests."""
COSTLY = frozenset({InvalidReason.TIMEOUT, InvalidReason.LIMIT})
"""What is wrong with such calls, where the reference makes them."""

_SMALL = 64  # bytes of a reply that is not looked at before somebody asks: no budget forbids to
_ENDS = {
    Outcome.FAIL: ("contradicts the reference", InvalidReason.WRONG_VALUE),
    Outcome.ERROR: ("raises on the reference", InvalidReason.RAISES),
    Outcome.TIMEOUT: ("takes too long on the reference", InvalidReason.TIMEOUT),
    Outcome.MEMORY: ("needs too much memory on the reference", InvalidReason.LIMIT),
    Outcome.EXITED: ("ends the process", InvalidReason.LIMIT),
    Outcome.UNENCODABLE: ("", InvalidReason.UNENCODABLE),
    Outcome.SYNTAX_ERROR: ("", InvalidReason.UNPARSABLE),
}
TOGETHER = "of the contract and the reference together"
NON_DETERMINISTIC = "is non-deterministic: two runs on the reference differ"

T = TypeVar("T")


class BrokenReferenceError(ValueError):
    """The reference of a problem does not run, or does not define its entry point."""


class Subject(NamedTuple):
    """What tests are about: the parts of a `Problem` that a value depends on."""

    task_id: str
    entry_point: str
    code: str
    """The reference, behind what the problem gives."""
    contract: str = ""
    """Which calls the problem speaks of, see `Problem.contract`."""

    @classmethod
    def of(cls, problem: Problem, with_contract: bool = True) -> Subject:
        """Return the subject of a problem, with its contract or without."""
        code = whole_program(problem, problem.reference)
        contract = problem.contract if with_contract else ""
        return cls(problem.task_id, problem.entry_point, code, contract)

    @property
    def runs(self) -> tuple[str, str]:
        """The program that runs, and the function of it that is called."""
        return contracted(self.code, self.entry_point, self.contract)


class Attack(NamedTuple):
    """A program of a player, and what it is judged by."""

    subject: Subject
    code: str

    @property
    def runs(self) -> tuple[str, str]:
        """The program that runs, and the function of it that is called."""
        return self.code, self.subject.entry_point


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
        self._loaded = LRUCache[Subject, bool]()

    def ask(
        self, wanted: Mapping[Subject, Sequence[Sequence[Test]]]
    ) -> dict[Subject, dict[str, Truth]]:
        """Return the truth of calls, by their text. Those that no suite may pay for any more are left out.

        Args:
            wanted: Of each reference, suites of tests.

        Raises:
            BrokenReferenceError: A reference does not run.
            InfraError: The sandbox failed.
        """
        known: dict[Subject, dict[str, Truth]] = {}
        for subject, suites in wanted.items():
            calls = {test.call_text for suite in suites for test in suite}
            truths = {call: self._truths.get((subject, call)) for call in calls}
            known[subject] = {call: truth for call, truth in truths.items() if truth is not None}

        def enter(subject: Subject, tests: Sequence[Test], answers: Sequence[Answers]) -> bool:
            for answer in answers:
                if not answer.load.passed:
                    raise broken_reference(subject.task_id, subject.entry_point, answer.load)
            self._loaded.put(subject, True, len(subject.code))
            # The first may have got further than the second: then the second has timed out.
            for test, *replies in zip(tests, *(each.replies for each in answers), strict=False):
                truth = _agreed(*replies)
                if truth.fault is InvalidReason.TIMEOUT and subject.contract:
                    truth = replace(truth, reason=f"{truth.reason} ({TOGETHER})")
                known[subject][test.call_text] = truth
                size = len(test.call_text) + 4 * len(truth.reply)
                self._truths.put((subject, test.call_text), truth, size)
            return True

        new = {subject for subject in wanted if self._loaded.get(subject) is None}
        make_calls(self._sandbox, self._limits, wanted, known, _is_costly, enter, new, seeds=(0, 1))
        return known

    def loads(self, subjects: Sequence[Subject]) -> list[bool]:
        """Whether each reference runs and defines its entry point."""
        new = [each for each in dict.fromkeys(subjects) if self._loaded.get(each) is None]
        jobs = [self._sandbox.submit_encoded(*each.runs, [], limits=self._limits) for each in new]
        found = zip(new, gather(jobs), strict=True)
        broken = {subject for subject, answers in found if not answers.load.passed}
        for subject in set(new) - broken:
            self._loaded.put(subject, True, len(subject.code))
        return [subject not in broken for subject in subjects]


P = TypeVar("P", Subject, Attack)


def make_calls(
    sandbox: Sandbox,
    limits: Limits,
    suites: Mapping[P, Sequence[Sequence[Test]]],
    known: Mapping[P, Mapping[str, T]],
    is_late: Callable[[T], bool],
    enter: Callable[[P, Sequence[Test], Sequence[Answers]], bool],
    new: Collection[P],
    seeds: Sequence[int] = (0,),
) -> None:
    """Make the calls of suites, each program in as few runs as can be.

    Args:
        sandbox: Where programs run.
        limits: What a call may use.
        suites: Programs, each with suites of tests.
        known: What came of calls, by their text.
        is_late: See `to_make`.
        enter: Enters what came of some calls of a program, once for each seed, into `known`; whether it can go on.
        new: Programs that run even if there is nothing to call.
        seeds: Of the hashes in the processes that a program runs in.
    """
    left = dict(suites)
    while True:
        asked = {each: to_make(some, known[each], is_late) for each, some in left.items()}
        asked = {each: calls for each, calls in asked.items() if calls or each in new}
        if not asked:
            return
        new = ()
        answers = gather(
            [
                sandbox.submit_encoded(
                    *each.runs,
                    [test.call for test in calls],
                    limits=limits,
                    hash_seed=seed,
                )
                for each, calls in asked.items()
                for seed in seeds
            ]
        )
        of_each = zip(*[iter(answers)] * len(seeds), strict=True)
        for (program, calls), found in zip(asked.items(), of_each, strict=True):
            if not enter(program, calls, found):
                del left[program]


def to_make(
    suites: Iterable[Sequence[Test]], known: Mapping[str, T], is_late: Callable[[T], bool]
) -> list[Test]:
    """Return the calls that are still to be made: not those of a suite behind `MOST_TIMEOUTS` that reached a limit.

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
    """Return the results of all, in order. If one fails, those that have not begun are cancelled."""
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _is_costly(truth: Truth) -> bool:
    return truth.fault in COSTLY


def _agreed(one: bytes | TestResult, other: bytes | TestResult) -> Truth:
    """Return what two runs of one call amount to."""
    if one == other and isinstance(one, bytes) and one.startswith(RETURNED):
        truth = Truth(one, one[len(RETURNED) :])
        if len(one) <= _SMALL or isinstance(truth.read, Returned):
            return truth
        # A right program may say the same in other bytes: a value that cannot be compared is no test.
        return _no_truth(truth.read)
    first, second = (
        each if isinstance(each, TestResult) else read_reply(each) for each in (one, other)
    )
    ends = [end for end in (first, second) if isinstance(end, TestResult)]
    late = [end for end in ends if end.outcome is Outcome.TIMEOUT]
    if late or len({end.outcome for end in ends}) < len(ends):
        return _no_truth((late or ends)[0])
    values = [each.value for each in (first, second) if isinstance(each, Returned)]
    if isinstance(one, bytes) and len(values) == 2 and same(values[0], values[1], 0):
        return Truth(one, one[len(RETURNED) :])
    return Truth(reason=NON_DETERMINISTIC, fault=InvalidReason.NON_DETERMINISTIC)


def _no_truth(end: TestResult) -> Truth:
    unencodable = end.outcome is Outcome.UNENCODABLE
    otherwise = "returns no plain data" if unencodable else "fails"
    return Truth(b"", b"", *explained(end, f"{otherwise} on the reference"))


def explained(end: TestResult | CallResult, otherwise: str) -> tuple[str, InvalidReason]:
    """Why something that ended so on the reference is no test, in words and as one of the closed list.

    Args:
        end: How it ended.
        otherwise: Words for what ends seldom so.
    """
    outside = refused(end)
    if outside is not None:
        return outside
    words, fault = _ENDS.get(end.outcome, ("", InvalidReason.LIMIT))
    if end.outcome is Outcome.ERROR and end.error == ModuleNotFoundError.__name__:
        fault = InvalidReason.NOT_INSTALLED
    reason, message = words or otherwise, without_addresses(end.message)
    return (f"{reason}: {message}" if message else reason), fault


def broken_reference(task_id: str, entry_point: str, load: TestResult) -> BrokenReferenceError:
    """Return the error of a reference that was loaded so."""
    return BrokenReferenceError(
        f"Expect the reference of problem {task_id!r} to run and to define {entry_point}, actually: "
        f"{load.outcome.value}: {load.message}. Check the data with `codea1 problems validate`."
    )
