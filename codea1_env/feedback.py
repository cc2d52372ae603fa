"""What the players are told about a judged round: in ``infos`` as data, in observations as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codea1_env.referee import TestVerdict, Verdict
from codea1_env.responses import MAX_ACTION_CHARS, Program
from codea1_env.sandbox import Outcome

LINE_CHARS = 400
"""A test or message is cut to this length where it is only quoted."""
MAX_LINES = 40
"""Lines of feedback about single tests; the rest is counted."""
Dropped = Sequence[tuple[str, str]]
"""(reason, text) of what no test could be made of."""


def broke(test: TestVerdict) -> bool:
    """Whether this test counts and the program did not pass it."""
    return test.status != "invalid" and test.outcome is not Outcome.PASS


def failing_tests(verdict: Verdict, limit: int = MAX_ACTION_CHARS) -> str:
    """Text of the tests, new and replayed, that broke the program: whole tests, up to ``limit`` characters."""
    texts: list[str] = []
    for test in dict.fromkeys(test.text for test in _counted(verdict) if broke(test)):
        if len(test) <= limit:
            limit -= len(test) + 1
            texts.append(test)
    return "\n".join(texts)


def feedback(program: Program, verdict: Verdict, dropped: Dropped = ()) -> str:
    """A short report on a round for both players, with what each failing test expected and got."""
    new = [test for suite in verdict.suites for test in suite.tests]
    invalid = [test for test in new if test.status == "invalid"]
    lines = [_program_line(program, verdict)]
    for title, tests in (
        ("New tests", [test for test in new if test.status != "invalid"]),
        ("Tests that broke earlier programs", verdict.history),
    ):
        if tests:
            failed = [test for test in tests if broke(test)]
            lines.append(f"{title}: {len(tests) - len(failed)} of {len(tests)} passed.")
            lines += [f"- {_quote(test.text)}: {_result(test)}" for test in failed]
    if invalid or dropped:
        lines.append(f"Not counted as tests: {len(invalid) + len(dropped)}.")
        lines += [f"- {_quote(test.text)}: {shorten(test.reason)}" for test in invalid]
        lines += [f"- {_quote(text)}: {shorten(reason)}" for reason, text in dropped]
    elif not new:
        lines.append("The tester wrote no tests.")
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"(and {len(lines) - MAX_LINES} more lines)"]
    return "\n".join(lines)


def explain(program: Program, verdict: Verdict, dropped: Dropped = ()) -> dict[str, Any]:
    """The part of ``infos`` that says what came of a round. Plain data, and no times in it."""
    rewards = verdict.suites[0].rewards
    return {
        "scorable": verdict.code_reward is not None,
        "program": {
            "problem": program.problem,
            "executes": verdict.code_executes,
            "outcome": verdict.load.outcome.value,
            "message": verdict.load.message,
        },
        "tests": [_as_data(test) for test in verdict.suites[0].tests],
        "dropped": [{"reason": reason, "text": shorten(text)} for reason, text in dropped],
        "history": [_as_data(test) for test in verdict.history],
        "rewards": {
            "code": verdict.code_reward,
            "test": rewards.test,
            "validity": rewards.validity,
            "adversarial": rewards.adversarial,
        },
    }


def shorten(text: str, limit: int = LINE_CHARS) -> str:
    """The text, cut in the middle if it is long.

    Example:
        >>> shorten("0123456789" * 10, limit=20)
        '0123456789 ... 56789'
    """
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 5]} ... {text[-tail:]}"


def _counted(verdict: Verdict) -> Iterable[TestVerdict]:
    for suite in verdict.suites:
        yield from suite.tests
    yield from verdict.history


def _as_data(test: TestVerdict) -> dict[str, Any]:
    return {
        "text": test.text,
        "status": test.status,
        "reason": test.reason,
        "outcome": None if test.outcome is None else test.outcome.value,
        "message": test.message,
    }


def _program_line(program: Program, verdict: Verdict) -> str:
    if program.problem is not None:
        return f"The answer held no program: {shorten(program.problem)}."
    if verdict.code_executes:
        return "The program runs."
    message = shorten(verdict.load.message)
    return f"The program does not run ({verdict.load.outcome.value}): {message}"


def _quote(text: str) -> str:
    return shorten(" ".join(text.split()))


def _result(test: TestVerdict) -> str:
    if test.outcome is None:
        return "not run"
    return f"{test.outcome.value}: {shorten(test.message)}" if test.message else test.outcome.value
