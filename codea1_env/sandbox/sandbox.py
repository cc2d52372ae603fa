"""The sandbox as its users see it: programs and tests in, results out."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from .analysis import Analyst
from .assertions import AssertionReader
from .calls import (
    Answers,
    Arguments,
    Case,
    EncodedCases,
    answer_calls,
    encoded_arguments,
    encoded_calls,
    encoded_cases,
    expected_frame,
    judge_cases,
    returned_values,
)
from .compare import Comparison, Rule, default_atol
from .jobs import Job, Limits, WorkerKind, check_seed, exact
from .judging import judge
from .levels import check_level, check_memory, strongest_level
from .outcomes import fault
from .packages import mention_of, packages_of
from .processes import Calls, check_inputs
from .results import (
    CallResult,
    InfraError,
    JobResult,
    LevelUnavailableError,
    Outcome,
    SandboxError,
    ScriptResult,
    TestResult,
)
from .runs import DEFAULT_RULES, RunRules, answer_run
from .scripts import input_bytes, run_script
from .test_modules import ModuleJob, TestModuleResult, check_pytest, run_module
from .workers import Attempt, Slots, TaskRunner, WorkerPool

P = ParamSpec("P")
T = TypeVar("T")


class _Starters(NamedTuple):
    """What starts the processes of a sandbox, and the process that owns them."""

    owner: int
    pool: WorkerPool
    analyst: Analyst
    reader: AssertionReader


_of_other_processes: list[_Starters] = []
"""Kept as they are: to end them is for the process that started them."""


class Sandbox:
    """Runs untrusted programs and untrusted tests, away from us. Its processes start with the first job.

    Safe to use from several threads, and after a fork: the copy of the process gets processes of its own.

    Args:
        workers: How many programs run at the same time.
        limits: What a job may use unless it says otherwise.
        level: "namespaces", "kernel" or "process"; see docs/sandbox.md. None chooses the strongest that works, and at
            least "kernel".
        packages: Installed packages that programs and tests may import, by the names that they are imported by, with what
            these need themselves.

    Raises:
        ValueError: `workers` is not positive, the level is unknown, or a package is not installed.
        LevelUnavailableError: The machine does not offer the level; raised by the first job.

    Example:
        >>> with Sandbox() as sandbox:
        ...     results = sandbox.run_tests("def add(a, b): return a - b", ["assert add(1, 0) == 1"])
        >>> results[0].outcome
        <Outcome.PASS: 'pass'>
    """

    def __init__(
        self,
        workers: int = 1,
        limits: Limits | None = None,
        *,
        level: str | None = None,
        packages: str | Sequence[str] = ("numpy",),
    ) -> None:
        if workers < 1:
            raise ValueError(f"Expect workers to be a positive integer, actually: {workers!r}")
        self.workers = workers
        self.limits = limits if limits is not None else Limits()
        self._packages = packages_of(packages)
        self._mentions = mention_of(self._packages)
        self.asked_level = check_level(level)
        self._starters = self._start()

    @property
    def level(self) -> str:
        """How strongly programs and tests are confined.

        Raises:
            LevelUnavailableError: The machine offers less than "kernel", and no level was asked for.
        """
        return self.asked_level if self.asked_level is not None else strongest_level()

    @property
    def runs(self) -> int:
        """How many runs of programs have ended so far."""
        return self._here().pool.runs

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages outside the standard library that programs and tests may import."""
        return tuple(self._packages)

    # What it can be asked for. Each method waits for its result; `submit` makes the same call in a thread.

    def run_tests(
        self,
        code: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        limits: Limits | None = None,
    ) -> list[TestResult]:
        """Judge tests on one program.

        Args:
            code: Program text.
            tests: Test texts, judged one by one. An assertion that compares a call with a literal (`assert f(1) == 2`) is
                judged outside, any other program text inside.
            entry_point: See `Job.entry_point`.
            limits: See `Job.limits`.

        Returns:
            One result per test, in order.

        Raises:
            InfraError: The sandbox does not work. Where it fails at this job only, that is `Outcome.UNJUDGED`.
        """
        return list(self.judge(Job(code, tests, entry_point, limits)).tests)

    def run_many(self, jobs: Sequence[Job]) -> list[list[TestResult]]:
        """Judge many jobs in parallel: the results of each, in order. The first failure of ours is raised."""
        futures = [self.submit(self.judge, job) for job in jobs]
        try:
            return [list(future.result().tests) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def judge(self, job: Job) -> JobResult:
        """Judge the tests of a job, and say how its program loaded; see `run_tests`."""
        kind = self._kind(job.hash_seed, job.code, *job.tests)

        def attempt(run: TaskRunner, limits: Limits) -> JobResult:
            return judge(run, self._here().reader, job, kind, limits)

        return self._run(
            attempt, kind, job.limits, lambda why: JobResult(why, (why,) * len(job.tests))
        )

    def run_cases(
        self,
        code: str,
        name: str,
        cases: Sequence[Case],
        *,
        compare: Rule = "equal",
        atol: float = 0.0,
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: bool = False,
    ) -> list[TestResult]:
        """Judge cases on one program: each call's value is compared outside of the program's process.

        Args:
            code: Program text.
            name: The function, or `Class.method`: the method of a new instance for each case.
            cases: The tests. All expected values are known.
            compare: When a value is right; see `codea1_env.sandbox.compare.Comparison`.
            atol: Absolute tolerance of floats and printed numbers. 0 stands for 1e-6, that of EvalPlus; by lines for none.
            limits: See `Job.limits`.
            hash_seed: See `Job.hash_seed`.
            stop: Whether the first case that is not passed is the last.

        Raises:
            TypeError: A case is not plain data.
            InfraError: See `run_tests`.

        Example:
            >>> with Sandbox() as sandbox:
            ...     [result] = sandbox.run_cases("def half(n): return n / 2", "half", [Case((3,), {}, 1.5)])
            >>> result.outcome, result.judged
            (<Outcome.PASS: 'pass'>, 'outside')
        """
        result = self.judge_cases(
            code,
            name,
            encoded_cases(cases),
            comparison=Comparison(exact(compare), atol or default_atol(compare)),
            limits=limits,
            hash_seed=hash_seed,
            stop=stop,
        )
        return list(result.tests) or [result.load] * (bool(cases) and not result.load.passed)

    def judge_cases(
        self,
        code: str,
        name: str,
        cases: EncodedCases,
        *,
        comparison: Comparison = Comparison(),  # noqa: B008  frozen
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: bool = False,
    ) -> JobResult:
        """Judge cases that are encoded once for many programs, and say how the program loaded; see `run_cases`."""
        code, name = exact(code), exact(name)
        kind = self._kind_of(hash_seed, code, name, cases.calls)
        count = 0 if stop else len(cases.calls)
        return self._run_once(
            lambda slots, most: judge_cases(slots, code, name, cases, comparison, most, stop=stop),
            kind,
            limits,
            lambda why: JobResult(why, (why,) * count),
        )

    def call(
        self,
        code: str,
        name: str,
        arguments: Arguments,
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: Callable[[Any], bool] | None = None,
    ) -> list[CallResult]:
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
            InfraError: See `run_tests`.
        """
        code, name = exact(code), exact(name)
        calls = Calls(name, encoded_calls(arguments), name)
        return self._run_once(
            lambda slots, most: returned_values(slots, code, calls, most, stop),
            self._kind_of(hash_seed, code, name, calls.arguments),
            limits,
            lambda why: [CallResult(why.outcome, message=why.message)] * len(calls.arguments),
        )

    def run_calls(
        self,
        code: str,
        name: str,
        calls: Sequence[bytes],
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
        rules: RunRules = DEFAULT_RULES,
    ) -> Answers:
        """Make the calls of a run, encoded by `encoded_arguments`, whose replies are compared as bytes.

        Args:
            code: Program text.
            name: The function.
            calls: See `encoded_arguments`.
            limits: See `Job.limits`.
            hash_seed: See `Job.hash_seed`.
            rules: See `codea1_env.sandbox.runs.RunRules`.
        """
        code, name = exact(code), exact(name)
        asked = Calls(name, list(calls), name)
        return self._run_once(
            lambda slots, most: answer_run(slots, code, asked, most, rules),
            self._kind_of(hash_seed, code, name, calls),
            limits,
            lambda why: Answers(why, [why] * len(calls)),
        )

    def run_script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> ScriptResult:
        """Run a program that reads standard input and prints, as in APPS and LiveCodeBench.

        Args:
            code: Program text; it runs as `__main__`.
            stdin: What it reads.
            limits: See `Job.limits`. The limits of one call are for the whole program.
            scratch: Whether its current folder may be written to: 16 MiB, empty at the start and gone afterwards.

        Raises:
            LevelUnavailableError: `scratch` is asked for at another level than "namespaces", which alone can bound it.
            ValueError: The input is larger than 16 MiB.
            InfraError: See `run_tests`.
        """
        code, data = exact(code), input_bytes(stdin)
        if scratch and self.level != "namespaces":
            raise LevelUnavailableError(
                'Expect level "namespaces" for scratch=True, since only there what programs write can be bounded; '
                f"actually: {self.level!r}. `codea1 sandbox doctor` says what the machine lacks."
            )
        return self._run_once(
            lambda slots, most: run_script(slots, code, data, most).result,
            self._kind(0, code)._replace(scratch=scratch),
            limits,
            lambda why: ScriptResult(why.outcome, message=why.message),
        )

    def run_test_module(
        self,
        code: str,
        test_file: str,
        module: str = "solution",
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> TestModuleResult:
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
            InfraError: See `run_tests`.
        """
        job = ModuleJob(exact(code), exact(test_file), exact(module))
        check_pytest()
        kind = self._kind(hash_seed, job.code, job.test)._replace(scratch=True, testing=True)
        if self.packages not in ((), ("numpy",)):  # fixtures of a plugin are used without its name
            kind = kind._replace(with_packages=True)
        return self._run_once(
            lambda slots, most: run_module(slots, job, most),
            kind,
            limits,
            lambda why: TestModuleResult([replace(why, judged="inside")]),
        )

    def submit(
        self, method: Callable[P, T], /, *arguments: P.args, **keywords: P.kwargs
    ) -> Future[T]:
        """Make a call in a thread of the pool and return at once: `submit(sandbox.run_tests, code, tests)`.

        It may be any function, such as one whose calls of this sandbox depend on each other. A function that waits for
        others in the pool, as `run_many` does, could wait for ever.
        """
        return self._here().pool.submit(lambda: method(*arguments, **keywords))

    def analyse(self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Call one of this package's own functions on hostile text, in a helper process; see `Analyst.analyse`."""
        here = self._here()
        here.pool.check_open()
        found: T = here.analyst.analyse(function, *arguments)
        return found

    # How it is done

    def _kind(self, hash_seed: int, *texts: str, calls_only: bool = False) -> WorkerKind:
        check_seed("hash_seed", hash_seed)
        return WorkerKind(hash_seed, any(map(self._mentions.search, texts)), calls_only)

    def _kind_of(self, hash_seed: int, code: str, name: str, calls: Sequence[bytes]) -> WorkerKind:
        """The worker for calls, or for inputs of a whole program."""
        if not name:
            check_inputs(calls)
        return self._kind(hash_seed, code, calls_only=bool(name))

    def _run_once(
        self,
        task: Callable[[Slots, Limits], T],
        kind: WorkerKind,
        limits: Limits | None,
        unjudged: Callable[[TestResult], T],
    ) -> T:
        def attempt(run: TaskRunner, most: Limits) -> T:
            return run(kind, lambda slots: task(slots, most))

        return self._run(attempt, kind, limits, unjudged)

    def _run(
        self,
        attempt: Attempt[T],
        kind: WorkerKind,
        limits: Limits | None,
        unjudged: Callable[[TestResult], T],
    ) -> T:
        """Everything that runs in this sandbox goes through here.

        Where our part fails at it, though it does not at a known job, `unjudged` makes a result of the reason.
        """
        limits = limits if limits is not None else self.limits
        check_memory(limits)
        try:
            return self._here().pool.run_by_work(attempt, limits)
        except InfraError as error:
            if not self._works(kind):
                raise
            failed = str(error)
        except SandboxError:
            raise
        except Exception as error:  # one program's doing, and no other job's
            return unjudged(fault(error))
        return unjudged(TestResult(Outcome.UNJUDGED, f"other jobs are judged, but {failed}"))

    def _works(self, kind: WorkerKind) -> bool:
        """Whether a known job succeeds on a fresh worker at this moment."""

        def task(slots: Slots) -> bool:
            if not kind.calls_only:
                return run_script(slots, "print(2)", b"", Limits()).result.stdout == "2\n"
            call = encoded_arguments([], {})
            found = answer_calls(slots, "def f(): return 2", Calls("f", [call], "f"), Limits())
            return [*found.replies] == [expected_frame(2)]

        try:
            return self._here().pool.run(task, kind, fresh=True)
        except InfraError:
            return False

    def _start(self) -> _Starters:
        analyst = Analyst()
        pool = WorkerPool(self.workers, lambda: self.level, self._packages)
        return _Starters(os.getpid(), pool, analyst, AssertionReader(analyst))

    def _here(self) -> _Starters:
        """What starts and uses processes; a forked copy of this process does not own the original's."""
        if self._starters.owner != os.getpid():
            _of_other_processes.append(self._starters)
            self._starters = self._start()
        return self._starters

    def close(self) -> None:
        """Cancel what has not begun, wait for what has, and end all processes."""
        here = self._here()
        here.pool.close()
        here.analyst.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, _: object) -> Self:
        return self  # one service: gymnasium copies the arguments of its environments

    def __reduce__(self) -> Any:
        raise TypeError(
            "Expect a sandbox to stay in its process, actually: it was copied or pickled; "
            "make one where it is needed, or use default_sandbox()"
        )


_default: tuple[int, Sandbox] | None = None
_default_lock = threading.Lock()


def default_sandbox() -> Sandbox:
    """The sandbox that this process shares, with one worker per usable core; closed at exit."""
    global _default
    with _default_lock:
        if _default is None or _default[0] != os.getpid() or _default[1]._here().pool.closed:
            _default = (os.getpid(), Sandbox(workers=len(os.sched_getaffinity(0))))
            atexit.register(_close_in, *_default)
        return _default[1]


def _close_in(pid: int, sandbox: Sandbox) -> None:
    if os.getpid() == pid:
        sandbox.close()
