"""A sandbox for code of one's own: it runs, with its tests, in one process, where modules lie in their packages.

Nobody forges a verdict on code of one's own, so that a test need not be kept away from the program that it tests: it
may hold its objects, and import its package. What is protected is the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .calls import readable, run_calls
from .inside import codec
from .inside.run import one_process
from .jobs import Job, Limits
from .pool import Sandbox
from .results import CallResult, JobResult, Outcome, TestResult, cause_of
from .workers import Attempt, Run

_JUDGE = "_codea1_judge"
_APPENDED = """

_codea1_judging = {{"__name__": "codea1_judging"}}
__import__("builtins").exec({text!r}, _codea1_judging)


def {judge}(test, name):
    return _codea1_judging["judge"](test, name, globals())
""".format(text=Path(one_process.__file__).read_text(encoding="utf-8"), judge=_JUDGE)
_VERDICTS = {each.value: each for each in (Outcome.PASS, Outcome.FAIL, Outcome.ERROR)}


class OwnCodeSandbox(Sandbox):
    r"""Runs a program and its tests in one process, with the same confinement as any other sandbox.

    Verdicts are only worth something on code that does not forge them. A test sees all names of the program, or its
    entry point, as they are: its classes, exceptions and generators. Tests of one job share a process, as long as none
    of them ends it.

    Args:
        workers: See `Sandbox`.
        limits: See `Sandbox`.
        level: See `Sandbox`.
        folders: Packages and modules outside the standard library, with the folder that holds each. They may be
            read and imported, and nothing else of the machine.
        modules: What is imported once, and not by each program anew. It must be known to end, and to start no thread.
            Has no influence on results, and none at a weaker level than "namespaces".

    Example:
        >>> with OwnCodeSandbox() as sandbox:
        ...     [result] = sandbox.run_tests("class A:\n    x = 1", ["import copy; assert copy.copy(A()).x == 2"])
        >>> result.outcome.value
        'fail'
    """

    def __init__(
        self,
        workers: int = 1,
        limits: Limits | None = None,
        *,
        level: str | None = None,
        folders: Mapping[str, str] | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        self._folders = dict(folders or {})
        self._modules = tuple(modules)
        super().__init__(workers, limits, level=level, packages=tuple(self._folders))

    def _locate(self, names: Sequence[str]) -> dict[str, str]:
        return self._folders

    def _judging(self, job: Job) -> Attempt[JobResult]:
        def attempt(run: Run, limits: Limits) -> JobResult:
            calls = [codec.encode((_JUDGE, [test, job.entry_point], {})) for test in job.tests]
            if job.final_call is not None:
                calls.append(codec.encode((job.final_call, [], {})))
            code = job.code + _APPENDED
            limits = replace(
                limits, call_cpu_time=limits.test_cpu_time, call_wall_time=limits.test_wall_time
            )
            returned = run(lambda slots: run_calls(slots, code, job.entry_point, calls, limits))
            meter = codec.Meter(codec.VALUES)
            results = [readable(each, meter) for each in returned.results]
            tests = tuple(map(_verdict, results[: len(job.tests)]))
            return JobResult(returned.load, tests, tuple(results[len(tests) :]))

        return attempt


def _verdict(result: CallResult) -> TestResult:
    """Return what a test came to; a process that has not answered says how it ended."""
    if result.outcome is not Outcome.PASS:
        return TestResult(result.outcome, cpu_time=result.cpu_time, **cause_of(result))
    kind, message, error = result.value
    return TestResult(_VERDICTS[kind], message, result.cpu_time, error=error or None)
