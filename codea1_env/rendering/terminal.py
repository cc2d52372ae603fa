"""Renderings of an episode: coloured text (``ansi``), and on the terminal (``show``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

from codea1_env.game import Episode
from codea1_env.judging.feedback import shorten
from codea1_env.judging.verdicts import TestVerdict
from codea1_env.rendering.display import clean
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER

MAX_LINES: Final = 60
LINE_CHARS: Final = 160
RULE: Final = "─" * 78
STYLES: Final = {"title": "1", "head": "1;36", "dim": "2", "good": "32", "bad": "31", "warn": "33"}
MARKS: Final = {"good": "✓", "bad": "✗", "warn": "–"}
_Lines = Iterator[tuple[str, str]]
"""Lines of text, each behind the name of its style ("" for none)."""


def ansi(episode: Episode, *, colour: bool = True, first_round: int = 1) -> str:
    """Return the episode from a round on as text for a terminal, with ANSI escape sequences for colours."""
    lines = list(_lines(episode, first_round))
    return "\n".join(
        f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colour and style else text for style, text in lines
    )


def show(episode: Episode, first_round: int = 1) -> None:
    """Print the episode from a round on to stdout: coloured on a terminal, plain into a file or a pipe."""
    # Not through rich, whose import draws from the global random state.
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    encoding = sys.stdout.encoding or "utf-8"
    # A terminal that knows only ASCII shows escapes instead of failing on a tick.
    text = ansi(episode, colour=colour, first_round=first_round)
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _lines(episode: Episode, first_round: int) -> _Lines:
    problem = episode.problem
    if first_round == 1:
        what = (
            f"defines {clean(problem.entry_point)}" if problem.entry_point else "reads and prints"
        )
        yield "title", f"Code-A1 · {clean(problem.task_id)} · {what}"
        yield "dim", RULE
        yield "head", "Problem"
        yield from _code(problem.prompt)
    for number, played in enumerate(episode.rounds[first_round - 1 :], start=first_round):
        yield from _round(number, played, episode.max_rounds)
    if episode.program is not None:
        yield from _program(len(episode.rounds) + 1, episode.program, episode.max_rounds)
    yield "dim", RULE
    whose = f"{episode.actor} is to act."
    yield "dim", "The episode is over." if episode.actor is None else whose


def _round(number: int, played: PlayedRound, max_rounds: int) -> _Lines:
    verdict = played.verdict
    fault = ""
    if played.program.problem is None and not verdict.code_executes:
        outcome = verdict.load.outcome.value.replace("_", " ")
        fault = f"The program does not run: {outcome} {clean(verdict.load.message)}".rstrip()
    yield from _program(number, played.program, max_rounds, fault)
    suite = verdict.suites[0]
    none = not (suite.tests or played.dropped)
    if none:
        yield "dim", RULE
    yield "head", f"Tests by {TESTER}"
    if none:
        yield "warn", "no tests"
    for test in suite.tests:
        yield from _test(test)
    for part in played.dropped:
        word = "invalid" if part.invalid else "no test"
        yield from _row("warn", word, part.text, clean(part.reason))
    if verdict.history:
        yield "head", "Tests from the Mistake Book"
    for test in verdict.history:
        yield from _test(test)
    unscorable = "" if verdict.code_reward is not None else " (could not be scored)"
    parts = suite.rewards
    of_tester = f"validity {parts.validity:.3f}, adversarial {parts.adversarial:.3f}"
    yield "dim", RULE
    yield "head", "Rewards"
    yield "", f"{CODER:<10}{played.rewards[CODER]:6.3f}{unscorable}"
    yield "", f"{TESTER:<10}{played.rewards[TESTER]:6.3f}  {of_tester}"


def _program(number: int, program: Program, max_rounds: int, fault: str = "") -> _Lines:
    yield "dim", RULE
    yield (
        "head",
        f"Program by {CODER}" + (f", round {number} of {max_rounds}" if max_rounds > 1 else ""),
    )
    if program.problem is not None:
        yield "bad", shorten(f"no program: {clean(program.problem)}", LINE_CHARS)
        return
    if fault:
        yield "bad", shorten(fault, LINE_CHARS)
    yield from _code(program.code)


def _code(code: str) -> _Lines:
    lines = clean(code.strip("\n")).split("\n") if code else []
    for number, line in enumerate(lines[:MAX_LINES], start=1):
        more = f" ... ({len(line) - LINE_CHARS} more)" if len(line) > LINE_CHARS else ""
        yield "", f"{number:>4} │ {line[:LINE_CHARS]}{more}"
    if lines[MAX_LINES:]:
        yield "dim", f"     │ ... {len(lines) - MAX_LINES} more lines"


def _test(test: TestVerdict) -> _Lines:
    if not test.attacks:
        yield from _row("warn", test.status, test.text, clean(test.reason))
        return
    verdict = "not run" if test.outcome is None else test.outcome.value.replace("_", " ")
    details = [clean(test.message)] if test.message else []
    if test.status == "corrected":
        details.append(f"corrected, as written it {clean(test.reason)}")
    yield from _row("good" if test.passed else "bad", verdict, test.text, "; ".join(details))


def _row(style: str, verdict: str, test: str, detail: str) -> _Lines:
    text = shorten(" ".join(clean(test).split()), LINE_CHARS)
    yield style, f"{MARKS[style]} {verdict:<11} {text}"
    if detail:
        yield "dim", f"{'':14}{shorten(detail, LINE_CHARS)}"
