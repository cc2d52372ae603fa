"""Limits on time, memory, output and results: of one call, of one test, and of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from processes import run_python

from codea1_env.sandbox import Limit, Limits, Outcome, Sandbox, TestResult, clocks

PASS, TIMEOUT = Outcome.PASS, Outcome.TIMEOUT
# One time for tests of both kinds, so that what holds for one is asked of the other, too.
SHORT = Limits(
    call_cpu_time=0.2, call_wall_time=0.4, run_cpu_time=3.0, run_wall_time=5.0, calls_per_test=1
)
SPIN = "while True: pass"
SLEEP = "import time; time.sleep(60)"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=SHORT) as sandbox:
        yield sandbox


def judge(sandbox: Sandbox, code: str, test: str, **limits: float) -> TestResult:
    bounds = Limits(**{**vars(SHORT), **limits})  # type: ignore[arg-type]
    [result] = sandbox.run_tests(code, [test], limits=bounds)
    return result


def program(act: str) -> str:
    return f"def f(x):\n    if x == 2:\n        {act}\n    return x"


BOTH = ["assert f(2) == 2", "for x in [2]:\n    assert f(x) == x"]


@pytest.mark.parametrize("act", [SPIN, SLEEP], ids=["spins", "sleeps"])
def test_loading_that_takes_too_long(sandbox: Sandbox, act: str) -> None:
    for test in BOTH:
        assert judge(sandbox, f"{act}\ndef f(x): return x", test).outcome is TIMEOUT


def test_test_and_program_together_are_one_call(sandbox: Sandbox) -> None:
    code = "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass"
    # Together more than a machine that is found to be slow gives it.
    test = "pass\nfor _ in range(25): f(0.04)"
    assert clocks.MOST * SHORT.call_cpu_time < 25 * 0.04
    assert judge(sandbox, code, test).outcome is TIMEOUT
    assert judge(sandbox, code, test, call_cpu_time=3.0, call_wall_time=5.0).outcome is PASS


def test_a_test_that_is_a_program_may_use_the_time_of_many_calls(sandbox: Sandbox) -> None:
    code = "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass"
    many = {"calls_per_test": 6, "call_wall_time": 5.0, "run_cpu_time": 0.3}
    # It also is more than all calls together may use: a run's limit never cuts a single test.
    assert judge(sandbox, code, "for _ in range(10): f(0.04)", **many).outcome is PASS
    assert judge(sandbox, code, "assert f(1.0) is None", **many).outcome is TIMEOUT


def test_the_limits_of_a_test_follow_from_those_of_a_call() -> None:
    usual = Limits()
    assert (usual.test_cpu_time, usual.test_wall_time) == (30.0, 60.0)
    room = usual.with_room_for(9)
    assert (room.run_cpu_time, room.run_wall_time) == (20.0, 100.0)
    alike = Limits(2.0, 10.0, 20.0, 60.0, calls_per_test=1)
    assert (alike.test_cpu_time, alike.test_wall_time) == (2.0, 10.0)
    double = usual.times(2.0)
    assert (double.test_cpu_time, double.test_wall_time) == (60.0, 120.0)
    assert (double.run_cpu_time, double.memory) == (40.0, usual.memory)


def test_who_computes_is_ended_by_the_cpu_limit_and_who_waits_by_the_wall_limit(
    sandbox: Sandbox,
) -> None:
    limits = {"call_cpu_time": 0.4, "call_wall_time": 0.2}
    dozes = "import time\n        while True:\n            time.sleep(0.005)"
    for test in BOTH:
        spins = judge(sandbox, program(SPIN), test, **limits)
        assert spins.limit is Limit.CPU_TIME
        assert 0.4 <= spins.cpu_time < 1.5
        for act in (SLEEP, dozes):
            assert judge(sandbox, program(act), test, **limits).limit is Limit.WALL_TIME


def test_more_memory_than_a_process_may_have_is_refused_and_no_verdict() -> None:
    """`ulimit -v`, below what a program may use."""
    most = 1 << 30
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))\n"
        "from codea1_env.sandbox import Case, Limits, Sandbox, SandboxError, encoded_arguments\n"
        "code, limits = 'def f(): return 1', eval(sys.argv[1])\n"
        "ways = (lambda s: s.run_tests(code, ['assert f() == 1'])[0].outcome.value,\n"
        "    lambda s: s.call(code, 'f', [((), {})])[0].outcome.value,\n"
        "    lambda s: s.run_script(code).outcome.value,\n"
        "    lambda s: s.run_cases(code, 'f', [Case((), {}, 1)])[0].outcome.value,\n"
        "    lambda s: s.run_calls(code, 'f', [encoded_arguments([], {})]).load.outcome.value)\n"
        "with Sandbox(limits=limits) as sandbox:\n"
        "    for way in ways:\n"
        "        try: print(way(sandbox))\n"
        "        except SandboxError as error: print(error)\n"
    )

    def said(limits: str) -> list[str]:
        return run_python("-c", script, limits).stdout.splitlines()

    found = said("None")
    for line in found:
        assert "Limits.memory" in line
        assert f"ulimit -v {2 << 20}" in line
        assert str(most) in line
    assert len(found) == 5
    assert said(f"Limits(memory={most})") == ["pass"] * 5


def test_every_call_has_its_own_time(sandbox: Sandbox) -> None:
    code = "import time\ndef f(x):\n    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n    return x"
    results = sandbox.run_tests(code, [f"assert f({x}) == {x}" for x in range(6)])
    assert [result.outcome for result in results] == [PASS] * 6
    # Six times 0.1 s, where 0.2 s is a call's limit. Where this process waits for a processor, the next call
    # has begun before the last one's time is read: only the sum is sure.
    assert 0.5 < sum(result.cpu_time for result in results) < 1.5


BAD = {SPIN: TIMEOUT, SLEEP: TIMEOUT, "import os; os.abort()": Outcome.SIGNALLED}


@pytest.mark.parametrize(("act", "bad"), BAD.items())
def test_a_bad_call_keeps_the_results_before_and_after_it(
    sandbox: Sandbox, act: str, bad: Outcome
) -> None:
    tests = [f"assert f({x}) == {x}" for x in (0, 1, 2, 3, 2, 4)]
    found = [result.outcome for result in sandbox.run_tests(program(act), tests)]
    assert found == [PASS, PASS, bad, PASS, bad, PASS]
    calls = sandbox.call(program(act), "f", [((x,), {}) for x in (1, 2, 3)])
    assert [(call.outcome, call.value) for call in calls] == [(PASS, 1), (bad, None), (PASS, 3)]


def test_the_cpu_time_of_a_run(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "slowness", lambda: 1.0)  # else it may be run again, with more time
    limits = Limits(call_cpu_time=0.2, call_wall_time=5.0, run_cpu_time=0.5)
    tests = [f"assert f({x}) == {x}" for x in (1, *[2] * 10, 1)]
    results = sandbox.run_tests(program(SPIN), tests, limits=limits)
    assert [result.outcome for result in results] == [PASS] + [TIMEOUT] * 11
    assert "the limit of the whole run" in results[-1].message
    assert sum(result.cpu_time for result in results) < 1.5  # without it: ten times 0.2 s and more


def test_the_wall_clock_time_of_a_run(sandbox: Sandbox) -> None:
    limits = Limits(call_cpu_time=1.0, call_wall_time=0.2, run_wall_time=0.5)
    started = time.monotonic()
    results = sandbox.run_tests(program(SLEEP), ["assert f(2) == 2"] * 6, limits=limits)
    assert [result.outcome for result in results] == [TIMEOUT] * 6
    assert time.monotonic() - started < 10.0


@pytest.mark.parametrize(
    "act", ["y = bytearray(1 << 30)", "y = [bytes(1 << 20) for _ in range(999)]"]
)
def test_memory(sandbox: Sandbox, act: str) -> None:
    limits = Limits(call_cpu_time=5.0, call_wall_time=9.0, memory=300 << 20)
    for result in sandbox.run_tests(program(act), BOTH, limits=limits):
        assert (result.outcome, bool(result.message)) == (Outcome.MEMORY, True)
    enough = sandbox.run_tests(program("y = bytearray(50 << 20)"), BOTH, limits=limits)
    assert [result.outcome for result in enough] == [PASS] * 2


def test_output_is_dropped(sandbox: Sandbox) -> None:
    for stream in ("stdout", "stderr"):
        code = program(f"import sys; print('x' * 3_000_000, file=sys.{stream}, flush=True)")
        found = sandbox.run_tests(code, BOTH, limits=Limits(output=50_000))
        assert [result.outcome for result in found] == [PASS] * 2


@pytest.mark.parametrize("field", list(vars(SHORT)))
def test_limits_are_positive_numbers(field: str) -> None:
    for value in (0, float("nan")):
        with pytest.raises(ValueError, match=f"Limits.{field}"):
            Limits(**{field: value})  # type: ignore[arg-type]
