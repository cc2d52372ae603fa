"""What goes into the sandbox and what comes out: plain, frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from .endings import Limit, Outcome, identifier, one_line
from .limits import Limits, check_limits, check_seed, check_text, exact_text


class Cause(TypedDict):
    """What any result says of how it came, beside the outcome."""

    message: str
    error: str | None
    missing_module: str | None
    limit: Limit | None


def cause_of(ending: TestResult | CallResult | ScriptResult) -> Cause:
    """What another result of the same ending has to say, too."""
    return {
        "message": ending.message,
        "error": ending.error,
        "missing_module": ending.missing_module,
        "limit": ending.limit,
    }


def _settle(ending: TestResult | CallResult | ScriptResult) -> None:
    """Bounds what came from a hostile process."""
    message, limit = ending.message, ending.limit
    if ending.outcome is Outcome.MEMORY:
        message = message or "the memory limit was reached"  # a MemoryError has no text
        limit = limit or Limit.MEMORY
    settled = {"message": one_line(message), "limit": limit} if message or limit else {}
    if ending.error is not None or ending.missing_module is not None:
        answered = ending.outcome in (Outcome.PASS, Outcome.FAIL)
        settled["error"] = None if answered else identifier(ending.error)
        settled["missing_module"] = None if answered else identifier(ending.missing_module)
    for name, value in settled.items():
        object.__setattr__(ending, name, value)


@dataclass(frozen=True)
class TestResult:
    """The verdict on one test."""

    __test__ = False  # pytest would collect a class of this name

    outcome: Outcome
    message: str = ""
    """Why, in one printable line for people: the exception, the two values that differ, the limit that was reached. What
    code asks for is in fields: `outcome`, `error`, `missing_module`, `limit`, `vacuous`, `called`."""
    cpu_time: float = 0.0
    """Seconds of CPU time, measured from outside the program."""
    called: bool = True
    """Whether the test called the program at all; it does not pass otherwise. Reliable where the program is
    trusted."""
    line: int | None = None
    """The line of the test's text where it failed, from 1; None where it did not get so far."""
    traceback: str = ""
    """The lines of the test's own frames, outermost first. What happened inside the program is not seen from there."""
    peak_memory: int = 0
    """The largest resident memory of the program's process in bytes, where the test had a process of its own."""
    stdout: str = ""
    """With `Job.capture_output`: what the program printed, then what the test printed, each cut at `Limits.output`."""
    stderr: str = ""
    """The same of standard error."""
    error: str | None = None
    """Where an exception ended it that is no false assertion: the name of its class, an identifier of at most 100
    characters. A hostile program can give its own exceptions any name: compare it, and look nothing up by it."""
    missing_module: str | None = None
    """Of a ModuleNotFoundError: the top-level name of the module, where the exception says it."""
    limit: Limit | None = None
    """Which limit was reached, of a TIMEOUT, MEMORY or OUTPUT_LIMIT."""
    vacuous: bool = False
    """Whether it is an ERROR only because the test held without having called the program."""

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS."""
        return self.outcome is Outcome.PASS


@dataclass(frozen=True)
class CallResult:
    """What one call of a function returned."""

    outcome: Outcome
    """PASS when the call returned a value that is plain data."""
    value: Any = None
    """A copy of the returned value; None unless the outcome is PASS."""
    message: str = ""
    """As in `TestResult`."""
    cpu_time: float = 0.0
    error: str | None = None
    """As in `TestResult`."""
    missing_module: str | None = None
    """As in `TestResult`."""
    limit: Limit | None = None
    """As in `TestResult`."""

    def __post_init__(self) -> None:
        _settle(self)


@dataclass(frozen=True)
class ScriptResult:
    """What became of a program that reads standard input and prints."""

    outcome: Outcome
    """PASS when it ran to its end with exit status 0."""
    stdout: str = ""
    """What it printed, as far as it came."""
    message: str = ""
    """As in `TestResult`."""
    cpu_time: float = 0.0
    stderr: str = ""
    """What it wrote to standard error, cut at `Limits.output`."""
    error: str | None = None
    """As in `TestResult`."""
    missing_module: str | None = None
    """As in `TestResult`."""
    limit: Limit | None = None
    """As in `TestResult`."""

    def __post_init__(self) -> None:
        _settle(self)

    def verdict(self, outcome: Outcome, message: str) -> TestResult:
        """The result of a test that was run as a script, where its outcome is said by somebody else."""
        return TestResult(
            outcome,
            message,
            self.cpu_time,
            error=self.error,
            missing_module=self.missing_module,
            limit=self.limit,
        )


@dataclass(frozen=True)
class Job:
    """A program and the tests to run on it.

    Attributes:
        code: Program text.
        tests: Test texts. Each is judged on its own: a test sees no names of another.
        entry_point: The name that the tests may use from the program. None offers every name that the
            program defines and the test uses, except names of builtins and standard modules.
        limits: Overrides the sandbox's limits.
        hash_seed: 0 or 1. Runs with different seeds differ in the order of sets of strings and live in
            different processes, so that a result that depends on it shows.
        final_call: Name of a function of the program that is called without arguments in each process
            that has run the program, when the tests of that process are over. It lets a program of ours
            report what the tests did to it; the tests cannot change what it says.
        scratch: Whether program and tests each have a folder that they may write to: their current one, of 16 MiB,
            empty at the start and gone afterwards. Without it they can write no file. Only at level "namespaces",
            since no other can bound it.
        capture_output: Whether results carry what program and test print. A test that only says what a call returns
            runs once more for it, in a process of its own: verdicts and times are those without it.
    """

    code: str
    tests: Sequence[str] = ()
    entry_point: str | None = None
    limits: Limits | None = None
    hash_seed: int = 0
    final_call: str | None = None
    scratch: bool = False
    capture_output: bool = False

    def __post_init__(self) -> None:
        check_text("Job.code", self.code)
        for name in ("entry_point", "final_call"):
            if getattr(self, name) is not None:
                check_text(f"Job.{name}", getattr(self, name), "a str or None")
        check_limits("Job.limits", self.limits)
        if not isinstance(self.tests, (str, list, tuple)):
            object.__setattr__(self, "tests", tuple(self.tests))  # a generator gives its items once
        if isinstance(self.tests, str) or not all(isinstance(test, str) for test in self.tests):
            raise TypeError(
                f"Expect Job.tests to be a sequence of str, actually: {self.tests!r:.100}"
            )
        if not all(type(test) is str for test in self.tests):  # np.str_, say
            object.__setattr__(self, "tests", tuple(map(exact_text, self.tests)))
        object.__setattr__(self, "code", exact_text(self.code))
        check_seed("Job.hash_seed", self.hash_seed)
        for name in ("scratch", "capture_output"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(
                    f"Expect Job.{name} to be True or False, actually: {getattr(self, name)!r}"
                )


@dataclass(frozen=True)
class JobResult:
    """All that is known of one job."""

    load: TestResult
    """PASS when the program itself ran to its end and defines the entry point."""
    tests: tuple[TestResult, ...]
    """In the order of `Job.tests`."""
    final_calls: tuple[CallResult, ...] = ()
    """What `Job.final_call` returned: for the calls of all simple tests together, and for each other test.
    Where a process did not live to the end of its tests, this says why."""


class SandboxError(RuntimeError):
    """Something about the sandbox itself went wrong; never a property of the code under test."""


class InfraError(SandboxError):
    """A job could not be judged although it was tried again. Not a verdict."""


class LevelUnavailableError(SandboxError):
    """The machine does not offer what the asked level of confinement needs."""


class AnalysisError(SandboxError):
    """An analysis function raised, hung or crashed on the text that it was given."""
