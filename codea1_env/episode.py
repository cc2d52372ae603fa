"""An episode so far, as plain frozen values: what the game keeps and the renderings show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codea1_env.problems import Problem
from codea1_env.responses import Dropped, Program
from codea1_env.spaces import CODER, TESTER
from codea1_env.verdicts import Verdict


@dataclass(frozen=True)
class PlayedRound:
    """One round that has been judged."""

    program: Program
    verdict: Verdict
    dropped: tuple[Dropped, ...]
    """What the tester wrote and no test could be made of."""
    rewards: Mapping[str, float]
    """What each agent got."""


@dataclass(frozen=True)
class Episode:
    """An episode so far: all that is needed to show it."""

    problem: Problem
    max_rounds: int
    rounds: tuple[PlayedRound, ...] = ()
    program: Program | None = None
    """The program that awaits its tests; None while the coder is to act and when all is over."""

    @property
    def actor(self) -> str | None:
        """The agent whose turn it is; None when the episode is over."""
        if len(self.rounds) >= self.max_rounds:
            return None
        return CODER if self.program is None else TESTER
