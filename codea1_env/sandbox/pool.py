"""The sandbox as its users see it: programs and tests in, results out."""

from __future__ import annotations

import atexit
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

from .analysis import Analyst
from .assertions import AssertionReader
from .calls import Calls, Case, answer_calls, encoded_arguments, encoded_cases, expected_frame
from .compare import FLOAT_ATOL, Comparison, Rule
from .jobs import Job, Limits, WorkerKind, exact
from .levels import check_level, check_memory, strongest_level
from .outcomes import fault
from .packages import packages_of
from .results import InfraError, JobResult, Outcome, SandboxError, TestResult
from .tasks import SandboxTask, Tasks, run_script
from .workers import Slots, WorkerPool

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


def _describe(method: Any, make: Callable[..., object], name: str, returns: str) -> None:
    """Give a method what `help` shows: the text and the arguments of the task, with what it returns itself."""
    made = inspect.signature(make)
    result = str(made.return_annotation).removeprefix("SandboxTask[").removesuffix("]")
    method.__name__, method.__qualname__, method.__doc__ = name, f"Sandbox.{name}", make.__doc__
    method.__signature__ = made.replace(return_annotation=returns.format(result))


def _submitting(
    name: str, make: Callable[Concatenate[Tasks, P], SandboxTask[T]]
) -> Callable[Concatenate[Sandbox, P], Future[T]]:
    """Return the method that starts such a task in a sandbox."""

    def submit(self: Sandbox, /, *args: P.args, **keywords: P.kwargs) -> Future[T]:
        return self._later(self._made(make, *args, **keywords))

    _describe(submit, make, name, "Future[{}]")
    return submit


def _running(
    name: str, make: Callable[Concatenate[Tasks, P], SandboxTask[T]]
) -> Callable[Concatenate[Sandbox, P], T]:
    """Return the method that does such a task in a sandbox and waits for it."""

    def run(self: Sandbox, /, *args: P.args, **keywords: P.kwargs) -> T:
        return self._now(self._made(make, *args, **keywords))

    _describe(run, make, name, "{}")
    return run


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
        self._asked_level = check_level(level)
        self._tasks = Tasks(self.packages, lambda: self.level, lambda: self._here().reader)
        self._starters = self._start()

    def _start(self) -> _Starters:
        analyst = Analyst()
        pool = WorkerPool(self.workers, lambda: self.level, self._packages)
        return _Starters(os.getpid(), pool, analyst, AssertionReader(analyst))

    def _here(self) -> _Starters:
        """Return what starts and uses processes; a forked copy of this process does not own the original's."""
        if self._starters.owner != os.getpid():
            _of_other_processes.append(self._starters)
            self._starters = self._start()
        return self._starters

    @property
    def _pool(self) -> WorkerPool:
        return self._here().pool

    @property
    def level(self) -> str:
        """How strongly programs and tests are confined.

        Raises:
            LevelUnavailableError: The machine offers less than "kernel", and no level was asked for.
        """
        return self._asked_level if self._asked_level is not None else strongest_level()

    @property
    def runs(self) -> int:
        """How many runs of programs have ended so far."""
        return self._pool.runs

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages outside the standard library that programs and tests may import."""
        return tuple(self._packages)

    # Jobs. What is named `submit` starts one and returns at once; see `Tasks` for the arguments.

    call = _running("call", Tasks.calls)
    submit_encoded = _submitting("submit_encoded", Tasks.encoded)
    submit_cases = _submitting("submit_cases", Tasks.cases)
    run_script = _running("run_script", Tasks.script)
    run_test_module = _running("run_test_module", Tasks.module)

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
        return list(self._now(self._tasks.tests(Job(code, tests, entry_point, limits))).tests)

    def run_many(self, jobs: Sequence[Job]) -> list[list[TestResult]]:
        """Judge many jobs in parallel: the results of each, in order. The first failure of ours is raised."""
        tasks = [self._tasks.tests(job) for job in jobs]
        futures = [self._later(task) for task in tasks]
        try:
            return [list(future.result().tests) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def submit(self, job: Job) -> Future[JobResult]:
        """Start a job and return at once."""
        return self._later(self._tasks.tests(job))

    def _made(
        self, make: Callable[..., SandboxTask[T]], /, *args: Any, **keywords: Any
    ) -> SandboxTask[T]:
        named = {name: exact(value) for name, value in keywords.items()}
        return make(self._tasks, *map(exact, args), **named)

    def _now(self, task: SandboxTask[T]) -> T:
        self._pool.check_open()
        self._check_memory(task)
        return self._run(task)

    def _later(self, task: SandboxTask[T]) -> Future[T]:
        self._check_memory(task)
        return self._pool.submit(lambda: self._run(task))

    def _run(self, task: SandboxTask[T]) -> T:
        """Everything that runs in this sandbox goes through here."""
        limits = task.limits if task.limits is not None else self.limits
        try:
            return self._pool.run_by_work(task.attempt, limits)
        except InfraError as error:
            if not self._works(task.kind):
                raise
            failed = str(error)
        except SandboxError:
            raise
        except Exception as error:  # one program's doing, and no other job's
            return task.unjudged(fault(error))
        return task.unjudged(TestResult(Outcome.UNJUDGED, f"other jobs are judged, but {failed}"))

    def _works(self, kind: WorkerKind) -> bool:
        """Whether a known job succeeds on a fresh worker at this moment."""

        def task(slots: Slots) -> bool:
            if not kind.calls_only:
                return run_script(slots, "print(2)", b"", Limits()).stdout == "2\n"
            call = encoded_arguments([], {})
            found = answer_calls(slots, "def f(): return 2", Calls("f", [call], "f"), Limits())
            return [*found.replies] == [expected_frame(2)]

        try:
            return self._pool.run(task, kind, fresh=True)
        except InfraError:
            return False

    def _check_memory(self, task: SandboxTask[Any]) -> None:
        check_memory(task.limits if task.limits is not None else self.limits)

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
            atol: Absolute tolerance where a float is expected; 0 stands for 1e-6, that of EvalPlus.
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
        rule = Comparison(compare, atol or FLOAT_ATOL)
        options: dict[str, Any] = {"limits": limits, "hash_seed": hash_seed, "stop": stop}
        encoded = encoded_cases(cases)
        task = self._made(Tasks.cases, code, name, encoded, comparison=rule, **options)
        result = self._now(task)
        return list(result.tests) or [result.load] * (bool(cases) and not result.load.passed)

    def in_background(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread and return at once: for runs of which one depends on the last.

        It may call `run_tests`, `call` and `run_script`. `submit` and `run_many` could wait in it for ever.
        """
        return self._pool.submit(function)

    def analyse(self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Call one of this package's own functions on hostile text, in a helper process; see `Analyst.analyse`."""
        self._pool.check_open()
        found: T = self._here().analyst.analyse(function, *arguments)
        return found

    def close(self) -> None:
        """Cancel what has not begun, waits for what has, and end all processes."""
        starters = self._here()
        starters.pool.close()
        starters.analyst.close()

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
    """Return the sandbox that this process shares, with one worker per usable core; closed at exit."""
    global _default
    with _default_lock:
        if _default is None or _default[0] != os.getpid() or _default[1]._pool.closed:
            sandbox = Sandbox(workers=len(os.sched_getaffinity(0)))
            atexit.register(_close_in, os.getpid(), sandbox)
            _default = (os.getpid(), sandbox)
        return _default[1]


def _close_in(pid: int, sandbox: Sandbox) -> None:
    if os.getpid() == pid:
        sandbox.close()
