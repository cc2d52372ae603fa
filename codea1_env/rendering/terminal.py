"""Renderings of an episode: coloured text (``ansi``), and on the terminal (``show``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

from codea1_env.game import Episode
from codea1_env.judging.feedback import shorten
from codea1_env.rendering.blocks import ShownBlock, blocks, state
from codea1_env.rendering.display import clean, code_lines

MAX_LINES: Final = 60
LINE_CHARS: Final = 160
RULE: Final = "─" * 78
STYLES: Final = {"title": "1", "head": "1;36", "dim": "2", "good": "32", "bad": "31", "warn": "33"}
MARKS: Final = {"good": "✓", "bad": "✗", "warn": "–"}


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


def _lines(episode: Episode, first_round: int) -> Iterator[tuple[str, str]]:
    problem = episode.problem
    if first_round == 1:
        yield "title", f"Code-A1 · {clean(problem.task_id)} · defines {clean(problem.entry_point)}"
    for block in blocks(episode, first_round):
        if block.code or not block.rows:
            yield "dim", RULE
        yield from _block(block)
    yield "dim", RULE
    yield "dim", state(episode)


def _block(block: ShownBlock) -> Iterator[tuple[str, str]]:
    yield "head", block.title
    for line in block.lines:
        yield line.tone or "", shorten(line.text, LINE_CHARS)
    if block.code:
        shown, left_out = code_lines(block.code.strip("\n"), MAX_LINES, LINE_CHARS)
        for number, text in enumerate(shown, start=1):
            yield "", f"{number:>4} │ {text}"
        if left_out:
            yield "dim", f"     │ ... {left_out} more lines"
    for row in block.rows:
        text = shorten(" ".join(row.text.split()), LINE_CHARS)
        yield row.tone, f"{MARKS[row.tone]} {row.verdict:<11} {text}"
        if row.detail:
            yield "dim", f"{'':14}{shorten(row.detail, LINE_CHARS)}"
