"""Runs a program on all tests of its problem, in the way that they need.

Some tests must share a process with the program: they patch the modules that it uses, or ask for the type of what it
returns. The verdict then comes from a process that has run the program: one that wants to be found right can make it so,
as in the evaluators that these problems come with. Programs that read standard input and print are compared as
LiveCodeBench does it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future
from decimal import Decimal, InvalidOperation
from functools import partial

from codea1_env.problem_sets.problem import Problem, StdinTest
from codea1_env.sandbox import MAX_INPUT, Job, JobResult, Limits, Outcome, Sandbox, TestResult


def submit_to_tests(
    problem: Problem, code: str, limits: Limits, sandbox: Sandbox, *, hash_seed: int = 0
) -> Future[JobResult]:
    """Start a program on the tests of its problem, behind the problem's preamble.

    Args:
        problem: It has tests.
        code: Any text that can be encoded.
        limits: What it may use. For inputs to read, and where there is no reference, they are for each test; there
            the first test that fails is the last, so that not every test of a program need time out.
        sandbox: Where it runs.
        hash_seed: See `Job.hash_seed`; only for tests that call the program from another process.

    Returns:
        The results of all tests, or of those up to the first that failed.
    """
    if problem.preamble:
        code = f"{problem.preamble}\n\n{code}"
    if problem.stdin_tests:
        run = partial(run_stdin_tests, code, problem.stdin_tests, limits, sandbox)
    elif problem.in_one_process:
        run = partial(_run_in_one_process, code, problem.all_tests, limits, sandbox)
    elif not problem.reference.strip():
        run = partial(_run_in_turn, problem, code, limits, sandbox)
    else:
        job = Job(code, problem.all_tests, problem.entry_point, limits, hash_seed)
        return sandbox.submit(job)
    return sandbox.in_background(lambda: JobResult(TestResult(Outcome.PASS), tuple(run())))


def _run_in_turn(problem: Problem, code: str, limits: Limits, sandbox: Sandbox) -> list[TestResult]:
    results: list[TestResult] = []
    for test in problem.all_tests:
        results += sandbox.run_tests(code, [test], entry_point=problem.entry_point, limits=limits)
        if not results[-1].passed:
            break
    return results


def _run_in_one_process(
    code: str, tests: Sequence[str], limits: Limits, sandbox: Sandbox
) -> list[TestResult]:
    return [run_in_one_process(code, tests, limits, sandbox, scratch=True)]


_DONE = "all tests have passed"
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
_MEMORY = 4 << 30
"""Bytes: libraries reserve much more than they use."""
_SCRIPT = """\
import contextlib
import io
import sys
import types

module = types.ModuleType("__test__")
sys.modules["__test__"] = module
with contextlib.redirect_stdout(io.StringIO()):
    exec(compile({code!r}, "<program>", "exec", dont_inherit=True), vars(module))
    for test in {tests!r}:
        exec(compile(test, "<test>", "exec", dont_inherit=True), vars(module))
print({done!r})
"""


def run_in_one_process(
    code: str, tests: Sequence[str], limits: Limits, sandbox: Sandbox, *, scratch: bool = False
) -> TestResult:
    """Run a program, and then its tests in the same module, which is not the main one.

    Args:
        code: Any text.
        tests: Program texts.
        limits: What all may use together.
        sandbox: Where they run.
        scratch: Whether they may write files, see `Job.scratch`.

    Returns:
        How the first test that did not pass ended, or the program itself.
    """
    script = _SCRIPT.format(code=code, tests=tuple(tests), done=_DONE)
    limits = dataclasses.replace(limits, memory=_MEMORY)
    run = sandbox.run_script(script, limits=limits, scratch=scratch)
    outcome, message = run.outcome, run.message
    if outcome is Outcome.PASS and run.stdout.strip() != _DONE:
        outcome, message = Outcome.EXITED, "it ended before its tests did"
    elif outcome is Outcome.ERROR and run.error == "AssertionError":
        # What is cut is said by `run.error`.
        outcome, message = Outcome.FAIL, message.removeprefix(f"{run.error}: ")
    elif outcome is Outcome.ERROR and run.error in _SYNTAX:
        outcome = Outcome.SYNTAX_ERROR
    return run.verdict(outcome, message)


_ROOM = 1 << 16
"""Bytes that a program may print beyond twice what is expected."""
_SHOWN = 60


def run_stdin_tests(
    code: str, tests: Sequence[StdinTest], limits: Limits, sandbox: Sandbox
) -> list[TestResult]:
    """Run a program on one input after the other, up to the first on which it is wrong.

    Args:
        code: Any text.
        tests: Inputs, and what must be printed.
        limits: What each run may use.
        sandbox: Where it runs.
    """
    longest = max(len(test.stdout.encode()) for test in tests)
    limits = dataclasses.replace(limits, output=max(limits.output, 2 * longest + _ROOM))
    results: list[TestResult] = []
    for test in tests:
        run = sandbox.run_script(code, test.stdin, limits=limits)
        outcome, message = run.outcome, run.message
        if outcome is Outcome.PASS:
            message = difference(run.stdout, test.stdout)
            outcome = Outcome.FAIL if message else Outcome.PASS
        results.append(run.verdict(outcome, message))
        if outcome is not Outcome.PASS:
            break
    return results


def too_large(tests: Sequence[StdinTest]) -> str:
    """Why a problem's inputs cannot be given to a program; "" if they can."""
    for number, test in enumerate(tests, 1):
        size = len(test.stdin.encode())
        if size > MAX_INPUT:
            return f"the input of test {number} has {size:,} bytes, and a program can read {MAX_INPUT:,}"
    return ""


def difference(printed: str, expected: str) -> str:
    r"""Where an output differs from the expected one; "" if it does not.

    Both are stripped, as is each of their lines. Lines that still differ are alike if they are the same numbers,
    compared exactly: "1.0" is 1, and "0.333" is not a third.

    Example:
        >>> difference("1 \n2.50\n\n", "1\n2.5")
        ''
        >>> difference("1\n3", "1\n2")
        "line 2: printed '3', expected '2'"
    """
    lines, wanted = (text.strip().split("\n") for text in (printed, expected))
    for number, (line, other) in enumerate(zip(lines, wanted, strict=False), 1):
        line, other = line.strip(), other.strip()
        if line != other and not _same_numbers(line, other):
            return f"line {number}: printed {_short(line)}, expected {_short(other)}"
    if len(lines) != len(wanted):
        return f"printed {len(lines)} lines, expected {len(wanted)}"
    return ""


def _same_numbers(line: str, other: str) -> bool:
    words, others = line.split(), other.split()
    if len(words) != len(others):
        return False
    try:
        return all(Decimal(a) == Decimal(b) for a, b in zip(words, others, strict=True))
    except InvalidOperation:  # one is no number
        return False


def _short(line: str) -> str:
    return ascii(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")
