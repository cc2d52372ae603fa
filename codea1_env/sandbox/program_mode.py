"""Any other test: it runs in its own process and reaches the program's process through handles."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .endings import NEVER_CALLED, Outcome, identifier, one_line
from .inside import codec
from .limits import Limits
from .outcomes import Stop, cpu_backstop, outcome_of, reply_of
from .results import CallResult, TestResult, cause_of
from .slots import Slots
from .supervise import Supervised, end_all
from .value_mode import Reply, job_frame, readable
from .watch import Watch
from .worker import Ended, WorkerDiedError, share_processor

_VERDICTS = {
    outcome.value: outcome
    for outcome in (
        Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.EXITED, Outcome.MEMORY,
        Outcome.SYNTAX_ERROR, Outcome.UNENCODABLE,
    )
}  # fmt: skip

_SHAPES = ((str, str, int, str, str, str), (str, str, type(None), str, str, str))
_MAX_TRACEBACK = 4000
_MOST_LINES = 1 << 30


def run_test(
    slots: Slots,
    code: str,
    entry_point: str | None,
    test: str,
    names: Sequence[str],
    modules: Sequence[str],
    limits: Limits,
    compiled: bytes = b"",
    final_call: bytes | None = None,
    capture: bool = False,
) -> tuple[TestResult, TestResult, CallResult | None]:
    """Judge one test with a process for the program and a process for the test.

    Args:
        slots: Where both processes come from.
        code: Program text.
        entry_point: The only name that the test may use from the program; None for any.
        test: Test text.
        names: The names that the test uses and that may come from the program.
        modules: The common modules that it uses without importing them.
        limits: The call limits are for loading, and again for the test.
        compiled: What the test compiles to, where its plan knows it.
        final_call: An encoded call of the program, made when the test's process has ended.
        capture: Whether to keep what both print.

    Returns:
        How loading ended, the verdict, and what came of the final call.
    """
    program, tester = slots.take(with_test=True).with_test()
    pair = _Pair(program, tester, limits, final_call, capture)
    return pair.run(code, entry_point, test, names, modules, compiled)


class _Pair:
    """A program's process and a test's process."""

    def __init__(
        self,
        program: Supervised,
        test: Supervised,
        limits: Limits,
        final_call: bytes | None,
        capture: bool,
    ) -> None:
        self.program = program
        self.test = test
        self.limits = limits
        self._final_call = final_call
        self._capture = capture
        self._running = [test, program]
        self._ended_test: Ended | None = None

    def run(
        self,
        code: str,
        entry_point: str | None,
        test: str,
        names: Sequence[str],
        modules: Sequence[str],
        compiled: bytes,
    ) -> tuple[TestResult, TestResult, CallResult | None]:
        verdict: bytes | Stop | None = None
        final: bytes | Stop | None = None
        offered = [name for name in names if entry_point in (None, name)]
        if self._capture:
            self.program.keep_output()
            self.test.keep_output()
        try:
            self.program.start(
                self.limits,
                job_frame(
                    code, entry_point, self.limits, offered, serving=True, capture=self._capture
                ),
                may_send=2 if self._final_call is None else 3,
            )
            self.test.start(self.limits, may_send=1)
            share_processor(self.program.pid, self.test.pid)
            self.watch = Watch(self.program, self.test)
            loaded = self._frame(self.program)
            if isinstance(loaded, bytes):
                load, exports = _exports(loaded, offered)
                if load.outcome is Outcome.PASS:
                    self.watch.lap()
                    self.test.send(self._test_job(test, modules, exports, compiled))
                    verdict = self._frame(self.test)
            if self.program.stop is None and isinstance(loaded, bytes):
                self.program.read()  # that it was called stands in its pipe: it said so before it answered
            if self.program.ended_by_itself():  # whatever the test says: a crash is never a pass
                self.program.stop = self.program.stop or Stop.CLOSED
            called = bool(self.program.frames)
            if isinstance(loaded, bytes) and [*self.program.frames] not in ([], [b"called"]):
                self.program.stop = Stop.FLOOD
            stop = self.program.stop
            if self._final_call is not None and stop is None and isinstance(verdict, bytes):
                final = self._call_program(self._final_call)
        except BaseException:
            for child in self._running:
                with contextlib.suppress(WorkerDiedError):
                    child.dismiss()
            raise
        lost = verdict is Stop.CLOSED and stop is None and self._test_lost_program()
        if lost:  # its end was noticed there first
            self.program.stop = stop = Stop.CLOSED
        *first, ended_program = end_all(*self._running)
        ended_test = self._ended_test or first[0]
        cpu = self.test.used(ended_test) + self.program.used(ended_program)
        if isinstance(loaded, Stop):
            load = outcome_of(stop or loaded, ended_program, self.limits)
        if load.outcome is not Outcome.PASS:
            return load, replace(load, cpu_time=cpu, **self._printed()), None
        if verdict in (Stop.CPU, Stop.WALL):
            result = outcome_of(verdict, ended_program, self.limits)
        elif stop is not None:
            result = outcome_of(stop, ended_program, self.limits)
        elif isinstance(verdict, bytes):
            result = _verdict(verdict)
        else:
            result = outcome_of(self.test.stop or Stop.CLOSED, ended_test, self.limits)
            result = replace(result, message=f"in the test: {result.message}")
        # A program cannot claim that a test has called it, and a test cannot claim to have called the program.
        called = called and result.called
        if result.outcome is Outcome.PASS and not called:
            result = TestResult(Outcome.ERROR, NEVER_CALLED, vacuous=True)
        result = replace(
            result, cpu_time=cpu, called=called, peak_memory=ended_program.memory, **self._printed()
        )
        if self._final_call is None:
            return load, result, None
        if isinstance(final, bytes):
            return load, result, readable(Reply(final, 0.0), codec.Meter(codec.VALUES))
        why = result if final is None else outcome_of(final, ended_program, self.limits)
        return load, result, CallResult(why.outcome, **cause_of(why))

    def _printed(self) -> dict[str, Any]:
        program, test = self.program.printed(), self.test.printed()
        return {"stdout": program[0] + test[0], "stderr": program[1] + test[1]}

    def _call_program(self, call: bytes) -> bytes | Stop:
        """Call the program when the verdict is there. The test's process is ended first: it has no say."""
        self._running.remove(self.test)
        self._ended_test = self.test.end()
        self.program.frames.clear()
        watch = Watch(self.program)
        watch.lap()
        self.program.send(call)
        while True:
            frame = watch.frame(self.program, self.limits.call_cpu_time, self.limits.call_wall_time)
            if frame != b"called":  # of a request that the test did not wait for
                return frame

    def _test_lost_program(self) -> bool:
        """Whether the test's process has ended because the program's process had."""
        return self.test.ended_by_itself(1.0) and self.program.ended_by_itself(0.2)

    def _frame(self, child: Supervised) -> bytes | Stop:
        limits = self.limits
        return self.watch.frame(child, limits.call_cpu_time, limits.call_wall_time)

    def _test_job(
        self, test: str, modules: Sequence[str], exports: list[Any], compiled: bytes
    ) -> bytes:
        return codec.encode(
            {
                "test": "" if compiled else test,
                "compiled": compiled,
                "modules": list(modules),
                "exports": exports,
                "memory": int(self.limits.memory),
                "cpu_seconds": cpu_backstop(self.limits),
                "result": int(self.limits.result),
                "capture": self._capture,
            }
        )


def _exports(frame: bytes, offered: Sequence[str]) -> tuple[TestResult, list[Any]]:
    said = reply_of(frame, codec.VALUES)
    if isinstance(said, TestResult):
        return said, []
    exports = said[0] if len(said) == 1 else None
    if type(exports) is list and all(
        type(item) is tuple and tuple(map(type, item)) == (str, bytes) for item in exports
    ):
        names = [item[0] for item in exports]
        # Another name, such as that of a builtin, could replace what the test judges with.
        if set(names) <= set(offered) and len(set(names)) == len(names):
            return TestResult(Outcome.PASS), exports
    return TestResult(Outcome.FORBIDDEN, "a load reply with a strange shape"), []


def _verdict(frame: bytes) -> TestResult:
    try:
        verdict = codec.decode(frame, meter=codec.Meter(codec.CHEAP))
    except codec.DecodeError:
        verdict = None
    if type(verdict) is tuple and tuple(map(type, verdict)) in _SHAPES:
        kind, message, line, trace, error, module = verdict
        if kind == "uncalled":
            return TestResult(Outcome.ERROR, NEVER_CALLED, called=False, vacuous=True)
        if kind in _VERDICTS:
            in_text = line is not None and 1 <= line <= _MOST_LINES
            shown = "\n".join(map(one_line, trace[:_MAX_TRACEBACK].split("\n")))
            return TestResult(
                _VERDICTS[kind],
                message,
                line=line if in_text else None,
                traceback=shown,
                error=identifier(error),
                missing_module=identifier(module),
            )
    return TestResult(Outcome.FORBIDDEN, "in the test: a malformed verdict")
