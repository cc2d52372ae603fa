"""What the reference solution says of tests: asked once for each test, and remembered.

A test counts only if it passes on the reference in two processes with different hash seeds, within a share
of the time that a program gets, and if it depends on what the function does. For ``assert f(...) == ...``
the reference is asked for the value, so that a wrong prediction can be put right. Programs that are judged
are not run here, unless one of them was put in the reference's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

from codea1_env.evaluation.test_programs.facts import equality, facts, source_of
from codea1_env.faults import Fault, missing_package
from codea1_env.problems import Problem
from codea1_env.reference import BrokenReferenceError as BrokenReferenceError
from codea1_env.remembered import Remembered
from codea1_env.sandbox import (
    AnalysisError,
    CallResult,
    Job,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)

Status = Literal["kept", "corrected", "invalid"]
WrongOracle = Literal["correct", "drop"]

_BATCH_CHARS = 1 << 18
_CONFIRMATIONS = 3
_UNDECIDABLE = (Outcome.UNENCODABLE, Outcome.OUTPUT_LIMIT)
_REASONS = {
    Outcome.FAIL: "contradicts the reference",
    Outcome.ERROR: "raises on the reference",
    Outcome.TIMEOUT: "takes too long on the reference",
    Outcome.MEMORY: "needs too much memory on the reference",
    Outcome.EXITED: "ends the process",
}
_FAULTS = {
    Outcome.FAIL: Fault.WRONG_VALUE,
    Outcome.ERROR: Fault.RAISES,
    Outcome.TIMEOUT: Fault.TIMEOUT,
    Outcome.UNENCODABLE: Fault.UNENCODABLE,
    Outcome.SYNTAX_ERROR: Fault.UNPARSABLE,
}
_NON_DETERMINISTIC = "is non-deterministic: two runs on the reference differ"
# Programs that do nothing of what was asked; a test that passes on both tests nothing.
_NULL_RETURNS = "def {}(*args, **kwargs):\n    return object()\n"
_NULL_RAISES = "class _Null(Exception):\n    pass\n\n\ndef {}(*args, **kwargs):\n    raise _Null\n"

T = TypeVar("T")


_Tests = Mapping["Subject", Sequence[str]]


@dataclass(frozen=True)
class Ruling:
    """What the reference says of a test."""

    status: Status
    text: str
    """The test as it is kept; a corrected one with the reference's value."""
    key: str
    """The same for tests that say the same in other words."""
    reason: str = ""
    """Why it is not kept as it was; "" if it is."""
    fault: Fault | None = None
    """The kind of the reason; None if it is kept."""
    stable: bool = True
    """Nothing but the function's value can decide it, so that it needs no second look."""


@dataclass(frozen=True)
class _Returned:
    """What the reference returned for a call: a value with its source, or why there is none."""

    value: Any
    source: str | None
    reason: str = ""
    fault: Fault | None = None
    undecidable: bool = False


class Subject(NamedTuple):
    """What tests are about: the parts of a `Problem` that rulings depend on."""

    task_id: str
    entry_point: str
    reference: str

    @classmethod
    def of(cls, problem: Problem) -> Subject:
        """The subject of a problem."""
        return cls(problem.task_id, problem.entry_point, problem.reference)


class Reference:
    """Rules on tests by asking the references of their problems.

    Args:
        sandbox: Where references run.
        wrong_oracle: What becomes of a test that predicts a wrong value.
        limits: What programs may use.
        share: The share of the time of a call that the reference may use, so that a test near the limit
            does not time out on programs by chance.
    """

    def __init__(
        self, sandbox: Sandbox, wrong_oracle: WrongOracle, limits: Limits | None, share: float
    ) -> None:
        base = sandbox.limits if limits is None else limits
        self._sandbox = sandbox
        self._wrong_oracle = wrong_oracle
        self._limits = replace(
            base,
            call_cpu_time=base.call_cpu_time * share,
            call_wall_time=base.call_wall_time * share,
        )
        self._facts = Remembered[tuple[str, str], dict[str, Any]]()
        self._returned = Remembered[tuple[Subject, str], _Returned]()
        self._rulings = Remembered[tuple[Subject, str], Ruling]()
        self._confirmed = Remembered[tuple[Subject, str], int]()
        self._loaded = Remembered[Subject, bool]()

    def rule(self, wanted: Mapping[Subject, Iterable[str]]) -> dict[Subject, dict[str, Ruling]]:
        """Rules on tests of several problems; the references run in parallel.

        Raises:
            BrokenReferenceError: A reference does not run.
            InfraError: The sandbox failed.
        """
        ruled: dict[Subject, dict[str, Ruling]] = {}
        missing: dict[Subject, list[str]] = {}
        for subject, tests in wanted.items():
            found = ruled[subject] = {}
            for test in dict.fromkeys(tests):
                ruling = self._rulings.get((subject, test))
                if ruling is not None:
                    found[test] = ruling
                else:
                    missing.setdefault(subject, []).append(test)
        new = [subject for subject in wanted if self._loaded.get(subject) is None]
        if missing or new:
            for subject, rulings in self._decide(missing, new).items():
                ruled[subject] |= rulings
                for test, ruling in rulings.items():
                    size = 2 * len(test) + len(ruling.text) + len(ruling.reason)
                    self._rulings.put((subject, test), ruling, size)
        return ruled

    def confirm(self, failed: Mapping[Subject, Iterable[str]]) -> bool:
        """Asks the reference again about tests that broke a program, the first times they do.

        A test that tells runs apart by something else than the function's values (a clock, chance) passes
        on the reference with some luck. Run again right after it has failed, it gives itself away.

        Returns:
            Whether a ruling has changed.
        """
        asked: dict[Subject, list[str]] = {}
        for subject, tests in failed.items():
            doubtful = []
            for test in dict.fromkeys(tests):
                ruling = self._rulings.get((subject, test))
                times = self._confirmed.get((subject, test)) or 0
                if ruling is not None and not ruling.stable and times < _CONFIRMATIONS:
                    self._confirmed.put((subject, test), times + 1, len(test))
                    doubtful.append(test)
            if doubtful:
                asked[subject] = doubtful
        changed = False
        for subject, results in self._trial(asked, _reference_of).items():
            for test, result in results.items():
                if not result.passed:
                    fault = Fault.NON_DETERMINISTIC
                    ruling = Ruling("invalid", test, test, _NON_DETERMINISTIC, fault)
                    self._rulings.put((subject, test), ruling, 3 * len(test))
                    changed = True
        return changed

    def _decide(
        self, missing: Mapping[Subject, Sequence[str]], new: Sequence[Subject]
    ) -> dict[Subject, dict[str, Ruling]]:
        known = self._look_up_facts(missing)
        decided: dict[Subject, dict[str, Ruling]] = {subject: {} for subject in missing}
        calls: dict[Subject, dict[str, dict[str, Any]]] = {}
        for subject, tests in missing.items():
            for test in tests:
                fact = known[test, subject.entry_point]
                if fact["problem"]:
                    decided[subject][test] = Ruling(
                        "invalid", test, fact["key"], fact["problem"], Fault(fact["fault"])
                    )
                elif fact["call"] is not None:
                    calls.setdefault(subject, {})[fact["call"]["canonical"]] = fact["call"]
        self._check_loading(new)
        returned = self._ask(calls)
        runs: dict[Subject, list[str]] = {}
        for subject, tests in missing.items():
            for test in tests:
                if test in decided[subject]:
                    continue
                call = known[test, subject.entry_point]["call"]
                answer = returned[subject][call["canonical"]] if call else None
                if answer is None or answer.undecidable:
                    runs.setdefault(subject, []).append(test)
                else:
                    decided[subject][test] = self._ruling_by_value(test, call, answer)
        for subject, rulings in self._run_all(runs, known).items():
            decided[subject] |= rulings
        return decided

    def _look_up_facts(
        self, missing: Mapping[Subject, Sequence[str]]
    ) -> dict[tuple[str, str], dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        unknown: list[tuple[str, str]] = []
        for subject, tests in missing.items():
            for test in tests:
                pair = (test, subject.entry_point)
                fact = self._facts.get(pair)
                if fact is None:
                    unknown.append(pair)
                else:
                    found[pair] = fact
        for batch in _batches(unknown):
            for pair, fact in zip(batch, self._analyse(batch), strict=True):
                found[pair] = fact
                self._facts.put(pair, fact, 4 * len(pair[0]))
        return found

    def _analyse(self, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
        try:
            result: list[dict[str, Any]] = self._sandbox.analyse(facts, pairs)
        except AnalysisError as error:
            if len(pairs) == 1:
                problem = f"cannot be parsed: {error}"
                fault = Fault.UNPARSABLE.value
                return [{"problem": problem, "fault": fault, "key": pairs[0][0], "call": None}]
            half = len(pairs) // 2  # only the one that breaks the parser is lost
            return self._analyse(pairs[:half]) + self._analyse(pairs[half:])
        return result

    def loads(self, subjects: Sequence[Subject]) -> list[bool]:
        """Whether each reference runs and defines its entry point."""
        return [result is None for result in self.load_failures(subjects)]

    def _check_loading(self, subjects: Sequence[Subject]) -> None:
        for subject, problem in zip(subjects, self.load_failures(subjects), strict=True):
            if problem is not None:
                raise BrokenReferenceError(
                    f"Expect the reference of problem {subject.task_id!r} to run and to define "
                    f"{subject.entry_point}, actually: {problem.outcome.value}: "
                    f"{problem.message}. Check the data with `codea1 problems validate`."
                )

    def load_failures(self, subjects: Sequence[Subject]) -> list[TestResult | None]:
        """How each reference ended that does not run or does not define its entry point; None for the others."""
        new = [each for each in dict.fromkeys(subjects) if self._loaded.get(each) is None]
        jobs = [
            self._sandbox.submit(Job(each.reference, (), each.entry_point, self._limits))
            for each in new
        ]
        broken: dict[Subject, TestResult] = {}
        for subject, result in zip(new, gather(jobs), strict=True):
            if result.load.passed:
                self._loaded.put(subject, True, len(subject.reference))
            else:
                broken[subject] = result.load
        return [broken.get(subject) for subject in subjects]

    def _ask(
        self, calls: Mapping[Subject, Mapping[str, dict[str, Any]]]
    ) -> dict[Subject, dict[str, _Returned]]:
        """What the reference returns for each distinct call, in two processes."""
        found: dict[Subject, dict[str, _Returned]] = {}
        unknown: list[tuple[Subject, list[str]]] = []
        jobs: list[Future[list[CallResult]]] = []
        for subject, wanted in calls.items():
            found[subject] = {}
            names = []
            for name in wanted:
                answer = self._returned.get((subject, name))
                if answer is None:
                    names.append(name)
                else:
                    found[subject][name] = answer
            if names:
                unknown.append((subject, names))
                arguments = [(wanted[name]["args"], wanted[name]["kwargs"]) for name in names]
                jobs += [
                    self._sandbox.submit_calls(
                        subject.reference,
                        subject.entry_point,
                        arguments,
                        limits=self._limits.with_room_for(len(names)),
                        hash_seed=seed,
                    )
                    for seed in (0, 1)
                ]
        results = gather(jobs)
        for (subject, names), first, second in zip(
            unknown, results[::2], results[1::2], strict=True
        ):
            for name, one, other in zip(names, first, second, strict=True):
                answer = _agreed(one, other)
                found[subject][name] = answer
                size = len(name) + 5 * len(answer.source or "")
                self._returned.put((subject, name), answer, size)
        return found

    def _ruling_by_value(self, test: str, call: Mapping[str, Any], answer: _Returned) -> Ruling:
        key = equality(call["canonical"], call["predicted"])
        if answer.reason:
            return Ruling("invalid", test, key, answer.reason, answer.fault)
        if _equal(answer.value, call["expected"]):
            return Ruling("kept", test, key)
        reason = f"predicts {_short(call['predicted'])}, the reference returns "
        reason += _short(answer.source or "another value")
        if self._wrong_oracle == "drop" or answer.source is None:
            return Ruling("invalid", test, key, reason, Fault.WRONG_VALUE)
        text = equality(call["source"], answer.source)
        key = equality(call["canonical"], answer.source)
        return Ruling("corrected", text, key, reason, Fault.WRONG_VALUE)

    def _run_all(
        self, runs: _Tests, known: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> dict[Subject, dict[str, Ruling]]:
        """Rulings on tests that are more than an equality: run on the reference, and on nothing."""
        first = self._trial(runs, _reference_of)
        second = self._trial(_passing(first), _reference_of, hash_seed=1)
        found: dict[Subject, dict[str, Ruling]] = {}
        doubtful: dict[Subject, list[str]] = {}
        for subject, results in first.items():
            rulings = found[subject] = {}
            for test, result in results.items():
                fact = known[test, subject.entry_point]
                reason, fault = "", None
                if not result.passed:
                    reason = _explained(result.outcome, result.message)
                    fault = _fault(result.outcome, result.message)
                elif not result.called:
                    reason, fault = f"never calls {subject.entry_point}", Fault.NEVER_CALLS
                elif not second[subject][test].passed:
                    reason, fault = _NON_DETERMINISTIC, Fault.NON_DETERMINISTIC
                elif not fact["direct"]:
                    doubtful.setdefault(subject, []).append(test)
                status: Status = "invalid" if reason else "kept"
                rulings[test] = Ruling(status, test, fact["key"], reason, fault, fact["stable"])
        raising = self._trial(doubtful, lambda subject: _NULL_RAISES.format(subject.entry_point))
        vacuous = self._trial(
            _passing(raising), lambda subject: _NULL_RETURNS.format(subject.entry_point)
        )
        for subject, tests in _passing(vacuous).items():
            for test in tests:
                reason = f"passes whatever {subject.entry_point} does"
                found[subject][test] = replace(
                    found[subject][test],
                    status="invalid",
                    reason=reason,
                    fault=Fault.TESTS_NOTHING,
                )
        return found

    def _trial(
        self, tests: _Tests, program: Callable[[Subject], str], hash_seed: int = 0
    ) -> dict[Subject, dict[str, TestResult]]:
        """Runs tests on a program of ours for each subject."""
        jobs = [
            self._sandbox.submit(
                Job(
                    program(subject),
                    tuple(each),
                    subject.entry_point,
                    self._limits.with_room_for(len(each)),
                    hash_seed,
                )
            )
            for subject, each in tests.items()
        ]
        return {
            subject: dict(zip(each, result.tests, strict=True))
            for (subject, each), result in zip(tests.items(), gather(jobs), strict=True)
        }


def _reference_of(subject: Subject) -> str:
    return subject.reference


def _passing(results: Mapping[Subject, Mapping[str, TestResult]]) -> dict[Subject, list[str]]:
    passed = {
        subject: [test for test, result in each.items() if result.passed]
        for subject, each in results.items()
    }
    return {subject: tests for subject, tests in passed.items() if tests}


def without_addresses(message: str) -> str:
    """A message that is the same in every run.

    Example:
        >>> without_addresses("<function f at 0x7f03cbd90b80> is not plain data")
        '<function f at 0x...> is not plain data'
    """
    return re.sub(r"(?<= at )0x[0-9a-fA-F]+(?=>)", "0x...", message)


def gather(futures: Sequence[Future[T]]) -> list[T]:
    """The results of all, in order. If one fails, those that have not begun are cancelled."""
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _batches(pairs: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Lists of tests that are analysed together, none much longer than the others."""
    batch: list[tuple[str, str]] = []
    size = 0
    for pair in pairs:
        if batch and size + len(pair[0]) > _BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(pair)
        size += len(pair[0])
    if batch:
        yield batch


def _agreed(one: CallResult, other: CallResult) -> _Returned:
    """What two runs of one call amount to."""
    if one.outcome in _UNDECIDABLE and one.outcome is other.outcome:
        return _Returned(None, None, undecidable=True)
    if one.outcome is not other.outcome:
        return _Returned(None, None, _NON_DETERMINISTIC, Fault.NON_DETERMINISTIC)
    if one.outcome is not Outcome.PASS:
        fault = _fault(one.outcome, one.message)
        return _Returned(None, None, _explained(one.outcome, one.message), fault)
    if not _equal(one.value, other.value):
        # nan is not equal to itself, so this may also be a value that no test can predict.
        if repr(one.value) == repr(other.value):
            return _Returned(None, None, undecidable=True)
        return _Returned(None, None, _NON_DETERMINISTIC, Fault.NON_DETERMINISTIC)
    source = source_of(one.value)
    return _Returned(one.value, source, undecidable=source is None)


def _explained(outcome: Outcome, message: str) -> str:
    reason = _REASONS.get(outcome, f"ends with {outcome.value} on the reference")
    return f"{reason}: {without_addresses(message)}" if message else reason


def _fault(outcome: Outcome, message: str) -> Fault:
    if outcome is Outcome.ERROR and missing_package(message):
        return Fault.NOT_INSTALLED
    return _FAULTS.get(outcome, Fault.LIMIT)


def _equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except (ArithmeticError, TypeError, ValueError, RecursionError):
        return False


def _short(source: str) -> str:
    return source if len(source) <= 100 else f"{source[:97]}..."
