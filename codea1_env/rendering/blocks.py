"""An episode as a row of blocks: the problem, and for each round program, tests and rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codea1_env.game import Episode
from codea1_env.rendering.display import (
    DisplayRow,
    Tone,
    clean,
    dropped_rows,
    verdict_rows,
)
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER


class ShownLine(NamedTuple):
    """A line of text, and how it is meant."""

    text: str
    tone: Tone | None = None


class ShownBlock(NamedTuple):
    """A part of an episode: lines, then code, then rows of tests."""

    title: str
    lines: Sequence[ShownLine] = ()
    code: str = ""
    rows: Sequence[DisplayRow] = ()


def blocks(episode: Episode, first_round: int = 1) -> Iterator[ShownBlock]:
    """Yield the parts of an episode from a round on, in order; before the first stands the problem."""
    if first_round == 1:
        yield ShownBlock("Problem", code=episode.problem.prompt)
    for number, played in enumerate(episode.rounds[first_round - 1 :], start=first_round):
        yield from _round(number, played, episode.max_rounds)
    if episode.program is not None:
        yield _program(len(episode.rounds) + 1, episode.program, episode.max_rounds)


def state(episode: Episode) -> str:
    """Return whose turn it is, in words."""
    return "The episode is over." if episode.actor is None else f"{episode.actor} is to act."


def _round(number: int, played: PlayedRound, max_rounds: int) -> Iterator[ShownBlock]:
    verdict = played.verdict
    lines = []
    if played.program.problem is None and not verdict.code_executes:
        outcome = verdict.load.outcome.value.replace("_", " ")
        said = f"The program does not run: {outcome} {clean(verdict.load.message)}"
        lines.append(ShownLine(said.rstrip(), "bad"))
    yield _program(number, played.program, max_rounds, lines)
    rows = [*verdict_rows(verdict.suites[0].tests), *dropped_rows(played.dropped)]
    yield ShownBlock(
        f"Tests by {TESTER}", [] if rows else [ShownLine("no tests", "warn")], rows=rows
    )
    if verdict.history:
        yield ShownBlock("Tests from the Mistake Book", rows=verdict_rows(verdict.history))
    parts = verdict.suites[0].rewards
    unscorable = "" if verdict.code_reward is not None else " (could not be scored)"
    of_tester = f"validity {parts.validity:.3f}, adversarial {parts.adversarial:.3f}"
    yield ShownBlock(
        "Rewards",
        [
            ShownLine(f"{CODER:<10}{played.rewards[CODER]:6.3f}{unscorable}"),
            ShownLine(f"{TESTER:<10}{played.rewards[TESTER]:6.3f}  {of_tester}"),
        ],
    )


def _program(
    number: int, program: Program, max_rounds: int, lines: Sequence[ShownLine] = ()
) -> ShownBlock:
    title = f"Program by {CODER}" + (f", round {number} of {max_rounds}" if max_rounds > 1 else "")
    if program.problem is not None:
        return ShownBlock(title, [ShownLine(f"no program: {clean(program.problem)}", "bad")])
    return ShownBlock(title, lines, program.code)
