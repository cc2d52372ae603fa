"""The sandbox as its users see it: programs and tests in, results out."""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, as_completed
from typing import Any, Generic, NamedTuple, ParamSpec, Self, TypeVar

from .analysis import Analyst
from .calls import Answers, answer_calls, encoded_arguments, readable, run_calls
from .cases import Case, EncodedCases, encoded_cases, expected_frame, judge_cases
from .compare import Comparison, Rule
from .inside import codec
from .inside.run.running import loaded_numpy
from .jobs import Job, Limits, WorkerKind, check_limits, check_seed, check_text
from .judging import judge
from .levels import check_level, check_memory, strongest_level
from .packages import locate
from .planner import Planner
from .program_mode import run_script
from .results import (
    CallResult,
    InfraError,
    JobResult,
    LevelUnavailableError,
    Outcome,
    ScriptResult,
    TestResult,
)
from .workers import Attempt, Run, Slots, WorkerPool

MAX_INPUT = 16 << 20
"""Bytes of standard input."""

Arguments = Sequence[tuple[Sequence[Any], dict[str, Any]]]
"""Positional and keyword arguments of each call."""

P = ParamSpec("P")
T = TypeVar("T")


def _check_call(code: object, name: object, limits: object, hash_seed: object) -> None:
    check_text("code", code)
    check_text("name", name)
    check_limits("limits", limits)
    check_seed("hash_seed", hash_seed)


def _pattern(packages: Iterable[str]) -> re.Pattern[str]:
    """Find a mention of a package; without one, a program does not import it."""
    names = [*packages, *(["np"] if "numpy" in packages else [])]
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b" if names else r"(?!)")


class SandboxTask(NamedTuple, Generic[T]):
    """Something to be done in a sandbox: how it is done here, and what a sandbox elsewhere is asked for it."""

    attempt: Attempt[T]
    """Does it."""
    kind: WorkerKind
    limits: Limits | None
    """Overrides those of the sandbox."""
    method: str
    """Of `Sandbox`: starts it and returns its future."""
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    unjudged: Callable[[TestResult], T]
    """Makes of a reason what comes of it where it fails again and again, while other jobs do not."""


class _Starters(NamedTuple):
    """What starts the processes of a sandbox, and what uses them."""

    owner: int
    """The number of the process that made them."""
    pool: WorkerPool
    analyst: Analyst
    planner: Planner


_of_other_processes: list[_Starters] = []
"""Kept as they are: to end them is for the process that started them."""


class Sandbox:
    """Runs untrusted programs and untrusted tests, each away from the other and both away from us.

    No verdict is computed in a process that has run a program, and no test runs in the process that runs
    the program. Safe to use from several threads, and after a fork: the copy of the process gets processes of its
    own. They start with the first job.

    Args:
        workers: How many programs run at the same time.
        limits: What a job may use unless it says otherwise.
        level: "namespaces", "kernel", "process" or "none"; see docs/sandbox.md. None chooses the strongest
            that works, and at least "kernel".
        packages: Installed packages outside the standard library that programs and tests may import, by the names
            that they are imported by: one or several. What they need themselves is allowed, too.

    Raises:
        ValueError: `workers` is not a positive number, the level is unknown, or a package is not installed.
        LevelUnavailableError: The machine does not offer the level. Found out when the first job comes.

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
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"Expect workers to be a positive integer, actually: {workers!r}")
        self.workers = workers
        check_limits("limits", limits)
        self.limits = limits if limits is not None else Limits()
        names = (packages,) if isinstance(packages, str) else packages
        names = tuple(names) if isinstance(names, Iterable) else (names,)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"Expect packages to be names, actually: {packages!r:.100}")
        self._packages = self._locate(names)
        for name in names:
            if name not in self._packages and name != "numpy":
                raise ValueError(
                    "Expect packages to name installed packages as programs import them, actually "
                    f"{name!r} is not one. Install it, or leave it out."
                )
        self._asked_level = check_level(level)
        self._mentions = _pattern(self._packages)
        self._starters = self._start()

    _modules: Sequence[str] | None = None

    def _locate(self, names: Sequence[str]) -> dict[str, str]:
        """Where packages are, and those that they need."""
        return locate(names)

    def _start(self) -> _Starters:
        analyst = Analyst()
        pool = WorkerPool(self.workers, lambda: self.level, self._packages, self._modules)
        return _Starters(os.getpid(), pool, analyst, Planner(analyst))

    def _here(self) -> _Starters:
        """Return what starts and uses processes; made anew in a forked copy of this process, which does not own the original's."""
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
    def packages(self) -> tuple[str, ...]:
        """The packages outside the standard library that programs and tests may import."""
        return tuple(self._packages)

    # Jobs

    def run_tests(
        self,
        code: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        limits: Limits | None = None,
        capture_output: bool = False,
    ) -> list[TestResult]:
        """Judge tests on one program.

        Args:
            code: Program text.
            tests: Test texts, judged one by one: `assert f(1) == 2`, or any other program text.
            entry_point: See `Job.entry_point`.
            limits: See `Job.limits`.
            capture_output: See `Job.capture_output`.

        Returns:
            One result per test, in order.

        Raises:
            InfraError: The sandbox does not work. Where it fails at this job only, that is `Outcome.UNJUDGED`.
        """
        job = Job(code, tests, entry_point, limits, capture_output=capture_output)
        return list(self._now(self._job(job)).tests)

    async def run_tests_async(
        self,
        code: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        limits: Limits | None = None,
        capture_output: bool = False,
    ) -> list[TestResult]:
        """As `run_tests`, for asyncio: other tasks go on meanwhile.

        Example:
            >>> import asyncio
            >>> with Sandbox() as sandbox:
            ...     asyncio.run(sandbox.run_tests_async("def f(): return 1", ["assert f() == 1"]))[0].outcome
            <Outcome.PASS: 'pass'>
        """
        import asyncio  # most users of this module do without

        job = Job(code, tests, entry_point, limits, capture_output=capture_output)
        return list((await asyncio.wrap_future(self.submit(job))).tests)

    def run_many(
        self, jobs: Sequence[Job], *, progress: Callable[[int, int], None] | None = None
    ) -> list[list[TestResult]]:
        """Judge many jobs in parallel.

        Args:
            jobs: The jobs.
            progress: Called after each job, in this thread, with how many are done and how many there are.

        Returns:
            The results of each job, in the order of `jobs`.
        """
        return [list(result.tests) for result in self.run_jobs(jobs, progress=progress)]

    def run_jobs(
        self, jobs: Sequence[Job], *, progress: Callable[[int, int], None] | None = None
    ) -> list[JobResult]:
        """As `run_many`, with how loading the program ended. The first failure of ours is raised."""
        tasks = [self._job(job) for job in jobs]
        futures = [self._later(task) for task in tasks]
        try:
            if progress is not None:
                for done, _ in enumerate(as_completed(futures), start=1):
                    progress(done, len(futures))
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def submit(self, job: Job) -> Future[JobResult]:
        """Start a job and return at once."""
        return self._later(self._job(job))

    def _job(self, job: Job) -> SandboxTask[JobResult]:
        if not isinstance(job, Job):
            raise TypeError(f"Expect a Job, actually: {type(job)}. Write Job(code, tests).")
        mentions = any(map(self._mentions.search, (job.code, *job.tests)))
        kind = WorkerKind(job.hash_seed, mentions, scratch=job.scratch)
        return SandboxTask(
            self._judging(job), kind, job.limits, "submit", (job,), {},
            lambda why: JobResult(why, (why,) * len(job.tests)),
        )  # fmt: skip

    def _judging(self, job: Job) -> Attempt[JobResult]:
        return lambda run, limits: judge(run, self._here().planner, job, limits)

    def _now(self, task: SandboxTask[T]) -> T:
        self._pool.check_open()
        self._check_offered(task)
        return self._run(task)

    def _later(self, task: SandboxTask[T]) -> Future[T]:
        self._check_offered(task)
        return self._pool.submit(lambda: self._run(task))

    def _run(self, task: SandboxTask[T]) -> T:
        """Everything that runs in this sandbox goes through here."""
        limits = task.limits if task.limits is not None else self.limits
        try:
            return self._pool.run_by_work(task.kind, task.attempt, limits)
        except InfraError as error:
            if not self._works(task.kind):
                raise
            failed = str(error)
        return task.unjudged(TestResult(Outcome.UNJUDGED, f"other jobs are judged, but {failed}"))

    def _works(self, kind: WorkerKind) -> bool:
        """Whether a known job succeeds on a fresh worker at this moment."""

        def task(slots: Slots) -> bool:
            if not kind.calls_only:
                return run_script(slots, "print(2)", b"", Limits()).stdout == "2\n"
            call = encoded_arguments([], {})
            found = answer_calls(slots, "def f(): return 2", "f", [call], Limits())
            return [*found.replies] == [expected_frame(2)]

        try:
            return self._pool.run(task, kind, fresh=True)
        except InfraError:
            return False

    def _check_offered(self, task: SandboxTask[Any]) -> None:
        """Refuse what this process, or the level, has not to offer."""
        check_memory(task.limits if task.limits is not None else self.limits)
        if task.kind.scratch and self.level != "namespaces":
            raise LevelUnavailableError(
                'Expect level "namespaces" for scratch=True, since only there what programs write can be bounded; '
                f"actually: {self.level!r}. `codea1 sandbox doctor` says what the machine lacks."
            )

    def call(
        self,
        code: str,
        name: str,
        arguments: Arguments,
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> list[CallResult]:
        """Call a function of a program, with plain data.

        Args:
            code: Program text.
            name: The function.
            arguments: Positional and keyword arguments of each call. Arrays of numpy go in as arrays where the sandbox
                allows numpy, and come out as arrays where this process has imported it.
            limits: See `Job.limits`.
            hash_seed: See `Job.hash_seed`.

        Returns:
            One result per call, in order. All calls share one process while nothing goes wrong.

        Raises:
            TypeError: An argument is not plain data.
            InfraError: The sandbox does not work. Where it fails at this job only, that is `Outcome.UNJUDGED`.
        """
        return self._now(self._calls(code, name, arguments, limits, hash_seed))

    def submit_calls(
        self,
        code: str,
        name: str,
        arguments: Arguments,
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> Future[list[CallResult]]:
        """Start calls, as `call` does, and return at once."""
        return self._later(self._calls(code, name, arguments, limits, hash_seed))

    def _calls(
        self, code: str, name: str, arguments: Arguments, limits: Limits | None, hash_seed: int
    ) -> SandboxTask[list[CallResult]]:
        _check_call(code, name, limits, hash_seed)
        numpy = loaded_numpy(numbers=False)
        packages = bool(self._mentions.search(code))
        values = [(name, list(args), dict(kwargs)) for args, kwargs in arguments]
        if not all(isinstance(key, str) for _, _, kwargs in values for key in kwargs):
            raise TypeError("Expect keyword arguments to have names that are str, actually: others")
        try:
            try:
                calls = [codec.encode(call) for call in values]
            except codec.EncodeError:
                if numpy is None or not self._mentions.search("numpy"):
                    raise
                calls = [codec.encode(call, numpy=numpy) for call in values]
                packages = True
        except codec.EncodeError as error:
            raise TypeError(f"Expect the arguments to be plain data, actually: {error}") from None

        def attempt(run: Run, limits: Limits) -> list[CallResult]:
            meter = codec.Meter(codec.VALUES)
            returned = run(lambda slots: run_calls(slots, code, name, calls, limits))
            return [readable(reply, meter, numpy) for reply in returned.results]

        given = {"limits": limits, "hash_seed": hash_seed}
        kind = WorkerKind(hash_seed, packages)
        return SandboxTask(
            attempt, kind, limits, "submit_calls", (code, name, list(arguments)), given,
            lambda why: [CallResult(why.outcome, message=why.message)] * len(calls),
        )  # fmt: skip

    def submit_encoded(
        self,
        code: str,
        name: str,
        calls: Sequence[bytes],
        *,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> Future[Answers]:
        """Start calls of one function of a program, and return at once.

        Unlike `submit_calls` it neither encodes nor decodes: for many calls whose replies are compared as bytes.

        Args:
            code: Program text.
            name: The function, which the program must define.
            calls: The arguments of each call, as `encoded_arguments` makes them.
            limits: For each call; see `Job.limits`.
            hash_seed: See `Job.hash_seed`.
        """
        _check_call(code, name, limits, hash_seed)

        def attempt(run: Run, limits: Limits) -> Answers:
            return run(lambda slots: answer_calls(slots, code, name, calls, limits))

        given = {"limits": limits, "hash_seed": hash_seed}
        kind = WorkerKind(hash_seed, bool(self._mentions.search(code)), calls_only=True)
        asked = (code, name, list(calls))
        return self._later(
            SandboxTask(
                attempt, kind, limits, "submit_encoded", asked, given,
                lambda why: Answers(why, [why] * len(calls)),
            )
        )  # fmt: skip

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

        Returns:
            One result per case, in order; with `stop`, up to the first that is not passed.

        Raises:
            TypeError: A case is not plain data.
            InfraError: The sandbox does not work. Where it fails at this job only, that is `Outcome.UNJUDGED`.

        Example:
            >>> with Sandbox() as sandbox:
            ...     [result] = sandbox.run_cases("def half(n): return n / 2", "half", [Case((3,), {}, 1.5)])
            >>> result.outcome, result.judged
            (<Outcome.PASS: 'pass'>, 'outside')
        """
        encoded, comparison = encoded_cases(cases), Comparison(compare, atol)
        task = self._cases(code, name, encoded, comparison, limits, hash_seed, stop)
        result = self._now(task)
        return list(result.tests) or [result.load] * (bool(cases) and not result.load.passed)

    def submit_cases(
        self,
        code: str,
        name: str,
        cases: EncodedCases,
        *,
        comparison: Comparison = Comparison(),  # noqa: B008  frozen
        limits: Limits | None = None,
        hash_seed: int = 0,
        stop: bool = False,
    ) -> Future[JobResult]:
        """Start cases that were encoded once for many programs, and return at once. See `run_cases`."""
        return self._later(self._cases(code, name, cases, comparison, limits, hash_seed, stop))

    def _cases(
        self,
        code: str,
        name: str,
        cases: EncodedCases,
        comparison: Comparison,
        limits: Limits | None,
        hash_seed: int,
        stop: bool,
    ) -> SandboxTask[JobResult]:
        _check_call(code, name, limits, hash_seed)

        def attempt(run: Run, limits: Limits) -> JobResult:
            return run(
                lambda slots: judge_cases(slots, code, name, cases, comparison, limits, stop=stop)
            )

        given = {
            "comparison": comparison, "limits": limits, "hash_seed": hash_seed, "stop": stop,
        }  # fmt: skip
        kind = WorkerKind(hash_seed, bool(self._mentions.search(code)), calls_only=True)
        return SandboxTask(
            attempt, kind, limits, "submit_cases", (code, name, cases), given,
            lambda why: JobResult(why, () if stop else (why,) * len(cases.calls)),
        )  # fmt: skip

    def run_script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> ScriptResult:
        r"""Run a program that reads standard input and print, as in APPS and LiveCodeBench.

        Args:
            code: Program text; it runs as `__main__`.
            stdin: What it reads.
            limits: See `Job.limits`. The limits of one call are for the whole program.
            scratch: See `Job.scratch`.

        Raises:
            LevelUnavailableError: `scratch` is asked for at another level than "namespaces".
            TypeError: The program or its input is not a str.
            ValueError: The input is larger than 16 MiB.
            InfraError: The sandbox does not work. Where it fails at this job only, that is `Outcome.UNJUDGED`.

        Example:
            >>> with Sandbox() as sandbox:
            ...     sandbox.run_script("print(int(input()) + 1)", "41").stdout
            '42\n'
        """
        return self._now(self._script(code, stdin, limits, scratch))

    def submit_script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> Future[ScriptResult]:
        """Start a program, as `run_script` does, and return at once."""
        return self._later(self._script(code, stdin, limits, scratch))

    def _script(
        self, code: str, stdin: str, limits: Limits | None, scratch: bool
    ) -> SandboxTask[ScriptResult]:
        for name, text in (("code", code), ("stdin", stdin)):
            if not isinstance(text, str):
                raise TypeError(
                    f'Expect {name} to be a str, actually: {type(text)}. Decode bytes; "" is no input.'
                )
        data = stdin.encode("utf-8", "surrogatepass")
        if len(data) > MAX_INPUT:
            raise ValueError(
                f"Expect standard input of at most {MAX_INPUT} bytes, actually: {len(data)}"
            )

        def attempt(run: Run, limits: Limits) -> ScriptResult:
            return run(lambda slots: run_script(slots, code, data, limits))

        kind = WorkerKind(0, bool(self._mentions.search(code)), scratch=scratch)
        given = {"limits": limits, "scratch": scratch}
        return SandboxTask(
            attempt, kind, limits, "submit_script", (code, stdin), given,
            lambda why: ScriptResult(why.outcome, message=why.message),
        )  # fmt: skip

    def in_background(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in a thread, for several runs of which one depends on the last, and return at once.

        Args:
            function: It may call `run_tests`, `call` and `run_script`. What starts further jobs (`submit`,
                `run_many`) could wait for a thread that never gets free.
        """
        return self._pool.submit(function)

    def analyse(self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Call one of this package's own functions on hostile text, in a helper process.

        See `Analyst.analyse`. There are no keywords.
        """
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

    def __reduce__(self) -> Any:
        raise TypeError(
            "Expect a sandbox to stay in its process, actually: it was copied or pickled; "
            "make one where it is needed, or use default_sandbox()"
        )


_default: tuple[int, Sandbox] | None = None
_default_lock = threading.Lock()


def default_sandbox() -> Sandbox:
    """Return the sandbox that everything in this process shares, with one worker per usable core.

    It is made at the first call and closed when the interpreter exits. A forked process gets its own.
    """
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
