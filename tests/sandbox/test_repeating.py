"""A machine that is slow makes no verdict: what ran out of CPU time meanwhile is run again, alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from codea1_env.sandbox import (
    Job,
    Limits,
    Outcome,
    Sandbox,
    SandboxError,
    clocks,
    encoded_arguments,
    workers,
)
from codea1_env.sandbox.jobs import WorkerKind

PASS, TIMEOUT = Outcome.PASS, Outcome.TIMEOUT
LIMITS = Limits(
    call_cpu_time=0.1, call_wall_time=20.0, run_cpu_time=3.0, run_wall_time=60.0, calls_per_test=1
)
PROGRAM = """
import sys, time

def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

def f(seconds):
    spin(seconds)
    return seconds
"""
NEEDS, ENDLESS, LITTLE = 0.15, 1e9, 0.01  # seconds; the limit is 0.1


def by_call(sandbox: Sandbox, seconds: float) -> Outcome:
    return sandbox.call(PROGRAM, "f", [((seconds,), {})])[0].outcome


def by_encoded_call(sandbox: Sandbox, seconds: float) -> Outcome:
    answers = sandbox.run_calls(PROGRAM, "f", [encoded_arguments([seconds], {})])
    [reply] = answers.replies
    return PASS if isinstance(reply, bytes) else reply.outcome


def by_value(sandbox: Sandbox, seconds: float) -> Outcome:
    return sandbox.run_tests(PROGRAM, [f"assert f({seconds}) == {seconds}"])[0].outcome


def by_test_program(sandbox: Sandbox, seconds: float) -> Outcome:
    test = f"for x in [{seconds}]:\n    assert f(x) == x"
    return sandbox.run_many([Job(PROGRAM, [test])])[0][0].outcome


def by_script(sandbox: Sandbox, seconds: float) -> Outcome:
    return sandbox.run_script(PROGRAM + f"f({seconds})").outcome


Way = Callable[[Sandbox, float], Outcome]
WAYS: list[Way] = [by_call, by_encoded_call, by_value, by_test_program, by_script]


class Runs:
    """Counts what runs, and how much of it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.alone: list[bool] = []
        """For each run, in the order of their ends, whether it was to be alone."""
        self.company: list[int] = []
        """For those that were, how many ran beside it at its start or its end."""

    def begin(self) -> int:
        with self._lock:
            self._now += 1
            return self._now - 1

    def end(self, alone: bool, beside: int) -> None:
        with self._lock:
            self._now -= 1
            self.alone.append(alone)
            if alone:
                self.company.append(max(beside, self._now))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    plain = workers.WorkerPool.run

    def run(self: workers.WorkerPool, task: Callable[[workers.Slots], object], kind: WorkerKind, *,
            alone: bool = False) -> object:  # fmt: skip
        def counted(slots: workers.Slots) -> object:
            beside = runs.begin()
            try:
                return task(slots)
            finally:
                runs.end(alone, beside)

        return plain(self, counted, kind, alone=alone)

    monkeypatch.setattr(workers.WorkerPool, "run", run)
    return runs


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=2, limits=LIMITS) as sandbox:
        yield sandbox


def the_machine_is(monkeypatch: pytest.MonkeyPatch, slowness: float) -> None:
    monkeypatch.setattr(clocks, "slowness", lambda: slowness)


@pytest.mark.parametrize(
    ("way", "slowness", "seconds", "outcome", "alone"),
    [
        *((way, 3.0, NEEDS, PASS, [False, True]) for way in WAYS),  # it gets the time that it needs
        (by_value, 2.0, ENDLESS, TIMEOUT, [False, True]),  # twice and no more
        (by_test_program, 2.0, ENDLESS, TIMEOUT, [False, True]),
        (by_value, clocks.ENOUGH, ENDLESS, TIMEOUT, [False]),  # near its best pace
        (by_value, 3.0, LITTLE, PASS, [False]),  # within its time: not repeated
    ],
)
def test_what_is_run_again_on_a_slow_machine(
    sandbox: Sandbox,
    way: Way,
    slowness: float,
    seconds: float,
    outcome: Outcome,
    alone: list[bool],
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    the_machine_is(monkeypatch, slowness)
    assert way(sandbox, seconds) is outcome
    assert runs.alone == alone


def test_what_sleeps_is_not_repeated(
    sandbox: Sandbox, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_machine_is(monkeypatch, 3.0)
    limits = Limits(call_cpu_time=5.0, call_wall_time=0.2, calls_per_test=1)
    sleeps = "import time\ndef f(x): time.sleep(60)"
    for test in ("assert f(1) == 1", "for x in [1]:\n    f(x)"):
        [result] = sandbox.run_tests(sleeps, [test], limits=limits)
        assert result.outcome is TIMEOUT
    assert runs.alone == [False, False]


def test_a_test_that_had_no_time_left_because_of_others_is_repeated_with_them(
    sandbox: Sandbox, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_machine_is(monkeypatch, 4.0)
    limits = Limits(call_cpu_time=0.3, run_cpu_time=0.3, calls_per_test=1)
    tests = [f"for x in [0.11]:\n    assert f(x) == x\n# {number}" for number in range(5)]
    results = sandbox.run_tests(PROGRAM, tests, limits=limits)
    assert [result.outcome for result in results] == [PASS] * 5
    assert runs.alone == sorted(runs.alone)
    assert runs.alone.count(True) == 5


def test_a_repeated_run_is_alone_and_many_of_them_do_not_block_each_other(
    sandbox: Sandbox, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_machine_is(monkeypatch, 3.0)
    jobs = [Job(PROGRAM, [f"assert f({NEEDS}) == {NEEDS}"]) for _ in range(3)]
    jobs += [Job(PROGRAM, [f"assert f({LITTLE}) == {LITTLE}"]) for _ in range(10)]
    results = sandbox.run_many(jobs[::-1] + jobs)
    assert {result.outcome for [result] in results} == {PASS}
    assert runs.alone.count(True) == 6
    assert runs.company == [0] * 6


def test_close_waits_for_what_is_to_be_repeated(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def slowness() -> float:
        asked.set()
        return 3.0

    monkeypatch.setattr(clocks, "slowness", slowness)
    with Sandbox(workers=2, limits=LIMITS) as sandbox:
        futures = [
            sandbox.submit(sandbox.judge, Job(PROGRAM, [f"assert f({NEEDS}) == {NEEDS}"]))
            for _ in "12"
        ]
        assert asked.wait(30.0)
    assert [future.result().tests[0].outcome for future in futures] == [PASS] * 2
    with pytest.raises(SandboxError, match="close"):
        sandbox.run_tests(PROGRAM, ["assert f(0) == 0"])
    assert runs.company == [0] * 2


def test_the_slowness_is_the_time_now_over_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.003, 0.002, 0.004, *[0.003] * 3, *[0.1] * 3, *[0.001] * 3])
    monkeypatch.setattr(clocks, "_sample", lambda: next(times))
    monkeypatch.setattr(clocks, "_best", float("inf"))
    assert clocks.measure() == 0.002  # the best of some: a single one may have found cold caches
    assert clocks.slowness() == pytest.approx(1.5)
    assert clocks.slowness() == clocks.MOST
    assert clocks.slowness() == 1.0
