"""What a player and a learning player must offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from codea1_env.rollout import Agent, Experience

__all__ = ["Agent", "Experience", "Imitator", "Learner"]


class Learner(Agent, Protocol):
    """A player that the training loop can teach, save and restore."""

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn from the answers of one step. Return metrics, whose names the loop prefixes with the role."""
        ...

    def save(self, path: Path) -> None:
        """Write all state, random generators included, into the existing folder `path`.

        Equal state must give equal files: a resumed run is compared with an uninterrupted one byte by byte.
        """
        ...

    def load(self, path: Path) -> None:
        """Restore what `save` wrote, so that the player goes on as if nothing had happened."""
        ...


@runtime_checkable
class Imitator(Protocol):
    """A player that can also learn from answers which are not its own: supervised fine-tuning."""

    def imitate(self, demonstrations: Sequence[Experience]) -> Mapping[str, float]:
        """Make answers like these likelier. Their rewards and groups say nothing. Return metrics."""
        ...
