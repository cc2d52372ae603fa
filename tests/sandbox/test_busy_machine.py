"""Verdicts where the processors are busy: waiting for one is no time of a program."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from processes import descendants, workers

from codea1_env.sandbox import (
    Case,
    InfraError,
    Limit,
    Limits,
    Outcome,
    Sandbox,
    clocks,
    encoded_arguments,
    outcomes,
    supervise,
    watch,
    worker,
)

TESTS = [
    "assert f(2_000_000) == 1_999_999_000_000",
    "for n in [2_000_000]:\n    assert f(n) == 1_999_999_000_000",
]
SLOW = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total"
SAME = "def f(x): return x"
SLEEPS = "import time\ndef f(x):\n    time.sleep(60)"


@contextlib.contextmanager
def starved_sandbox(limits: Limits, niceness: int = 0) -> Iterator[Sandbox]:
    """A sandbox whose worker shares one processor with processes which do nothing but keep it busy."""
    others, processor = descendants(os.getpid()), {max(os.sched_getaffinity(0))}
    with Sandbox(workers=1, limits=limits) as sandbox, contextlib.ExitStack() as stack:
        assert sandbox.run_tests(SAME, ["assert f(1) == 1"])[0].passed
        for pid in descendants(os.getpid()) - others:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.sched_setaffinity(pid, processor)  # those of other tests may use them all
                os.setpriority(os.PRIO_PROCESS, pid, niceness)
                with contextlib.suppress(OSError):  # not with every kernel
                    Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
        for _ in range(4):
            # In sessions of their own: where the kernel shares the processors out among sessions, each gets a share.
            command = [sys.executable, "-S", "-c", "while True: pass"]
            busy = subprocess.Popen(command, start_new_session=True)
            stack.callback(busy.wait)
            stack.callback(busy.kill)
            os.sched_setaffinity(busy.pid, processor)
        yield sandbox


def test_waiting_for_a_processor_is_not_counted_but_sleeping_is():
    with starved_sandbox(Limits(call_cpu_time=5.0, call_wall_time=0.25)) as sandbox:
        assert [result.outcome for result in sandbox.run_tests(SLOW, TESTS)] == [Outcome.PASS] * 2
        assert sandbox.run_tests(SLEEPS, TESTS[:1])[0].outcome is Outcome.TIMEOUT


@pytest.fixture
def starved() -> Iterator[Sandbox]:
    """Its children wait much longer for a processor than a call may take, and then at once for all of it."""
    with starved_sandbox(Limits(call_cpu_time=1.0, call_wall_time=0.25), niceness=19) as sandbox:
        yield sandbox


def test_a_child_that_has_not_yet_had_a_processor_is_waited_for(starved):
    """Until its first wait is over, the kernel does not tell that it waits."""
    begin = time.monotonic()
    for mode in ("assert f(1) == 1", "for n in [1]:\n    assert f(n) == 1"):
        results = [starved.run_tests(SAME, [mode])[0] for _ in range(2)]
        assert [result.outcome for result in results] == [Outcome.PASS] * 2, results
    late = time.monotonic() - begin >= 4 * 0.25
    ended = starved.run_tests("import os\ndef f(x): os._exit(3)", ["assert f(1) == 1"])[0]
    assert ended.outcome is Outcome.EXITED, ended  # however long it takes to end
    if not late:
        pytest.skip("this machine gives them a processor within the limit")
    assert starved.run_tests(SLEEPS, ["assert f(1) == 1"])[0].limit is Limit.WALL_TIME


class Told:
    """What the kernel tells of a process with two threads, of which one sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = "S"
        self.waited = 0.0
        monkeypatch.setattr(clocks, "_threads_of", lambda pid: iter(["first", "second"]))
        monkeypatch.setattr(
            clocks, "_stat_of", lambda thread: [self.state if thread == "second" else "S"]
        )
        monkeypatch.setattr(
            clocks, "_queue_time_of", lambda thread: self.waited if thread == "second" else 0.01
        )


@pytest.mark.parametrize(("state", "over"), [("S", True), ("D", True), ("T", True), ("R", False)])
def test_only_a_thread_that_could_run_puts_a_wall_limit_off(monkeypatch, state, over):
    told = Told(monkeypatch)
    limit = clocks.WallLimit(1, 0.0)
    told.state = state
    assert limit.is_over() is over


def test_a_wait_for_a_processor_does_not_count_when_the_kernel_tells_of_it(monkeypatch):
    """Also of one that has had a processor for a moment, and waits again, of which nothing is told yet."""
    told = Told(monkeypatch)
    limit = clocks.WallLimit(1, 0.1, 0.0)
    time.sleep(0.15)
    told.state = "R"
    assert not limit.is_over()
    told.waited = 0.1
    time.sleep(limit.left())
    assert not limit.is_over()
    time.sleep(limit.left())  # the time has passed that it waited, and it waits again
    assert not limit.is_over()
    told.waited, told.state = 0.2, "S"
    time.sleep(limit.left())
    assert not limit.is_over()
    told.waited = 0.05  # the thread that waited most has ended
    time.sleep(0.1)
    assert limit.is_over()


def test_a_program_that_has_not_begun_is_not_late(monkeypatch):
    """Whatever keeps a child from beginning, it is not the program."""
    monkeypatch.setattr(watch, "_START_TIMEOUT", 0.5)
    monkeypatch.setattr(Sandbox, "_works", lambda self, kind: False)  # nor has another one begun
    monkeypatch.setattr(supervise.Supervised, "send", lambda self, *job: None)
    with (
        Sandbox(limits=Limits(call_wall_time=0.1)) as sandbox,
        pytest.raises(InfraError, match="did not begin"),
    ):
        sandbox.run_tests(SAME, ["assert f(1) == 1"])


def test_where_the_machine_is_too_busy_to_tell_nothing_is_told(starved, monkeypatch):
    """It counts as our failure, which is tried again by a fresh worker; that one is not starved here."""
    monkeypatch.setattr(clocks, "_LEAST_PATIENCE", 0.1)
    monkeypatch.setattr(clocks, "_MOST_PATIENCE", 0.0)
    before = workers()
    for _ in range(3):  # the first children were there before
        assert starved.run_tests(SAME, ["assert f(1) == 1"])[0].passed
    if before <= workers():
        pytest.skip("this machine gives them a processor within the limit")


LOOP = "def f(x):\n    while True: pass"


@pytest.mark.parametrize(
    "run",
    [
        lambda sandbox: sandbox.run_tests(LOOP, ["assert f(1) == 1"])[0],
        lambda sandbox: sandbox.run_tests(LOOP, ["for n in [1]:\n    assert f(n) == 1"])[0],
        lambda sandbox: sandbox.run_script("while True: pass"),
        lambda sandbox: sandbox.run_calls(LOOP, "f", [encoded_arguments([1], {})]).replies[0],
    ],
    ids=["value", "test program", "script", "calls"],
)
def test_a_kernel_that_counts_more_time_than_was_used_has_ended_a_program_in_a_simulation(
    run, monkeypatch
):
    """It counts by ticks. Who was killed at its limit has not been killed from outside."""
    for module in (outcomes, supervise):
        monkeypatch.setattr(module, "cpu_backstop", lambda limits: 1)
    ended = worker.Worker.ended

    def less(self, answer):
        found = ended(self, answer)
        return replace(found, cpu_time=found.cpu_time / 100)

    monkeypatch.setattr(worker.Worker, "ended", less)
    with Sandbox(workers=1, limits=Limits(call_cpu_time=100.0, run_cpu_time=100.0)) as sandbox:
        begin = time.monotonic()
        result = run(sandbox)
        assert (result.outcome, result.limit) == (Outcome.TIMEOUT, Limit.CPU_TIME)
        assert time.monotonic() - begin < 50


@pytest.mark.parametrize("hold", [False, True], ids=["at once", "at every look"])
def test_a_supervisor_that_comes_late_takes_no_time_from_calls(hold, monkeypatch):
    """What several calls have used since its last look is no time of one, and what waited for it is not idle."""
    limits = Limits(call_cpu_time=0.2, call_wall_time=0.3, run_wall_time=0.6, run_cpu_time=60.0)
    code = (
        "import time\ndef f(x):\n    end = time.process_time() + 0.01\n"
        "    while time.process_time() < end: pass\n    return bytes(2000)"
    )
    frame, late = watch.Watch.frame, []

    def held_up(self, cpu, wall):
        if hold or not late:
            late.append(wall)
            time.sleep(0.7)
        return frame(self, cpu, wall)

    monkeypatch.setattr(watch.Watch, "frame", held_up)
    with Sandbox(workers=1, limits=limits) as sandbox:
        found = sandbox.run_cases(code, "f", [Case((x,), {}, bytes(2000)) for x in range(60)])
    assert {result.outcome for result in found} == {Outcome.PASS}
    assert late
    one = "def f(x):\n    while x == 1: pass\n    return x"
    with Sandbox(workers=1, limits=replace(limits, run_wall_time=60.0)) as sandbox:
        found = sandbox.run_cases(one, "f", [Case((x,), {}, x) for x in range(3)])
    assert [result.outcome for result in found] == [Outcome.PASS, Outcome.TIMEOUT, Outcome.PASS]
