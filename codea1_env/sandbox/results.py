"""What goes into the sandbox and what comes out: plain, frozen values."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

MAX_MESSAGE = 500
NEVER_CALLED = "the program was never called"
"""Message of an ERROR where a test would hold for any program."""


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
    """An exception was raised, the program does not define what was asked for, or a test never called it."""
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
    INFRA_ERROR = "infra_error"
    """Our own failure. It is raised as `InfraError`, and never turned into a reward."""


_MOST = 1 << 40


@dataclass(frozen=True)
class Limits:
    """What a program may use. Times are in seconds, sizes in bytes.

    Raises:
        ValueError: A limit is not a positive number.

    Example:
        >>> Limits(call_cpu_time=0.5).test_cpu_time
        7.5
    """

    call_cpu_time: float = 2.0
    """CPU time of one call, or of a test that says what a call returns."""
    call_wall_time: float = 10.0
    """Wall-clock time of the same. Larger than the CPU limit, so that a busy machine does not decide."""
    run_cpu_time: float = 20.0
    """CPU time of all tests, or all calls, of one job together; where one test may use more, that."""
    run_wall_time: float = 60.0
    """Wall-clock time of all tests, or all calls, of one job together; where one test may use more, that."""
    calls_per_test: float = 15.0
    """A test that is a program of its own makes many calls: it may use the time of so many. The slowest
    reference of HumanEval+ and MBPP+ needs 17 s for its hundred inputs. 1 gives all tests the same time."""
    memory: int = 2 << 30
    """Address space of one process."""
    output: int = 1 << 20
    """Bytes that a script prints to stdout. Of what else is printed more is dropped, if it is kept at all."""
    result: int = 32 << 20
    """Bytes of one encoded value that crosses a process boundary."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not 0 < value < _MOST
            ):
                raise ValueError(
                    f"Expect Limits.{field.name} to be a positive number below 2**40, actually: {value!r}"
                )

    @property
    def test_cpu_time(self) -> float:
        """CPU time of a test that is a program of its own, together with the program that it tests."""
        return self.call_cpu_time * self.calls_per_test

    @property
    def test_wall_time(self) -> float:
        """Wall-clock time of the same: what only sleeps need not be waited for so many times as long."""
        most = max(self.run_wall_time, 2 * self.test_cpu_time)
        return min(self.call_wall_time * self.calls_per_test, most)

    def with_room_for(self, calls: int = 0, *, tests: int = 0) -> Limits:
        """The same limits, with run limits raised so that nothing takes time from another.

        Args:
            calls: Calls of the run. Loading the program takes as long as one at most.
            tests: Tests of the run, of any kind.

        Example:
            >>> Limits(call_cpu_time=2.0, run_cpu_time=20.0).with_room_for(99).run_cpu_time
            200.0
        """
        cpu = max(self.call_cpu_time, self.test_cpu_time) * tests
        wall = max(self.call_wall_time, self.test_wall_time) * tests
        return replace(
            self,
            run_cpu_time=max(self.run_cpu_time, self.call_cpu_time * (calls + 1) + cpu),
            run_wall_time=max(self.run_wall_time, self.call_wall_time * (calls + 1) + wall),
        )

    def times(self, factor: float) -> Limits:
        """The same limits with so many times as much of all times.

        Example:
            >>> Limits(call_cpu_time=2.0).times(1.5).call_cpu_time
            3.0
        """
        return replace(
            self,
            call_cpu_time=self.call_cpu_time * factor,
            call_wall_time=self.call_wall_time * factor,
            run_cpu_time=self.run_cpu_time * factor,
            run_wall_time=self.run_wall_time * factor,
        )


def check_text(name: str, value: object, wanted: str = "a str") -> None:
    """Refuse what is no text.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"Expect {name} to be {wanted}, actually: {type(value)}")


def exact_text(text: str) -> str:
    """A text of a derived class, such as numpy's, as a plain one."""
    return text if type(text) is str else str.__str__(text)


def check_limits(name: str, limits: object) -> None:
    """Refuse what are no limits.

    Raises:
        TypeError: They are none.
    """
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(f"Expect {name} to be Limits or None, actually: {type(limits)}")


def check_seed(name: str, seed: object) -> None:
    """Refuse another hash seed than there is.

    Raises:
        ValueError: There is none of this number.
    """
    if isinstance(seed, bool) or seed not in (0, 1):
        raise ValueError(f"Expect {name} to be 0 or 1, actually: {seed!r}")


def one_line(text: str) -> str:
    r"""A text of hostile origin as one short line of printable characters, that can be encoded.

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


def _explained(outcome: Outcome, message: str) -> str:
    if outcome is Outcome.MEMORY and not message:  # a MemoryError has no text
        message = "the memory limit was reached"
    return one_line(message) if message else message


@dataclass(frozen=True)
class TestResult:
    """The verdict on one test."""

    __test__ = False  # pytest would collect a class of this name

    outcome: Outcome
    message: str = ""
    """Why, in one printable line: the exception, the two values that differ, the limit that was reached."""
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _explained(self.outcome, self.message))

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _explained(self.outcome, self.message))


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _explained(self.outcome, self.message))


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
