"""Tests that are no data: program and tests run whole, in one process, by the installed pytest.

Whatever such a process says can be forged by the program: its results say `judged="inside"`, and no reward takes them.
A test that ends the process, or reaches a limit, keeps the results before it; those after it run in a new process.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from .inside import codec
from .jobs import Limits
from .outcomes import Stop, bounds_of, outcome_of, too_long
from .processes import less
from .results import MAX_MESSAGE, NO_TESTS, RUN_LIMIT, Limit, Outcome, TestResult, one_line
from .supervise import dismissed_on_error
from .watch import Watch
from .workers import Slots

_NOTHING = 1e-9  # seconds: no time is left
_MOST_LINE = 1 << 30
_MOST_TESTS = 10_000
_MOST_HELD = 64 << 20
_MAX_NAME = 300
_MAX_TRACEBACK = 4000
_OUTCOMES = {
    "pass": Outcome.PASS, "fail": Outcome.FAIL, "error": Outcome.ERROR, "memory": Outcome.MEMORY,
    "exited": Outcome.EXITED, "syntax": Outcome.SYNTAX_ERROR,
}  # fmt: skip
_SKIPPED = "skip"

ALL_SKIPPED = "every test was skipped"
NEEDS_PYTEST = TestResult(
    Outcome.ERROR,
    "the test needs pytest, which is not installed: pip install 'codea1-env[evaluation]'",
    error="ModuleNotFoundError",
    missing_module="pytest",
    judged="inside",
)


class TestModuleResult(list[TestResult]):
    """The results of a test module, one per collected test, in order.

    Skipped tests, and those that failed as expected (`xfail`), are left out. Where no test is left, or the module cannot be
    collected, one result without a name says why.

    Attributes:
        skipped: The names of the tests that are left out.
    """

    __test__ = False

    def __init__(self, results: Iterable[TestResult] = (), skipped: Iterable[str] = ()) -> None:
        super().__init__(results)
        self.skipped = tuple(skipped)

    @property
    def passed(self) -> bool:
        """Whether every test has passed, and there was one."""
        return bool(self) and all(result.passed for result in self)


@dataclass(frozen=True)
class ModuleJob:
    """A program and its tests, that run together."""

    code: str
    test: str
    """The test file; or, with `text`, a text that sees the program's names, and ends with the first failure."""
    module: str = "solution"
    """The name by which the test file imports the program."""
    text: bool = False
    entry_point: str | None = None
    """The only name of the program that a text sees; None for all."""
    pytest: bool = True
    """Whether there are tests for pytest to collect, and not only a text to run."""

    def __post_init__(self) -> None:
        if not all(part.isidentifier() for part in self.module.split(".")):
            raise ValueError(f"Expect module to be a module's name, actually: {self.module!r:.100}")


def has_pytest() -> bool:
    """Whether pytest is installed here, which test modules need."""
    return importlib.util.find_spec("pytest") is not None


def check_pytest() -> None:
    """Refuse to run a test module without pytest."""
    if not has_pytest():
        raise ImportError(
            "Expect pytest, which runs test modules, actually it is not installed: "
            "pip install 'codea1-env[evaluation]'"
        )


class _MalformedError(Exception):
    """The process has said what our part of it never says."""


@dataclass
class _Found:
    """What has been said so far, by one process after the other."""

    output: int
    """Characters of what a test prints that are kept."""
    names: list[str] | None = None
    ended: dict[int, TestResult] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)
    whole: TestResult | None = None
    """In place of results of single tests."""
    load: TestResult | None = None
    """How loading the program ended, where a text could not begin because of it."""
    held: int = 0

    def next(self) -> int:
        """Return the number of the first test that has not ended."""
        number = 0
        while number in self.ended or number in self.skipped:
            number += 1
        return number

    def note(self, message: Any, cpu_time: float) -> bool:
        """Take in one message; whether it is the last."""
        if type(message) is not tuple or not message or type(message[0]) is not str:
            raise _MalformedError
        kind, *details = message
        if kind == "end":
            return True
        try:
            _NOTED[kind](self, *details, cpu_time=cpu_time)
        except (TypeError, KeyError) as error:  # another kind, or other details
            raise _MalformedError from error
        return False

    def _collected(self, names: Any, *, cpu_time: float) -> None:
        if not _is_list(names, _MOST_TESTS) or not all(type(name) is str for name in names):
            raise _MalformedError
        if self.names is not None and len(self.names) != len(names):
            raise _MalformedError
        self.names = [one_line(name)[:_MAX_NAME] for name in names]

    def _failed(self, finding: Any, *, cpu_time: float) -> None:
        if _kind_of(finding) == _SKIPPED:
            self.whole = _nothing(ALL_SKIPPED)
        else:
            self.whole = _no_pass(_result(finding, cpu_time=cpu_time))

    def _unloaded(self, finding: Any, *, cpu_time: float) -> None:
        self.whole = self.load = _no_pass(_result(finding, cpu_time=cpu_time))

    def _test(
        self, number: Any, finding: Any, stdout: Any, stderr: Any, *, cpu_time: float
    ) -> None:
        if self.names is None or type(number) is not int or not 0 <= number < len(self.names):
            raise _MalformedError
        if _kind_of(finding) == _SKIPPED:
            self.skipped.add(number)
        elif type(stdout) is str and type(stderr) is str:
            result = _result(finding, self.names[number], cpu_time)
            stdout, stderr = stdout[: self.output], stderr[: self.output]
            self.ended[number] = replace(result, stdout=stdout, stderr=stderr)
        else:
            raise _MalformedError

    def result(self) -> TestModuleResult:
        names = self.names or []
        results = [self.ended[number] for number in sorted(self.ended)]
        if self.whole is not None:
            results = [*results, self.whole]
        if not results:
            results = [_nothing(ALL_SKIPPED if names else NO_TESTS)]
        return TestModuleResult(results, (names[number] for number in sorted(self.skipped)))


_NOTED: dict[str, Any] = {
    "collected": _Found._collected, "failed": _Found._failed, "test": _Found._test,
    "unloaded": _Found._unloaded,
}  # fmt: skip


def _nothing(why: str) -> TestResult:
    return TestResult(Outcome.ERROR, why, judged="inside", vacuous=True)


def _is_list(said: Any, most: int) -> bool:
    """True for a list of at most `most` items. A `range` is refused: few bytes can encode any length."""
    return type(said) is list and len(said) <= most


def _kind_of(finding: Any) -> Any:
    if type(finding) is not tuple or len(finding) != 6:
        raise _MalformedError
    return finding[0]


def _no_pass(result: TestResult) -> TestResult:
    if result.passed:
        raise _MalformedError
    return result


def _result(finding: Any, name: str = "", cpu_time: float = 0.0) -> TestResult:
    _kind_of(finding)
    kind, message, line, traceback, error, missing = finding
    if not all(type(each) is str for each in (kind, message, traceback, error, missing)):
        raise _MalformedError
    return TestResult(
        _OUTCOMES[kind],
        message[:MAX_MESSAGE],
        cpu_time,
        name=name,
        line=line if type(line) is int and 0 < line < _MOST_LINE else None,
        traceback="\n".join(map(one_line, traceback[-_MAX_TRACEBACK:].split("\n"))),
        error=error or None,
        missing_module=missing or None,
        judged="inside",
    )


def room_for_a_test(limits: Limits) -> Limits:
    """Return the same limits, with those of a run raised to what one test may use."""
    return replace(
        limits,
        run_cpu_time=max(limits.run_cpu_time, limits.test_cpu_time),
        run_wall_time=max(limits.run_wall_time, limits.test_wall_time),
    )


def run_module(slots: Slots, job: ModuleJob, limits: Limits) -> TestModuleResult:
    """Run the tests of a module, each within the limits of a test, all within those of a run."""
    found = _Found(int(limits.output))
    left = room_for_a_test(limits)
    why = too_long(job.code) or too_long(job.test)
    if why is not None:
        found.whole = replace(why, judged="inside")
    while found.whole is None:
        started = time.monotonic()
        ending, spent = _run_part(slots, job, found, left)
        left = less(left, spent, time.monotonic() - started)
        if ending is None:
            break
        number = found.next()
        if found.names is None or number >= len(found.names):
            found.whole = ending
            break
        found.ended[number] = replace(ending, name=found.names[number])
        if found.next() >= len(found.names):
            break
        if min(left.run_cpu_time, left.run_wall_time) <= _NOTHING:
            _end_rest(found, TestResult(Outcome.TIMEOUT, RUN_LIMIT, limit=Limit.RUN))
    if found.whole is None:
        not_run = "the test was not run: the session ended before it"
        _end_rest(found, TestResult(Outcome.ERROR, not_run))
    return found.result()


def judge_text(slots: Slots, job: ModuleJob, limits: Limits) -> tuple[TestResult, TestResult]:
    """Run a text together with a program: how loading the program ended, and the verdict on the text."""
    found = _Found(int(limits.output))
    why = too_long(job.test)
    ending, spent = (why, 0.0) if why is not None else _run_part(slots, job, found, limits)
    failed = [result for result in found.ended.values() if not result.passed]
    result = TestResult(Outcome.PASS)
    if found.whole is not None:
        result = found.whole
    elif failed:
        result = failed[0]
    elif ending is not None:
        result = ending
    elif found.names and not found.ended:
        result = _nothing(ALL_SKIPPED)
    result = replace(result, cpu_time=spent, name="", judged="inside", stdout="", stderr="")
    load = found.load or TestResult(Outcome.PASS)
    return replace(load, judged="inside"), result


def _end_rest(found: _Found, why: TestResult) -> None:
    for number, name in enumerate(found.names or []):
        if number not in found.ended and number not in found.skipped:
            found.ended[number] = replace(why, name=name, judged="inside")


def _job_frame(job: ModuleJob, first: int, limits: Limits, *, has_folder: bool) -> bytes:
    return codec.encode(
        {
            "code": job.code,
            "module": job.module,
            "test": job.test,
            "text": job.text,
            "entry_point": job.entry_point,
            "first": first,
            "pytest": job.pytest,
            "has_folder": has_folder,
            "output": int(limits.output),
            **bounds_of(limits),
        }
    )


def _run_part(
    slots: Slots, job: ModuleJob, found: _Found, limits: Limits
) -> tuple[TestResult | None, float]:
    """Run tests until one stops the process: how it ended where it had not reached its end, and the CPU time."""
    child = slots.take()
    with dismissed_on_error(child):
        told = _job_frame(job, found.next(), limits, has_folder=slots.worker.has_folder)
        child.start(limits, told, may_send=_MOST_TESTS + 4)
        watch = Watch(child)
        stop, spent = _receive(watch, found, limits)
    if stop is None:
        child.dismiss()
        return None, spent
    ended = child.end()
    ending = replace(outcome_of(child.stop or stop, ended), judged="inside")
    return ending, max(spent, child.used(ended))


def _receive(watch: Watch, found: _Found, limits: Limits) -> tuple[Stop | None, float]:
    """Take in messages to the last one: why there was none, and the CPU time."""
    spent = 0.0
    while True:
        cpu = min(limits.test_cpu_time, limits.run_cpu_time - spent)
        wall = min(limits.test_wall_time, limits.run_wall_time - watch.elapsed_unqueued())
        frame = watch.frame(cpu, wall)
        if isinstance(frame, Stop):
            return frame, spent
        lap = watch.lap()
        spent += lap
        found.held += len(frame)
        if found.held > _MOST_HELD:
            return Stop.TOO_LONG, spent
        try:
            if found.note(_read(frame), lap):
                return None, spent
        except _MalformedError:
            return Stop.FLOOD, spent
        except Exception:
            return Stop.FAULT, spent


def _read(frame: bytes) -> Any:
    try:
        return codec.decode(frame, meter=codec.Meter(codec.VALUES))
    except codec.DecodeError:
        raise _MalformedError from None
