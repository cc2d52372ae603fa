"""What a result says in fields of how it came: never asked of its message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codea1_env.sandbox import (
    CallResult,
    Job,
    Limit,
    Limits,
    Outcome,
    Sandbox,
    TestResult,
)

LIMITS = Limits(
    call_cpu_time=0.3, call_wall_time=1.0, run_cpu_time=3.0, run_wall_time=6.0, calls_per_test=1,
    memory=512 << 20, output=1 << 16, result=1 << 20,
)  # fmt: skip
BOTH = ["assert f(2) == 2", "for x in [2]:\n    assert f(x) == x"]
MISSING = "no_such_module_of_ours"
NAMED = "def f(x):\n    raise type({name!r}, (Exception,), {{}})"
LYING = """
class Lying(type):
    @property
    def __name__(cls):
        {says}
class Error(Exception, metaclass=Lying): pass
def f(x): raise Error
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as sandbox:
        yield sandbox


def results(sandbox: Sandbox, code: str) -> list[CallResult | TestResult]:
    """What becomes of f(2) as a call, and as a test of either kind."""
    job = Job(code, BOTH, "f")
    return [sandbox.call(code, "f", [((2,), {})])[0], *sandbox.judge(job).tests]


@pytest.mark.parametrize("place", ["def f(x):\n    {}", "{}\ndef f(x): return x"])
@pytest.mark.parametrize(
    ("act", "outcome", "error"),
    [
        ("1 / 0", Outcome.ERROR, "ZeroDivisionError"),
        ("raise SystemExit(0)", Outcome.EXITED, "SystemExit"),
        ("import os; os._exit(0)", Outcome.EXITED, None),
    ],
)
def test_an_exception_is_named(
    sandbox: Sandbox, place: str, act: str, outcome: Outcome, error: str | None
) -> None:
    for result in results(sandbox, place.format(act)):
        assert (result.outcome, result.error, result.limit) == (outcome, error, None)


def test_an_exception_of_the_test_itself_is_named(sandbox: Sandbox) -> None:
    tests = ["assert f(2) + 'a'", "f(2)\nraise LookupError('x')", "f(2)\nimport " + MISSING, "f(:"]
    found = sandbox.run_tests("def f(x): return x", tests)
    assert [each.error for each in found[:3]] == ["TypeError", "LookupError", "ModuleNotFoundError"]
    assert [each.missing_module for each in found] == [None, None, MISSING, None]
    assert found[3].outcome is Outcome.SYNTAX_ERROR


def test_a_missing_module_is_named_by_its_top(sandbox: Sandbox) -> None:
    code = f"import {MISSING}.inside\ndef f(x): return x"
    for result in results(sandbox, code):
        assert (result.error, result.missing_module) == ("ModuleNotFoundError", MISSING)
    script = sandbox.run_script(code)
    assert (script.error, script.missing_module) == ("ModuleNotFoundError", MISSING)
    said = "raise ModuleNotFoundError('No module named nothing')\ndef f(x): return x"
    assert [each.missing_module for each in results(sandbox, said)] == [None] * 3


@pytest.mark.parametrize(
    ("act", "limit"),
    [
        ("while True: pass", Limit.CPU_TIME),
        ("import time; time.sleep(60)", Limit.WALL_TIME),
        ("return [0] * 10**9", Limit.MEMORY),
        ("return 'x' * (2 << 20)", Limit.RESULT),
    ],
)
def test_the_limit_is_named(sandbox: Sandbox, act: str, limit: Limit) -> None:
    found = results(sandbox, f"def f(x):\n    {act}")
    if limit is Limit.RESULT:  # nothing crosses between a text and the program that it runs with
        assert found.pop().outcome is Outcome.FAIL
    assert {each.limit for each in found} == {limit}


def test_how_a_script_ends_is_named(sandbox: Sandbox) -> None:
    printed = sandbox.run_script("print('x' * (1 << 20))")
    assert (printed.outcome, printed.limit) == (Outcome.OUTPUT_LIMIT, Limit.OUTPUT)
    assert sandbox.run_script("while True: pass").limit is Limit.CPU_TIME
    assert sandbox.run_script("raise KeyError").error == "KeyError"
    for result in [*results(sandbox, "def f(:"), sandbox.run_script("def f(:")]:
        assert (result.outcome, result.error) == (Outcome.SYNTAX_ERROR, "SyntaxError")


def test_a_text_whose_tests_are_all_skipped_is_vacuous(sandbox: Sandbox) -> None:
    skipped = "import pytest\n@pytest.mark.skip\ndef test_it(): pass"
    tests = [skipped, "raise KeyError"]
    found = sandbox.run_tests("def f(x): return x", tests, entry_point="f", limits=Limits())
    assert [each.vacuous for each in found] == [True, False]
    assert [each.outcome for each in found] == [Outcome.ERROR] * 2


@pytest.mark.parametrize("name", ["a b", "\x1b[2J", "x" * 101])
def test_what_is_no_short_identifier_is_no_name(sandbox: Sandbox, name: str) -> None:
    for result in results(sandbox, NAMED.format(name=name)):
        assert (result.outcome, result.error) == (Outcome.ERROR, None)


@pytest.mark.parametrize(
    "says", ["return 'KeyError;'", "return str.__new__(type('S', (str,), {}), 'K')"]
)
def test_a_name_that_lies_does_not_cross(sandbox: Sandbox, says: str) -> None:
    for result in results(sandbox, LYING.format(says=says)):
        assert result.outcome in (Outcome.ERROR, Outcome.EXITED)
        assert result.error is None
