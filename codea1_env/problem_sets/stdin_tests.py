"""Runs programs that read standard input and print, and compares what they print as LiveCodeBench does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from codea1_env.problem_sets.problem import StdinTest
from codea1_env.sandbox import MAX_INPUT, Limits, Outcome, Sandbox, TestResult

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
