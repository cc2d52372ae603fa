"""What the reference solution says of tests: asked once for each test, and remembered.

A test counts only if it passes on the reference in two processes with different hash seeds, within a share
of the time that a program gets, and if it depends on what the function does. For ``assert f(...) == ...``
the reference is asked for the value, so that a wrong prediction can be put right. Programs that are judged
are not run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

from codea1_env.evaluation.test_programs.facts import equality, facts, source_of
from codea1_env.judging.comparison import without_addresses
from codea1_env.oracle import BrokenReferenceError, gather
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.sandbox import (
    AnalysisError,
    CallResult,
    InfraError,
    Job,
    Outcome,
    Sandbox,
    TestResult,
)
from codea1_env.support.texts import LRUCache, in_batches

Status = Literal["kept", "corrected", "invalid"]

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
    Outcome.FAIL: InvalidReason.WRONG_VALUE,
    Outcome.ERROR: InvalidReason.RAISES,
    Outcome.TIMEOUT: InvalidReason.TIMEOUT,
    Outcome.UNENCODABLE: InvalidReason.UNENCODABLE,
    Outcome.SYNTAX_ERROR: InvalidReason.UNPARSABLE,
}
_NON_DETERMINISTIC = "is non-deterministic: two runs on the reference differ"
# Programs that do nothing of what was asked; a test that passes on both tests nothing.
_NULL_RETURNS = "def {}(*args, **kwargs):\n    return object()\n"
_NULL_RAISES = "class _Null(Exception):\n    pass\n\n\ndef {}(*args, **kwargs):\n    raise _Null\n"

T = TypeVar("T")
Result = TypeVar("Result", TestResult, CallResult)


@dataclass(frozen=True)
class TestValidity:
    """What the reference says of a test."""

    __test__ = False  # pytest would collect a class of this name

    status: Status
    text: str
    """The test as it is kept; a corrected one with the reference's value."""
    key: str
    """The same for tests that say the same in other words."""
    reason: str = ""
    """Why it is not kept as it was; "" if it is."""
    fault: InvalidReason | None = None
    """The kind of the reason; None if it is kept."""
    stable: bool = True
    """Nothing but the function's value can decide it, so that it needs no second look."""
    missing_module: str | None = None
    """The module that is not there, of a test that is not kept for that."""


@dataclass(frozen=True)
class _Returned:
    """What the reference returned for a call: a value with its source, or why there is none."""

    value: Any
    source: str | None
    reason: str = ""
    fault: InvalidReason | None = None
    undecidable: bool = False
    missing_module: str | None = None


class RuledProblem(NamedTuple):
    """What tests are about: the parts of a `Problem` that rulings depend on."""

    task_id: str
    entry_point: str
    reference: str

    @classmethod
    def of(cls, problem: Problem) -> RuledProblem:
        """The subject of a problem."""
        return cls(problem.task_id, problem.entry_point, problem.reference)


class Reference:
    """Rules on tests by asking the references of their problems. Safe to use from several threads.

    Args:
        sandbox: Where references run.
        share: The share of the time of a call that the reference may use, so that a test near the limit
            does not time out on programs by chance.
    """

    def __init__(self, sandbox: Sandbox, share: float) -> None:
        self._sandbox = sandbox
        self._limits = replace(
            sandbox.limits,
            call_cpu_time=sandbox.limits.call_cpu_time * share,
            call_wall_time=sandbox.limits.call_wall_time * share,
            calls_per_test=1,  # what a player wrote as one test, and not a whole test program
        )
        self._facts = LRUCache[tuple[str, str], dict[str, Any]]()
        self._returned = LRUCache[tuple[RuledProblem, str], _Returned]()
        self._rulings = LRUCache[tuple[RuledProblem, str], TestValidity]()
        self._confirmed = LRUCache[tuple[RuledProblem, str], int]()
        self._loaded = LRUCache[RuledProblem, bool]()

    def rule(self, subject: RuledProblem, tests: Iterable[str]) -> dict[str, TestValidity]:
        """Rules on tests.

        Raises:
            BrokenReferenceError: The reference does not run.
            InfraError: The sandbox failed.
        """
        failure = self.load_failure(subject)
        if failure is not None:
            raise BrokenReferenceError(
                f"Expect the reference of problem {subject.task_id!r} to run and to define "
                f"{subject.entry_point}, actually: {failure.outcome.value}: "
                f"{failure.message}. Check the data with `codea1 problems validate`."
            )
        ruled: dict[str, TestValidity] = {}
        missing: list[str] = []
        for test in dict.fromkeys(tests):
            ruling = self._rulings.get((subject, test))
            if ruling is None:
                missing.append(test)
            else:
                ruled[test] = ruling
        for test, ruling in self._decide(subject, missing).items():
            ruled[test] = ruling
            size = 2 * len(test) + len(ruling.text) + len(ruling.reason)
            self._rulings.put((subject, test), ruling, size)
        return ruled

    def confirm(self, subject: RuledProblem, tests: Iterable[str]) -> bool:
        """Ask the reference again about tests that broke a program, the first times they do.

        A test that tells runs apart by something else than the function's values (a clock, chance) passes
        on the reference with some luck. Run again right after it has failed, it gives itself away.

        Returns:
            Whether a ruling has changed.
        """
        doubtful = []
        for test in dict.fromkeys(tests):
            ruling = self._rulings.get((subject, test))
            times = self._confirmed.get((subject, test)) or 0
            if ruling is not None and not ruling.stable and times < _CONFIRMATIONS:
                self._confirmed.put((subject, test), times + 1, len(test))
                doubtful.append(test)
        results = self._trial(subject, subject.reference, doubtful)
        changed = [test for test, result in results.items() if not result.passed]
        for test in changed:
            ruling = TestValidity(
                "invalid", test, test, _NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC
            )
            self._rulings.put((subject, test), ruling, 3 * len(test))
        return bool(changed)

    def load_failure(self, subject: RuledProblem) -> TestResult | None:
        """How the reference ended if it does not run or does not define its entry point; None if it does."""
        if self._loaded.get(subject) is None:
            job = Job(subject.reference, (), subject.entry_point, self._limits)
            load = _not_ours(self._sandbox.submit(job).result().load)
            if not load.passed:
                return load
            self._loaded.put(subject, True, len(subject.reference))
        return None

    def _decide(self, subject: RuledProblem, tests: Sequence[str]) -> dict[str, TestValidity]:
        known = self._look_up_facts(subject, tests)
        calls = {
            fact["call"]["canonical"]: fact["call"]
            for fact in known.values()
            if not fact["problem"] and fact["call"] is not None
        }
        returned = self._ask(subject, calls)
        decided: dict[str, TestValidity] = {}
        runs: dict[str, dict[str, Any]] = {}
        for test, fact in known.items():
            call = fact["call"]
            if fact["problem"]:
                fault = InvalidReason(fact["fault"])
                decided[test] = TestValidity("invalid", test, fact["key"], fact["problem"], fault)
            elif call is None or returned[call["canonical"]].undecidable:
                runs[test] = fact
            else:
                decided[test] = _ruling_by_value(test, call, returned[call["canonical"]])
        return decided | self._run_all(subject, runs)

    def _look_up_facts(
        self, subject: RuledProblem, tests: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        unknown: list[tuple[str, str]] = []
        for test in tests:
            fact = self._facts.get((test, subject.entry_point))
            if fact is None:
                unknown.append((test, subject.entry_point))
            else:
                found[test] = fact
        read = in_batches(unknown, lambda pair: len(pair[0]), self._analyse, _cannot_be_parsed)
        for pair, fact in zip(unknown, read, strict=True):
            found[pair[0]] = fact
            self._facts.put(pair, fact, 4 * len(pair[0]))
        return found

    def _analyse(self, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._sandbox.analyse(facts, pairs)
        return result

    def _ask(
        self, subject: RuledProblem, calls: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, _Returned]:
        """What the reference returns for each distinct call, in two processes."""
        found: dict[str, _Returned] = {}
        unknown: list[str] = []
        for name in calls:
            answer = self._returned.get((subject, name))
            if answer is None:
                unknown.append(name)
            else:
                found[name] = answer
        if not unknown:
            return found
        arguments = [(calls[name]["args"], calls[name]["kwargs"]) for name in unknown]
        jobs = [
            self._sandbox.submit_calls(
                subject.reference,
                subject.entry_point,
                arguments,
                limits=self._limits.with_room_for(len(unknown)),
                hash_seed=seed,
            )
            for seed in (0, 1)
        ]
        for name, one, other in zip(unknown, *gather(jobs), strict=True):
            answer = found[name] = _agreed(_not_ours(one), _not_ours(other))
            self._returned.put((subject, name), answer, len(name) + 5 * len(answer.source or ""))
        return found

    def _run_all(
        self, subject: RuledProblem, runs: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, TestValidity]:
        """Rulings on tests that are more than an equality: run on the reference, and on nothing."""
        name = subject.entry_point
        first = self._trial(subject, subject.reference, runs)
        second = self._trial(subject, subject.reference, _passing(first), hash_seed=1)
        found: dict[str, TestValidity] = {}
        doubtful: list[str] = []
        for test, result in first.items():
            reason, fault, module = "", None, None
            if result.vacuous:
                reason, fault = f"never calls {name}", InvalidReason.NEVER_CALLS
            elif not result.passed:
                reason, fault = _explained(result.outcome, result.message), _fault(result)
                module = result.missing_module
            elif not second[test].passed:
                reason, fault = _NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC
            elif not runs[test]["direct"]:
                doubtful.append(test)
            status: Status = "invalid" if reason else "kept"
            stable = runs[test]["stable"]
            found[test] = TestValidity(
                status, test, runs[test]["key"], reason, fault, stable, module
            )
        raising = self._trial(subject, _NULL_RAISES.format(name), doubtful)
        vacuous = self._trial(subject, _NULL_RETURNS.format(name), _passing(raising))
        for test in _passing(vacuous):
            reason = f"passes whatever {name} does"
            fault = InvalidReason.TESTS_NOTHING
            found[test] = replace(found[test], status="invalid", reason=reason, fault=fault)
        return found

    def _trial(
        self, subject: RuledProblem, program: str, tests: Iterable[str], hash_seed: int = 0
    ) -> dict[str, TestResult]:
        """Run tests on the reference, or on a program of ours in its place."""
        texts = tuple(tests)
        if not texts:
            return {}
        limits = self._limits.with_room_for(tests=len(texts))
        job = Job(program, texts, subject.entry_point, limits, hash_seed)
        results = self._sandbox.submit(job).result().tests
        return dict(zip(texts, map(_not_ours, results), strict=True))


def _cannot_be_parsed(pair: tuple[str, str], error: AnalysisError) -> dict[str, Any]:
    fault = InvalidReason.UNPARSABLE.value
    return {"problem": f"cannot be parsed: {error}", "fault": fault, "key": pair[0], "call": None}


def _not_ours(result: Result) -> Result:
    """The result, unless the sandbox itself has failed: that says nothing of a test.

    Raises:
        InfraError: It has.
    """
    if result.outcome is Outcome.INFRA_ERROR:
        raise InfraError(result.message)
    return result


def _passing(results: Mapping[str, TestResult]) -> list[str]:
    return [test for test, result in results.items() if result.passed]


def _ruling_by_value(test: str, call: Mapping[str, Any], answer: _Returned) -> TestValidity:
    key = equality(call["canonical"], call["predicted"])
    if answer.reason:
        module = answer.missing_module
        return TestValidity(
            "invalid", test, key, answer.reason, answer.fault, missing_module=module
        )
    if _equal(answer.value, call["expected"]):
        return TestValidity("kept", test, key)
    assert answer.source is not None  # else it would be undecidable
    reason = f"predicts {_short(call['predicted'])}, the reference returns {_short(answer.source)}"
    text = equality(call["source"], answer.source)
    key = equality(call["canonical"], answer.source)
    return TestValidity("corrected", text, key, reason, InvalidReason.WRONG_VALUE)


def _agreed(one: CallResult, other: CallResult) -> _Returned:
    """What two runs of one call amount to."""
    if one.outcome in _UNDECIDABLE and one.outcome is other.outcome:
        return _Returned(None, None, undecidable=True)
    if one.outcome is not other.outcome:
        return _Returned(None, None, _NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC)
    if one.outcome is not Outcome.PASS:
        reason = _explained(one.outcome, one.message)
        return _Returned(None, None, reason, _fault(one), missing_module=one.missing_module)
    if not _equal(one.value, other.value):
        # nan is not equal to itself, so this may also be a value that no test can predict.
        if repr(one.value) == repr(other.value):
            return _Returned(None, None, undecidable=True)
        return _Returned(None, None, _NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC)
    source = source_of(one.value)
    return _Returned(one.value, source, undecidable=source is None)


def _explained(outcome: Outcome, message: str) -> str:
    reason = _REASONS.get(outcome, f"ends with {outcome.value} on the reference")
    return f"{reason}: {without_addresses(message)}" if message else reason


def _fault(result: TestResult | CallResult) -> InvalidReason:
    if result.outcome is Outcome.ERROR and result.error == ModuleNotFoundError.__name__:
        return InvalidReason.NOT_INSTALLED
    return _FAULTS.get(result.outcome, InvalidReason.LIMIT)


def _equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except (ArithmeticError, TypeError, ValueError, RecursionError):
        return False


def _short(source: str) -> str:
    return source if len(source) <= 100 else f"{source[:97]}..."
