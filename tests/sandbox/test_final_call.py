"""A function of the program that is called when tests are over: it says what they did, and they have no say."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Job, JobResult, Limits, Outcome, Sandbox
from codea1_env.sandbox.results import NEVER_CALLED

COUNTING = """
calls = []

def f(x):
    calls.append(x)
    if x == "leave":
        import os
        os._exit(3)
    while x == "hang":
        pass
    return x + x

def said():
    return list(calls)
"""


def run(sandbox: Sandbox, *tests: str, code: str = COUNTING, entry: str | None = "f") -> JobResult:
    limits = Limits(call_cpu_time=0.5, calls_per_test=1)
    return sandbox.submit(Job(code, tests, entry, limits, final_call="said")).result()


def values(result: JobResult) -> list[object]:
    return [each.value for each in result.final_calls]


def test_calls_with_literals_share_a_process(sandbox: Sandbox) -> None:
    result = run(sandbox, "assert f(1) == 2", "assert f('a') == 'b'", "f(None)")
    assert [test.outcome.value for test in result.tests] == ["pass", "fail", "error"]
    assert values(result) == [[1, "a", None]]


def test_every_other_test_has_its_own_process(sandbox: Sandbox) -> None:
    tests = [
        "for x in (1, 2):\n    assert f(x)",
        "assert f(3) == 6",
        "assert [f(4)] == [0]",
        "x = 1",
    ]
    result = run(sandbox, *tests)
    assert [test.outcome.value for test in result.tests] == ["pass", "pass", "fail", "error"]
    assert [test.called for test in result.tests] == [True, True, True, False]
    assert values(result) == [[3], [1, 2], [4], []]


def test_a_job_without_tests_is_asked_too(sandbox: Sandbox) -> None:
    assert values(run(sandbox)) == [[]]


def test_jobs_that_do_not_want_it_get_none(sandbox: Sandbox) -> None:
    job = Job(COUNTING, ["assert f(1) == 2", "x = f(1)"], "f")
    assert sandbox.submit(job).result().final_calls == ()


@pytest.mark.parametrize("argument", ["leave", "hang"])
def test_a_process_that_has_not_lived_says_why(sandbox: Sandbox, argument: str) -> None:
    outcome = {"leave": Outcome.EXITED, "hang": Outcome.TIMEOUT}[argument]
    result = run(sandbox, "assert f(1) == 2", f"assert f({argument!r})", f"x = f({argument!r})")
    assert [test.outcome for test in result.tests] == [Outcome.PASS, outcome, outcome]
    simple, other = result.final_calls
    assert simple.value == []  # of the process that went on after the call
    assert other.outcome is outcome


def test_a_function_that_fails_changes_no_verdict(sandbox: Sandbox) -> None:
    for body, outcome in (
        ("return object()", Outcome.UNENCODABLE),
        ("raise ValueError", Outcome.ERROR),
        ("while True: pass", Outcome.TIMEOUT),
        ("import os; os._exit(0)", Outcome.EXITED),
    ):
        code = f"def f(x):\n    return x\n\ndef said():\n    {body}\n"
        result = run(sandbox, "assert f(1) == 1", "x = f(2)", code=code)
        assert [test.outcome for test in result.tests] == [Outcome.PASS, Outcome.PASS]
        assert [each.outcome for each in result.final_calls] == [outcome, outcome]


def test_a_program_that_does_not_load(sandbox: Sandbox) -> None:
    result = run(sandbox, "assert f(1) == 1", "x = f(2)", code="raise ValueError")
    assert {each.outcome for each in (result.load, *result.tests)} == {Outcome.ERROR}
    assert {each.outcome for each in result.final_calls} == {Outcome.ERROR}


def test_a_test_cannot_reach_it(sandbox: Sandbox) -> None:
    tests = [
        "assert said() == []",
        "x = said()",
        "f.__globals__['calls'].append('forged')",
        "import program\nprogram.calls.append('forged')",
        "f.calls = ['forged']",
        "import builtins\nbuiltins.list = lambda x: ['forged']\nf(1)",
        "def said():\n    return ['forged']\nx = f(1)",
    ]
    result = run(sandbox, *tests)
    assert [test.passed for test in result.tests] == [False] * 5 + [True] * 2
    assert values(result) == [[], [], [], [], [1], [1]]  # the first never came to a process


def test_a_test_that_goes_on_after_its_verdict_has_no_say(sandbox: Sandbox) -> None:
    test = """
import threading

def go_on():
    while True:
        f("late")

f(1)
threading.Thread(target=go_on, daemon=True).start()
"""
    result = run(sandbox, test)
    (said,) = result.final_calls
    assert said.outcome is Outcome.PASS
    assert said.value[0] == 1
    assert set(said.value[1:]) <= {"late"}


def test_a_test_that_ends_before_its_last_call_is_answered_harms_nobody(sandbox: Sandbox) -> None:
    code = """
import time

def f(x):
    time.sleep(0.5)
    return x

def said():
    return "still here"
"""
    test = """
import threading

threading.Thread(target=f, args=["late"], daemon=True).start()
"""
    result = run(sandbox, test, code=code)
    # What nobody waited for is no call that a verdict may depend on.
    assert [each.message for each in result.tests] == [NEVER_CALLED]
    assert values(result) == ["still here"]
