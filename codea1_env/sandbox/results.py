"""What comes out of the sandbox: how something ended, in plain, frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal

Judged = Literal["outside", "inside"]
"""Where a verdict comes from; see `TestResult.judged`."""

MAX_MESSAGE = 500
_MAX_NAME = 100
NO_TESTS = "no test was found"
"""Message of an ERROR where a text or a file holds nothing that could fail."""
RUN_LIMIT = "the limit of the whole run was reached"
"""Message of a TIMEOUT where a test had no time left because of others of its job."""


class Outcome(enum.StrEnum):
    """How a test or a call ended. The list is closed: nothing else can be reported.

    Each is its text as well, so that `json.dumps(dataclasses.asdict(result))` works.

    Example:
        >>> Outcome("timeout") is Outcome.TIMEOUT
        True
    """

    PASS = "pass"
    """The test held; for a call: it returned."""
    FAIL = "fail"
    """An assertion was false."""
    ERROR = "error"
    """An exception was raised, the program does not define what was asked for, or there was no test."""
    TIMEOUT = "timeout"
    """The CPU or wall-clock limit was reached."""
    MEMORY = "memory"
    """The memory limit was reached."""
    OUTPUT_LIMIT = "output_limit"
    """A larger value was returned than the limits allow; for a script, more was printed."""
    EXITED = "exited"
    """The process ended by itself before it had answered."""
    SIGNALLED = "signalled"
    """The process died from a signal (a crash, or a signal it sent to itself)."""
    UNENCODABLE = "unencodable"
    """The value is not plain data, so that it cannot leave the process."""
    SYNTAX_ERROR = "syntax_error"
    """The text cannot be compiled."""
    FORBIDDEN = "forbidden"
    """It tried something that the sandbox does not allow."""
    UNJUDGED = "unjudged"
    """It failed three times because of the sandbox, while other jobs did not. No verdict: masked, never paid."""
    INFRA_ERROR = "infra_error"
    """Our own failure. It is raised as `InfraError`, and never turned into a reward."""


class Limit(enum.StrEnum):
    """Which limit was reached. The list is closed.

    Example:
        >>> Limit("wall_time") is Limit.WALL_TIME
        True
    """

    CPU_TIME = "cpu_time"
    """CPU time: of the call or the test, or what the run had left for it when it began."""
    WALL_TIME = "wall_time"
    """The same of wall-clock time."""
    RUN = "run"
    """Others of the job had used what all may use together, so that this one had less time, or none."""
    MEMORY = "memory"
    """`Limits.memory`."""
    OUTPUT = "output"
    """`Limits.output`: more was printed."""
    RESULT = "result"
    """`Limits.result`, or what may be kept of a run's values, or what reading one may cost."""


def identifier(text: object) -> str | None:
    """Return a name that a hostile process gave, if it can be one; to be compared and shown, never looked up.

    Example:
        >>> identifier("KeyError"), identifier("a b"), identifier(b"KeyError"), identifier("x" * 101)
        ('KeyError', None, None, None)
    """
    if type(text) is not str or len(text) > _MAX_NAME or not text.isidentifier():
        return None
    return text


def one_line(text: str) -> str:
    r"""Return a text of hostile origin as one short line of printable characters, that can be encoded.

    Example:
        >>> one_line("a\nb\x1b[2J\ud800")
        'a\\nb\\x1b[2J\\ud800'
    """
    text = text[:MAX_MESSAGE]
    if not text.isprintable():
        text = "".join(
            each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
        )
    return text[:MAX_MESSAGE]


@dataclass(frozen=True)
class SandboxResult:
    """How a test, a call or a script ended. What came from a hostile process is bounded."""

    outcome: Outcome
    message: str = ""
    """Why, in one printable line for people. Code reads the other fields."""
    cpu_time: float = 0.0
    """Seconds of CPU time, measured from outside the program."""
    error: str | None = None
    """The class of the exception that ended it, if it is no false assertion: an identifier of at most 100 characters. A
    hostile program can put any name there: compare it, and look nothing up by it."""
    missing_module: str | None = None
    """The top-level name of the module that a ModuleNotFoundError names."""
    limit: Limit | None = None
    """The limit that was reached by a TIMEOUT, MEMORY or OUTPUT_LIMIT."""

    def __post_init__(self) -> None:
        message, limit = self.message, self.limit
        if self.outcome is Outcome.MEMORY:
            message = message or "the memory limit was reached"  # a MemoryError has no text
            limit = limit or Limit.MEMORY
        settled = {"message": one_line(message), "limit": limit}
        if self.error is not None or self.missing_module is not None:
            answered = self.outcome in (Outcome.PASS, Outcome.FAIL)
            settled["error"] = None if answered else identifier(self.error)
            settled["missing_module"] = None if answered else identifier(self.missing_module)
        for name, value in settled.items():
            if value is not getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS."""
        return self.outcome is Outcome.PASS

    @property
    def cause(self) -> dict[str, Any]:
        """How it came, beside the outcome: for another result of the same ending."""
        names = ("message", "error", "missing_module", "limit")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class TestResult(SandboxResult):
    """The verdict on one test."""

    __test__ = False  # pytest would collect a class of this name

    line: int | None = None
    """The line of the test's text where it failed, from 1; None where it did not get so far."""
    traceback: str = ""
    """For people, of a test that ran together with the program."""
    stdout: str = ""
    """What a test of a test module printed, cut at `Limits.output`."""
    stderr: str = ""
    """The same of standard error."""
    judged: Judged = "outside"
    """"outside": plain data that the program's process returned was compared in another. "inside": program and test ran
    in one process, so that a hostile program can forge the verdict."""
    name: str = ""
    """pytest's name of a collected test, without the file."""
    vacuous: bool = False
    """Whether it is an ERROR only because no test was found, or none that was not skipped."""


@dataclass(frozen=True)
class CallResult(SandboxResult):
    """What one call of a function returned. The outcome is PASS when it returned a value that is plain data."""

    value: Any = None
    """A copy of the returned value; None unless the outcome is PASS."""


@dataclass(frozen=True)
class ScriptResult(SandboxResult):
    """What became of a program that reads standard input and prints. PASS: it ran to its end with exit status 0."""

    stdout: str = ""
    """What it printed, as far as it came."""
    stderr: str = ""
    """What it wrote to standard error, cut at `Limits.output`."""

    def verdict(self, outcome: Outcome, message: str) -> TestResult:
        """The result of a test that was run as a script, whose outcome somebody else says."""
        return TestResult(outcome, cpu_time=self.cpu_time, **{**self.cause, "message": message})


@dataclass(frozen=True)
class JobResult:
    """All that is known of one job."""

    load: TestResult
    """PASS when the program itself ran to its end and defines the entry point."""
    tests: tuple[TestResult, ...]
    """In the order of `Job.tests`."""
    cpu_time: float = 0.0
    """Seconds of CPU time of loading and all calls together, where each has no time of its own."""


class SandboxError(RuntimeError):
    """Something about the sandbox itself went wrong; never a property of the code under test."""


class InfraError(SandboxError):
    """A job could not be judged although it was tried again. Not a verdict."""


class LevelUnavailableError(SandboxError):
    """The machine does not offer what the asked level of confinement needs."""


class AnalysisError(SandboxError):
    """An analysis function raised, hung or crashed on the text that it was given."""


class WorkerDiedError(SandboxError):
    """The worker process is gone or does not answer; its runs have no result."""
