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
from codea1_env.oracle import NON_DETERMINISTIC, broken_reference, explained, gather
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


class _Returned(NamedTuple):
    """What the reference returned for a call: a value with its source, or why there is none."""

    value: Any = None
    source: str = ""
    reason: str = ""
    fault: InvalidReason | None = None
    missing_module: str | None = None


class RuledProblem(NamedTuple):
    """What tests are about: the parts of a `Problem` that rulings depend on."""

    task_id: str
    entry_point: str
    reference: str

    @classmethod
    def of(cls, problem: Problem) -> RuledProblem:
        """Return the subject of a problem."""
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
        self._rulings = LRUCache[tuple[RuledProblem, str], TestValidity]()
        self._confirmed = LRUCache[tuple[RuledProblem, str], int]()
        self._loaded = LRUCache[RuledProblem, bool]()

    def rule(self, subject: RuledProblem, tests: Iterable[str]) -> dict[str, TestValidity]:
        """Rules on tests.

        Raises:
            codea1_env.oracle.BrokenReferenceError: The reference does not run.
            InfraError: The sandbox failed.
        """
        failure = self.load_failure(subject)
        if failure is not None:
            raise broken_reference(subject.task_id, subject.entry_point, failure)
        asked = list(dict.fromkeys(tests))
        known = {test: self._rulings.get((subject, test)) for test in asked}
        ruled = {test: ruling for test, ruling in known.items() if ruling is not None}
        decided = self._decide(subject, [test for test in asked if test not in ruled])
        for test, ruling in decided.items():
            size = 2 * len(test) + len(ruling.text) + len(ruling.reason)
            self._rulings.put((subject, test), ruling, size)
        return ruled | decided

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
                "invalid", test, test, NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC
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
        pairs = [(test, subject.entry_point) for test in tests]
        read = in_batches(pairs, lambda pair: len(pair[0]), self._facts, _cannot_be_parsed)
        known = dict(zip(tests, read, strict=True))
        calls = {
            fact["call"]["canonical"]: fact["call"]
            for fact in known.values()
            if not fact["problem"] and fact["call"] is not None
        }
        returned = self._ask(subject, calls)
        decided: dict[str, TestValidity] = {}
        runs: dict[str, dict[str, Any]] = {}
        for test, fact in known.items():
            answer = fact["call"] and returned.get(fact["call"]["canonical"])
            if fact["problem"]:
                fault = InvalidReason(fact["fault"])
                decided[test] = TestValidity("invalid", test, fact["key"], fact["problem"], fault)
            elif answer is None:
                runs[test] = fact
            else:
                decided[test] = _ruling_by_value(test, fact["call"], answer)
        return decided | self._run_all(subject, runs)

    def _facts(self, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._sandbox.analyse(facts, pairs)
        return result

    def _ask(
        self, subject: RuledProblem, calls: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, _Returned | None]:
        """Return what the reference returns for each call, in two processes; None where only running the test can tell."""
        if not calls:
            return {}
        jobs = [
            self._sandbox.submit_calls(
                subject.reference,
                subject.entry_point,
                [(call["args"], call["kwargs"]) for call in calls.values()],
                limits=self._limits.with_room_for(len(calls)),
                hash_seed=seed,
            )
            for seed in (0, 1)
        ]
        return {
            name: _agreed(_not_ours(one), _not_ours(other))
            for name, one, other in zip(calls, *gather(jobs), strict=True)
        }

    def _run_all(
        self, subject: RuledProblem, runs: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, TestValidity]:
        """Rulings on tests that are more than an equality: run on the reference, and on nothing."""
        name = subject.entry_point
        first = self._trial(subject, subject.reference, runs)
        second = self._trial(subject, subject.reference, _passing(first), hash_seed=1)
        found: dict[str, TestValidity] = {}
        for test, result in first.items():
            reason: str = ""
            fault: InvalidReason | None = None
            if result.vacuous:
                reason, fault = f"never calls {name}", InvalidReason.NEVER_CALLS
            elif not result.passed:
                reason, fault = _no_test(result)
            elif not second[test].passed:
                reason, fault = NON_DETERMINISTIC, InvalidReason.NON_DETERMINISTIC
            found[test] = TestValidity(
                "invalid" if reason else "kept",
                test,
                runs[test]["key"],
                reason,
                fault,
                runs[test]["stable"],
                result.missing_module,
            )
        doubtful = [test for test in runs if not found[test].reason and not runs[test]["direct"]]
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
    """Return the result, unless the sandbox itself has failed: that says nothing of a test.

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
        return TestValidity(
            "invalid", test, key, answer.reason, answer.fault, missing_module=answer.missing_module
        )
    if _equal(answer.value, call["expected"]):
        return TestValidity("kept", test, key)
    reason = f"predicts {_short(call['predicted'])}, the reference returns {_short(answer.source)}"
    text = equality(call["source"], answer.source)
    key = equality(call["canonical"], answer.source)
    return TestValidity("corrected", text, key, reason, InvalidReason.WRONG_VALUE)


def _agreed(one: CallResult, other: CallResult) -> _Returned | None:
    """Return what two runs of one call amount to; None if the value cannot be stated."""
    if one.outcome in _UNDECIDABLE and one.outcome is other.outcome:
        return None
    if one.outcome is other.outcome and one.outcome is not Outcome.PASS:
        return _Returned(None, "", *_no_test(one), one.missing_module)
    if one.outcome is other.outcome and _equal(one.value, other.value):
        source = source_of(one.value)
        return None if source is None else _Returned(one.value, source)
    # nan is not equal to itself, so this may also be a value that no test can predict.
    if one.outcome is other.outcome and repr(one.value) == repr(other.value):
        return None
    return _Returned(reason=NON_DETERMINISTIC, fault=InvalidReason.NON_DETERMINISTIC)


def _no_test(end: TestResult | CallResult) -> tuple[str, InvalidReason]:
    return explained(end, f"ends with {end.outcome.value} on the reference")


def _equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except (ArithmeticError, TypeError, ValueError, RecursionError):
        return False


def _short(source: str) -> str:
    return source if len(source) <= 100 else f"{source[:97]}..."
