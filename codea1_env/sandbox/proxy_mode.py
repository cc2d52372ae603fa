"""Any other test: it runs in its own process and reaches the program's process through proxies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .inside import codec
from .inside.remote import CANDIDATE_GONE
from .results import Limits, Outcome, TestResult
from .supervise import Stop, Supervised, Watch, cpu_backstop, outcome_of, reply_of
from .value_mode import job_frame
from .worker import Worker

_VERDICTS = {
    outcome.value: outcome
    for outcome in (
        Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.EXITED, Outcome.MEMORY,
        Outcome.SYNTAX_ERROR, Outcome.UNENCODABLE,
    )
}  # fmt: skip


def run_test(
    worker: Worker,
    code: str,
    entry_point: str | None,
    test: str,
    names: Sequence[str],
    limits: Limits,
) -> tuple[TestResult, TestResult]:
    """Judges one test with a process for the program and a process for the test.

    Args:
        worker: Forks both processes.
        code: Program text.
        entry_point: The only name that the test may use from the program; None for any.
        test: Test text.
        names: The names that the test uses and that may come from the program.
        limits: The call limits are for loading, and again for the test.

    Returns:
        How loading ended, and the verdict.
    """
    to_program, from_program = os.pipe(), os.pipe()
    children: list[Supervised] = []
    try:
        program_ends = (to_program[0], from_program[1])
        test_ends = (to_program[1], from_program[0])
        for role, ends in ((b"c", program_ends), (b"t", test_ends)):
            children.append(Supervised(worker, role, limits, ends))
    except BaseException:
        for child in children:
            child.end()
        raise
    finally:
        for descriptor in (*to_program, *from_program):
            os.close(descriptor)
    program, tester = children
    return _Pair(program, tester, limits).run(code, entry_point, test, names)


class _Pair:
    """A program's process and a test's process."""

    def __init__(self, program: Supervised, test: Supervised, limits: Limits) -> None:
        self.program = program
        self.test = test
        self.limits = limits
        self.watch = Watch(program, test)

    def run(
        self, code: str, entry_point: str | None, test: str, names: Sequence[str]
    ) -> tuple[TestResult, TestResult]:
        verdict: bytes | Stop | None = None
        try:
            offered = [entry_point] if entry_point is not None else list(names)
            self.program.send(job_frame(code, entry_point, self.limits, offered))
            loaded = self._frame(self.program)
            if isinstance(loaded, bytes):
                load, exports = _exports(loaded)
                if load.outcome is Outcome.PASS:
                    self.watch.lap()
                    self.test.send(self._test_job(test, names, exports))
                    verdict = self._frame(self.test)
            alive = not self.program.ended_by_itself()
            called = b"called" in self.program.frames
        finally:
            ended_test = self.test.end()
            ended_program = self.program.end()
        cpu = ended_test.cpu_time + ended_program.cpu_time
        if isinstance(loaded, Stop):
            load = outcome_of(self.program.stop or loaded, ended_program, self.limits)
        if load.outcome is not Outcome.PASS:
            return load, replace(load, cpu_time=cpu)
        gone = ended_test.exit_code == CANDIDATE_GONE
        if isinstance(verdict, bytes) and alive:
            result = _verdict(verdict)
        elif isinstance(verdict, Stop) and verdict is not Stop.CLOSED:
            result = outcome_of(verdict, ended_test, self.limits)
        elif gone or not alive:
            result = outcome_of(self.program.stop or Stop.CLOSED, ended_program, self.limits)
        else:
            result = outcome_of(self.test.stop or Stop.CLOSED, ended_test, self.limits)
            result = replace(result, message=f"in the test: {result.message}")
        return load, replace(result, cpu_time=cpu, called=called)

    def _frame(self, child: Supervised) -> bytes | Stop:
        limits = self.limits
        return self.watch.frame(child, limits.call_cpu_time, limits.call_wall_time)

    def _test_job(self, test: str, names: Sequence[str], exports: list[Any]) -> bytes:
        return codec.encode(
            {
                "test": test,
                "names": list(names),
                "exports": exports,
                "memory": int(self.limits.memory),
                "cpu_seconds": cpu_backstop(self.limits),
                "result": int(self.limits.result),
            }
        )


def _exports(frame: bytes) -> tuple[TestResult, list[Any]]:
    outcome, content = reply_of(frame)
    if outcome is not Outcome.PASS:
        return TestResult(outcome, content), []
    exports = content[0] if len(content) == 1 else None
    if type(exports) is list and all(
        type(item) is tuple and tuple(map(type, item)) == (str, str, bytes) for item in exports
    ):
        return TestResult(Outcome.PASS), exports
    return TestResult(Outcome.FORBIDDEN, "a load reply with a strange shape"), []


def _verdict(frame: bytes) -> TestResult:
    try:
        kind, message = codec.decode(frame)
        return TestResult(_VERDICTS[kind], str(message)[:500])
    except (codec.DecodeError, ValueError, TypeError, KeyError):
        return TestResult(Outcome.FORBIDDEN, "in the test: a malformed verdict")
