"""What a sandbox can be asked for, each as a task: what is checked first, which worker it needs, what it does there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from .assertions import AssertionReader
from .calls import Answers, Calls, EncodedCases, answer_calls, encoded_data, judge_cases
from .compare import Comparison, read_returned
from .inside import codec
from .jobs import Job, Limits, WorkerKind, check_seed
from .judging import judge
from .outcomes import Stop, bounds_of, load_of, outcome_of
from .results import (
    CallResult,
    JobResult,
    LevelUnavailableError,
    Outcome,
    ScriptResult,
    TestResult,
    cause_of,
)
from .runs import ALLOWANCE, answer_run
from .supervise import dismissed_on_error
from .test_modules import ModuleJob, TestModuleResult, has_pytest, run_module
from .watch import Watch
from .workers import Attempt, Slots, TaskRunner

MAX_INPUT = 16 << 20
"""Bytes of standard input."""

Arguments = Sequence[tuple[Sequence[Any], dict[str, Any]]]
"""Positional and keyword arguments of each call."""

T = TypeVar("T")


def _pattern(packages: Iterable[str]) -> re.Pattern[str]:
    """Find a mention of a package; without one, a program does not import it."""
    names = [*packages, *(["np"] if "numpy" in packages else [])]
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b" if names else r"(?!)")


def _returned(reply: bytes | TestResult, cpu_time: float, meter: codec.Meter) -> CallResult:
    """Return the result of a call for somebody who wants the value."""
    found = read_returned(reply, meter) if isinstance(reply, bytes) else reply
    if isinstance(found, TestResult):
        return CallResult(found.outcome, cpu_time=cpu_time, **cause_of(found))
    return CallResult(Outcome.PASS, found.value, "", cpu_time)


class SandboxTask(NamedTuple, Generic[T]):
    """Something to be done in a sandbox, by a worker of a kind."""

    attempt: Attempt[T]
    kind: WorkerKind
    limits: Limits | None
    """Overrides those of the sandbox."""
    unjudged: Callable[[TestResult], T]
    """Makes of a reason what comes of it where our part fails at it, while it does not at other jobs."""


class Tasks:
    """Makes the tasks of one sandbox."""

    def __init__(
        self,
        packages: tuple[str, ...],
        level: Callable[[], str],
        reader: Callable[[], AssertionReader],
    ) -> None:
        self._packages = packages
        self._level = level
        self._reader = reader
        self._mentions = _pattern(packages)

    def _kind(self, hash_seed: int, *texts: str) -> WorkerKind:
        return WorkerKind(hash_seed, any(map(self._mentions.search, texts)))

    def _calling(self, hash_seed: int, code: str) -> WorkerKind:
        return self._kind(hash_seed, code)._replace(calls_only=True)

    def tests(self, job: Job) -> SandboxTask[JobResult]:
        """Judge the tests of a job."""
        kind = self._kind(job.hash_seed, job.code, *job.tests)

        def attempt(run: TaskRunner, limits: Limits) -> JobResult:
            return judge(run, self._reader(), job, kind, limits)

        return SandboxTask(
            attempt, kind, job.limits, lambda why: JobResult(why, (why,) * len(job.tests))
        )

    def calls(
        self,
        code: str,
        name: str,
        arguments: Arguments,
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: Callable[[Any], bool] | None = None,
    ) -> SandboxTask[list[CallResult]]:
        """Call a function of a program, with plain data. All calls share one process while nothing goes wrong.

        Args:
            code: Program text.
            name: The function.
            arguments: Positional and keyword arguments of each call. Numbers and arrays of numpy become Python's.
            limits: See `Job.limits`.
            hash_seed: See `Job.hash_seed`.
            stop: Whether the call that returned a value is the last. One that returns none then is the last, too.

        Raises:
            TypeError: An argument is not plain data.
            InfraError: See `Sandbox.run_tests`.
        """
        check_seed("hash_seed", hash_seed)
        numpy = codec.Numpy(module) if (module := sys.modules.get("numpy")) is not None else None
        try:
            data = [encoded_data(args, kwargs, numpy) for args, kwargs in arguments]
        except codec.EncodeError as error:
            raise TypeError(f"Expect the arguments to be plain data, actually: {error}") from None
        calls, kind = Calls(name, data, name), self._calling(hash_seed, code)

        def attempt(run: TaskRunner, limits: Limits) -> list[CallResult]:
            meter = codec.Meter(codec.VALUES)
            found: list[CallResult] = []

            def judge(number: int, frame: bytes) -> TestResult:
                found.append(_returned(frame, 0.0, meter))
                is_last = found[-1].outcome is not Outcome.PASS or stop(found[-1].value)  # type: ignore[misc]
                return TestResult(Outcome.FAIL if is_last else Outcome.PASS)

            def make(slots: Slots) -> Answers:
                found.clear()
                one = judge if stop is not None else None
                return answer_calls(slots, code, calls, limits, judge=one, stop=one is not None)

            answers = run(kind, make)
            times = zip(answers.replies, answers.times, strict=True)
            results = [replace(each, cpu_time=next(times)[1]) for each in found]
            results += [_returned(*each, meter) for each in times]
            return results or [_returned(answers.load, 0.0, meter)] * bool(data)

        return SandboxTask(
            attempt,
            kind,
            limits,
            lambda why: [CallResult(why.outcome, message=why.message)] * len(data),
        )

    def encoded(
        self,
        code: str,
        name: str,
        calls: Sequence[bytes],
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
        at_once: Collection[int] | None = None,
        allowance: float = ALLOWANCE,
        again: bool = True,
    ) -> SandboxTask[Answers]:
        """Make the calls of a run, encoded by `encoded_arguments`, whose replies are compared as bytes; see `answer_run`."""
        check_seed("hash_seed", hash_seed)
        kind, asked = self._calling(hash_seed, code), Calls(name, list(calls), name)

        def attempt(run: TaskRunner, limits: Limits) -> Answers:
            return run(
                kind,
                lambda slots: answer_run(slots, code, asked, limits, at_once, allowance, again),
            )

        return SandboxTask(attempt, kind, limits, lambda why: Answers(why, [why] * len(calls)))

    def cases(
        self,
        code: str,
        name: str,
        cases: EncodedCases,
        *,
        comparison: Comparison = Comparison(),  # noqa: B008  frozen
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: bool = False,
    ) -> SandboxTask[JobResult]:
        """Judge cases, encoded once for many programs, as `Sandbox.run_cases` does."""
        check_seed("hash_seed", hash_seed)
        kind = self._calling(hash_seed, code)

        def attempt(run: TaskRunner, limits: Limits) -> JobResult:
            return run(
                kind,
                lambda slots: judge_cases(slots, code, name, cases, comparison, limits, stop=stop),
            )

        return SandboxTask(
            attempt,
            kind,
            limits,
            lambda why: JobResult(why, () if stop else (why,) * len(cases.calls)),
        )

    def script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> SandboxTask[ScriptResult]:
        """Run a program that reads standard input and prints, as in APPS and LiveCodeBench.

        Args:
            code: Program text; it runs as `__main__`.
            stdin: What it reads.
            limits: See `Job.limits`. The limits of one call are for the whole program.
            scratch: Whether its current folder may be written to: 16 MiB, empty at the start and gone afterwards.

        Raises:
            LevelUnavailableError: `scratch` is asked for at another level than "namespaces", which alone can bound it.
            ValueError: The input is larger than 16 MiB.
            InfraError: See `Sandbox.run_tests`.
        """
        data = stdin.encode("utf-8", "surrogatepass")
        if len(data) > MAX_INPUT:
            raise ValueError(
                f"Expect standard input of at most {MAX_INPUT} bytes, actually: {len(data)}"
            )

        kind = self._kind(0, code)._replace(scratch=scratch)

        def attempt(run: TaskRunner, limits: Limits) -> ScriptResult:
            if scratch and self._level() != "namespaces":
                raise LevelUnavailableError(
                    'Expect level "namespaces" for scratch=True, since only there what programs write can be bounded; '
                    f"actually: {self._level()!r}. `codea1 sandbox doctor` says what the machine lacks."
                )
            return run(kind, lambda slots: run_script(slots, code, data, limits))

        return SandboxTask(
            attempt, kind, limits, lambda why: ScriptResult(why.outcome, message=why.message)
        )

    def module(
        self,
        code: str,
        test_file: str,
        module: str = "solution",
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> SandboxTask[TestModuleResult]:
        """Run a test file on a program: both whole, in one process, by the installed pytest.

        Plugins are those of allowed packages. `tmp_path` is a folder of 16 MiB, at level "namespaces". A hostile program
        can forge these verdicts (`judged` is "inside"): they are for measures, and for one's own code.

        Args:
            code: Program text.
            test_file: The text of the test file.
            module: The name by which it imports the program; it may have dots.
            limits: See `Job.limits`. Each test may use `Limits.test_cpu_time`.
            hash_seed: See `Job.hash_seed`.

        Raises:
            ImportError: pytest is not installed; the message names the extra.
            InfraError: See `Sandbox.run_tests`.
        """
        check_seed("hash_seed", hash_seed)
        if not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f"Expect module to be a module's name, actually: {module!r:.100}")
        if not has_pytest():
            raise ImportError(
                "Expect pytest, which runs test modules, actually it is not installed: "
                "pip install 'codea1-env[evaluation]'"
            )
        job = ModuleJob(code, test_file, module)

        kind = self._kind(hash_seed, code, test_file)._replace(scratch=True, testing=True)
        if self._packages not in ((), ("numpy",)):  # fixtures of a plugin are used without its name
            kind = kind._replace(with_packages=True)

        def attempt(run: TaskRunner, limits: Limits) -> TestModuleResult:
            return run(kind, lambda slots: run_module(slots, job, limits))

        return SandboxTask(
            attempt, kind, limits, lambda why: TestModuleResult([replace(why, judged="inside")])
        )


def run_script(slots: Slots, code: str, stdin: bytes, limits: Limits) -> ScriptResult:
    """Run a program once that reads standard input and prints, as in APPS and LiveCodeBench."""
    try:
        job = codec.encode({"code": code, "stdin": stdin, **bounds_of(limits)})
    except codec.SizeError:
        return ScriptResult(Outcome.SYNTAX_ERROR, message="the program is too large")
    child = slots.take()
    child.keep_output()
    with dismissed_on_error(child):
        child.start(limits, job, may_send=1)
        watch = Watch(child)
        frame = watch.frame(limits.call_cpu_time, limits.call_wall_time)
        stop = frame if isinstance(frame, Stop) else None
        if stop is None and not watch.closes_cleanly():
            stop = Stop.FLOOD
        child.read_all_output()
        if child.stop is Stop.OUTPUT:
            stop = Stop.OUTPUT
        spent = watch.lap()
    ended = child.end()
    stdout, stderr = child.printed()
    if stop is not None:
        if stop is Stop.CLOSED:  # `end` knows whether the process had ended, too
            stop = child.stop or stop
        why = outcome_of(stop, ended)
        if why.outcome is Outcome.EXITED and stop is Stop.CLOSED and not ended.code:
            why = TestResult(Outcome.PASS)  # `os._exit(0)`: what it printed is compared elsewhere
        spent = max(spent, child.used(ended))
    else:
        assert not isinstance(frame, Stop)
        why = load_of(frame)
    return ScriptResult(why.outcome, stdout, cpu_time=spent, stderr=stderr, **cause_of(why))
