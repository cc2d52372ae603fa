"""A program and its tests as one script, for tests that must share a process with the program.

Such tests patch the modules that the program uses, or ask for the type of what it returns. The verdict then comes
from a process that has run the program: one that wants to be found right can make it so, as in the evaluators that
these problems come with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from codea1_env.sandbox import Limits, Outcome, Sandbox, TestResult

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
