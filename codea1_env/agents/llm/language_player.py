"""A player that is a language model: it answers through an agent, and counts what that takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from codea1_env.agents.llm.agent import LLMAgent, Usage
from codea1_env.agents.scripted import FixedAgent
from codea1_env.spaces import Observation


class LanguagePlayer:
    """Answers through an agent.

    Args:
        agent: Writes the prompts and asks an engine.
    """

    def __init__(self, agent: LLMAgent) -> None:
        self.agent = agent
        self._usage: list[Usage] = []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation.

        Raises:
            BackendError: The engine cannot answer.
        """
        answers = self.agent.act(observations)
        self._usage.append(self.agent.usage)
        return answers

    def for_step(self) -> LanguagePlayer:
        """The player of one step: what it answers is what it learns from, whatever is answered beside."""
        return self

    def take_usage(self) -> Usage:
        """What the answers since the last call of this method took."""
        used, self._usage = self._usage, []
        return total(used)

    def close(self) -> None:
        """Remove what lies on the disk for it. It cannot learn afterwards."""


def total(usages: Sequence[Usage]) -> Usage:
    """What several batches of answers took."""
    return Usage(*map(sum, zip(*map(dataclasses.astuple, usages), strict=True)))


class FrozenLanguagePlayer(LanguagePlayer, FixedAgent):
    """A language model that plays but does not learn."""

    def save(self, path: Path) -> None:
        """Write how far its random numbers are used up."""
        self.agent.save(path)

    def load(self, path: Path) -> None:
        """Restore what `save` wrote."""
        self.agent.load(path)
