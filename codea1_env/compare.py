r"""When is a program right? The rules by which problems compare, by name; see `Problem.compare`.

| rule | right is |
|---|---|
| `equal` | Python's `==` on plain data of equal structure; where a float is expected, within tolerances |
| `exact` | Python's `==`; a tuple that is returned counts as a list, as in LiveCodeBench |
| `set` | the same items in any order, however often |
| `not-none` | something is returned where True is expected, and None where False is |
| `lines` | of printed text: the same lines, and the same numbers in them |

`atol` is the absolute tolerance of floats. 0 stands for 1e-6 (`equal`, as EvalPlus), and for exact numbers (`lines`, as
LiveCodeBench). The relative tolerance of `equal` is 1e-7, as in EvalPlus. What no rule says, a checker does
(`Problem.checker`): text of the problem's author, which runs in a contained process of its own, on plain data.

Values are compared by `codea1_env.sandbox.compare`, outside of the program's process:

    >>> equal([0.1 + 0.2], [0.3]), difference("1 \n2.50\n\n", "1\n2.5")
    (True, '')
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Any, Literal, get_args

from codea1_env.sandbox import (
    RETURNED,
    CallResult,
    InfraError,
    Limits,
    Outcome,
    Rule,
    Sandbox,
    TestResult,
    equal,
)
from codea1_env.sandbox.inside import codec

__all__ = ["COMPARISONS", "Compare", "check_outputs", "difference", "equal"]

Compare = Rule | Literal["lines"]
"""Name of a rule."""
COMPARISONS: tuple[str, ...] = (*get_args(Rule), "lines")
"""All names."""
CHECKER_FAULT = "the checker"
"""How the message of a case begins whose checker did not answer."""
_CHECKER_LIMITS = Limits(call_cpu_time=2.0, call_wall_time=10.0)
_NAME = "check"
_SHOWN = 60


def check_outputs(
    checker: str, questions: Sequence[tuple[Any, Any, Any]], sandbox: Sandbox
) -> list[TestResult]:
    """Ask a checker about outputs, in a contained process of its own.

    Args:
        checker: Text that defines `check(args, output, expected)` or, where programs print,
            `check(stdin, output_text, expected_text)`. It returns True or False.
        questions: The arguments of each call: plain data.
        sandbox: Where it runs.

    Returns:
        PASS or FAIL for each. A checker that raises, reaches a limit or returns something else has not found the
        output right: FAIL, with a message that begins with "the checker".

    Raises:
        InfraError: The sandbox failed three times.
    """
    limits = _CHECKER_LIMITS.with_room_for(len(questions))
    answers = sandbox.call(checker, _NAME, [(each, {}) for each in questions], limits=limits)
    return [_verdict(answer) for answer in answers]


def _verdict(answer: CallResult) -> TestResult:
    if answer.outcome is Outcome.INFRA_ERROR:
        raise InfraError(answer.message)
    if answer.outcome is not Outcome.PASS:
        why = f"{CHECKER_FAULT} gave no answer: {answer.outcome.value}, {answer.message}"
        return TestResult(Outcome.FAIL, why)
    if type(answer.value) is not bool:
        kind = type(answer.value).__name__
        return TestResult(Outcome.FAIL, f"{CHECKER_FAULT} returned {kind}, not True or False")
    if answer.value:
        return TestResult(Outcome.PASS)
    return TestResult(Outcome.FAIL, "the problem's checker says that the output is wrong")


def read_value(frame: bytes) -> Any:
    """Return the value in what a trusted program's process answered to a call."""
    return codec.decode(frame[len(RETURNED) :])


def is_fault_of_checker(result: TestResult) -> bool:
    """Whether a case is not passed because its checker did not answer."""
    return result.outcome is Outcome.FAIL and result.message.startswith(CHECKER_FAULT)


def difference(printed: str, expected: str, atol: float = 0.0) -> str:
    r"""Where an output differs from the expected one; "" if it does not.

    Both are stripped, as is each of their lines. Lines that still differ are alike if they are the same numbers: "1.0"
    is 1. Without a tolerance numbers are compared exactly, as LiveCodeBench does: "0.333" is not a third.

    Args:
        printed: What a program has printed.
        expected: What it should print.
        atol: Absolute tolerance of numbers.

    Example:
        >>> difference("1 \n2.50\n\n", "1\n2.5")
        ''
        >>> difference("1\n3", "1\n2")
        "line 2: printed '3', expected '2'"
        >>> difference("0.3333", "0.333333333", atol=1e-3)
        ''
    """
    lines, wanted = (text.strip().split("\n") for text in (printed, expected))
    for number, (line, other) in enumerate(zip(lines, wanted, strict=False), 1):
        line, other = line.strip(), other.strip()
        if line != other and not _same_numbers(line, other, atol):
            return f"line {number}: printed {_short(line)}, expected {_short(other)}"
    if len(lines) != len(wanted):
        return f"printed {len(lines)} lines, expected {len(wanted)}"
    return ""


def _same_numbers(line: str, other: str, atol: float) -> bool:
    words, others = line.split(), other.split()
    if len(words) != len(others):
        return False
    try:
        return all(_same_number(a, b, atol) for a, b in zip(words, others, strict=True))
    except DecimalException:  # one is no number, or an exponent is out of all bounds
        return False


def _same_number(word: str, other: str, atol: float) -> bool:
    if atol and word == other:  # "inf" and "nan" are no distance apart
        return True
    one, two = Decimal(word), Decimal(other)
    if one == two or not (atol and one.is_finite() and two.is_finite()):
        return one == two
    # Digits far beyond the tolerance decide nothing, and exponents may have any size.
    return abs(one - two) <= Decimal(repr(atol))


def _short(line: str) -> str:
    return ascii(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")
