"""An episode as a row of blocks, which every rendering shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codea1_env.game import Episode
from codea1_env.rendering.display import DisplayRow, Tone, clean, dropped_rows, verdict_rows
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER


class Line(NamedTuple):
    """A line of text, and how it is meant."""

    text: str
    tone: Tone | None = None


class Block(NamedTuple):
    """A part of an episode: lines, then code, then rows of tests."""

    title: str
    lines: Sequence[Line] = ()
    code: str = ""
    rows: Sequence[DisplayRow] = ()


def blocks(episode: Episode) -> Iterator[Block]:
    """Yield the parts of an episode, in order."""
    yield Block("Problem", code=episode.problem.prompt)
    for number, played in enumerate(episode.rounds, start=1):
        yield from _round(number, played, episode.max_rounds)
    if episode.program is not None:
        yield _program(len(episode.rounds) + 1, episode.program, episode.max_rounds)


def state(episode: Episode) -> str:
    """Return whose turn it is, in words."""
    return "The episode is over." if episode.actor is None else f"{episode.actor} is to act."


def _round(number: int, played: PlayedRound, max_rounds: int) -> Iterator[Block]:
    verdict = played.verdict
    lines = []
    if played.program.problem is None and not verdict.code_executes:
        outcome = verdict.load.outcome.value.replace("_", " ")
        said = f"The program does not run: {outcome} {clean(verdict.load.message)}"
        lines.append(Line(said.rstrip(), "bad"))
    yield _program(number, played.program, max_rounds, lines)
    rows = [*verdict_rows(verdict.suites[0].tests), *dropped_rows(played.dropped)]
    yield Block(f"Tests by {TESTER}", [] if rows else [Line("no tests", "warn")], rows=rows)
    if verdict.history:
        yield Block("Tests from the Mistake Book", rows=verdict_rows(verdict.history))
    parts = verdict.suites[0].rewards
    unscorable = "" if verdict.code_reward is not None else " (could not be scored)"
    of_tester = f"validity {parts.validity:.3f}, adversarial {parts.adversarial:.3f}"
    yield Block(
        "Rewards",
        [
            Line(f"{CODER:<10}{played.rewards[CODER]:6.3f}{unscorable}"),
            Line(f"{TESTER:<10}{played.rewards[TESTER]:6.3f}  {of_tester}"),
        ],
    )


def _program(number: int, program: Program, max_rounds: int, lines: Sequence[Line] = ()) -> Block:
    title = f"Program by {CODER}" + (f", round {number} of {max_rounds}" if max_rounds > 1 else "")
    if program.problem is not None:
        return Block(title, [Line(f"no program: {clean(program.problem)}", "bad")])
    return Block(title, lines, program.code)
