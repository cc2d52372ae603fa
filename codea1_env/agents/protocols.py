"""What a player and a learning player must offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from codea1_env.rollout import Agent, Experience

__all__ = ["Agent", "Experience", "Learner"]


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
