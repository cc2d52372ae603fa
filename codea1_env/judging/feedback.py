"""What the players are told about a judged round: in ``infos`` as data, in observations as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from codea1_env.judging.verdicts import TestVerdict, Verdict
from codea1_env.responses import MAX_ACTION_CHARS, Dropped, Program
from codea1_env.sandbox import Outcome

LINE_CHARS = 400
"""A test or message is cut to this length where it is only quoted."""
MAX_LINES = 40
"""Lines of feedback about single tests; the rest is counted."""


def shown_tests(verdict: Verdict) -> list[TestVerdict]:
    """Half of the failing tests, new and replayed, rounded down; at most as many as an action may have.

    They are shown with their values, and so say nothing of the next program. The others score it.
    """
    failing = {test.call: test for test in _counted(verdict) if test.attacks and not test.passed}
    tests: list[TestVerdict] = []
    limit = MAX_ACTION_CHARS
    for test in list(failing.values())[: len(failing) // 2]:
        if len(test.text) <= limit:
            limit -= len(test.text) + 1
            tests.append(test)
    return tests


def feedback(program: Program, verdict: Verdict, dropped: Sequence[Dropped] = ()) -> str:
    """Return a short report on a round for both players, with what each shown test expected and got."""
    shown = {test.call for test in shown_tests(verdict)}
    new = [test for suite in verdict.suites for test in suite.tests]
    lines = [_program_line(program, verdict)]
    for title, tests in (
        ("New tests", [test for test in new if test.attacks]),
        ("Tests that broke earlier programs", verdict.history),
    ):
        if tests:
            failed = [test for test in tests if not test.passed]
            known = dict.fromkeys(test for test in failed if test.call in shown)
            lines.append(f"{title}: {len(tests) - len(failed)} of {len(tests)} passed.")
            lines += [
                f"- {_quote(test.text)}: {_ended(test.outcome, test.message)}" for test in known
            ]
    objections = [(test.text, test.reason) for test in new if test.reason]
    objections += [(item.text, item.reason) for item in dropped]
    if objections:
        lines.append(f"Not valid as written: {len(objections)}.")
        lines += [f"- {_quote(text)}: {shorten(reason)}" for text, reason in objections]
    elif not new:
        lines.append("The tester wrote no tests.")
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"(and {len(lines) - MAX_LINES} more lines)"]
    return "\n".join(lines)


def explain(program: Program, verdict: Verdict, dropped: Sequence[Dropped] = ()) -> dict[str, Any]:
    """Return the part of ``infos`` that says what came of a round. Plain data, and no times in it."""
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
        "dropped": [
            {"reason": item.reason, "text": shorten(item.text), "invalid": item.invalid}
            for item in dropped
        ],
        "history": [_as_data(test) for test in verdict.history],
        "rewards": {
            "code": verdict.code_reward,
            "test": rewards.test,
            "validity": rewards.validity,
            "adversarial": rewards.adversarial,
        },
    }


def shorten(text: str, limit: int = LINE_CHARS) -> str:
    """Return the text, cut in the middle if it is long.

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
    return f"The program does not run: {_ended(verdict.load.outcome, verdict.load.message)}"


def _quote(text: str) -> str:
    return shorten(" ".join(text.split()))


def _ended(outcome: Outcome | None, message: str) -> str:
    if outcome is None:
        return "not run"
    return f"{outcome.value}: {shorten(message)}" if message else outcome.value
