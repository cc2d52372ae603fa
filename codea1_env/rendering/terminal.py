"""Renderings of an episode: coloured text (``ansi``), on the terminal (``show``), as a page (``html``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from codea1_env.game import Episode
from codea1_env.judging.feedback import shorten
from codea1_env.rendering.display import DisplayRow, clean, code_lines, dropped_rows, verdict_rows
from codea1_env.rendering.page import html
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER

__all__ = ["ansi", "html", "show"]

MAX_LINES: Final = 60
LINE_CHARS: Final = 160
RULE: Final = "─" * 78
STYLES: Final = {"title": "1", "head": "1;36", "dim": "2", "good": "32", "bad": "31", "warn": "33"}
MARKS: Final = {"good": "✓", "bad": "✗", "warn": "–"}


def ansi(episode: Episode, *, colour: bool = True) -> str:
    """Return the episode as text for a terminal, with ANSI escape sequences for colours."""
    lines = list(_lines(episode))
    return "\n".join(_paint(style, text) if colour and style else text for style, text in lines)


def show(episode: Episode) -> None:
    """Print the episode to stdout: coloured on a terminal, plain into a file or a pipe."""
    # Not through rich, whose import draws from the global random state.
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    encoding = sys.stdout.encoding or "utf-8"
    # A terminal that knows only ASCII shows escapes instead of failing on a tick.
    print(ansi(episode, colour=colour).encode(encoding, "backslashreplace").decode(encoding))


def _paint(style: str, text: str) -> str:
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def _lines(episode: Episode) -> Iterator[tuple[str, str]]:
    """Yield lines of text, each with the name of its style ("" for none)."""
    problem = episode.problem
    yield "title", f"Code-A1 · {clean(problem.task_id)} · defines {clean(problem.entry_point)}"
    yield "dim", RULE
    yield from _code(problem.prompt)
    for number, played in enumerate(episode.rounds, start=1):
        yield from _round(number, played, episode.max_rounds)
    if episode.program is not None:
        yield from _program(len(episode.rounds) + 1, episode.program, episode.max_rounds)
    yield "dim", RULE
    actor = episode.actor
    yield "dim", "The episode is over." if actor is None else f"{actor} is to act."


def _round(number: int, played: PlayedRound, max_rounds: int) -> Iterator[tuple[str, str]]:
    yield from _program(number, played.program, max_rounds)
    verdict = played.verdict
    if played.program.problem is None and not verdict.code_executes:
        message = clean(shorten(verdict.load.message, LINE_CHARS))
        yield "bad", f"The program does not run: {verdict.load.outcome.value} {message}".rstrip()
    yield "head", f"Tests by {TESTER}"
    suite = [*verdict_rows(verdict.suites[0].tests), *dropped_rows(played.dropped)]
    yield from _tests(suite, "no tests")
    if verdict.history:
        yield "head", "Tests from the Mistake Book"
        yield from _tests(verdict_rows(verdict.history), "")
    rewards = verdict.suites[0].rewards
    unscorable = "" if verdict.code_reward is not None else " (could not be scored)"
    yield "head", "Rewards"
    yield "", f"{CODER:<10}{played.rewards[CODER]:6.3f}{unscorable}"
    parts = f"validity {rewards.validity:.3f}, adversarial {rewards.adversarial:.3f}"
    yield "", f"{TESTER:<10}{played.rewards[TESTER]:6.3f}  {parts}"


def _program(number: int, program: Program, max_rounds: int) -> Iterator[tuple[str, str]]:
    yield "dim", RULE
    of = f", round {number} of {max_rounds}" if max_rounds > 1 else ""
    yield "head", f"Program by {CODER}{of}"
    if program.problem is not None:
        yield "bad", f"no program: {clean(shorten(program.problem, LINE_CHARS))}"
    else:
        yield from _code(program.code)


def _code(code: str) -> Iterator[tuple[str, str]]:
    shown, left_out = code_lines(code.strip("\n"), MAX_LINES, LINE_CHARS)
    for number, line in enumerate(shown, start=1):
        yield "", f"{number:>4} │ {line}"
    if left_out:
        yield "dim", f"     │ ... {left_out} more lines"


def _tests(rows: Sequence[DisplayRow], if_none: str) -> Iterator[tuple[str, str]]:
    for row in rows:
        text = shorten(" ".join(row.text.split()), LINE_CHARS)
        yield row.tone, f"{MARKS[row.tone]} {row.verdict:<11} {text}"
        if row.detail:
            yield "dim", f"{'':14}{shorten(row.detail, LINE_CHARS)}"
    if not rows:
        yield "dim", if_none
