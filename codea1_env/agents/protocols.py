"""What a player and a learning player must offer, and how players of your own are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from codea1_env.agents.scripted import FixedAgent
from codea1_env.agents.tabular import Pool
from codea1_env.rollout import Agent, Experience
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.support.plugins import explained, find, required_parameters


class Learner(Agent, Protocol):
    """A player that the training loop can teach, save and restore."""

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Learn from the answers of one step. Return metrics, whose names the loop prefixes with the role."""
        ...

    def save(self, path: Path) -> None:
        """Write all state, random generators included, into the existing folder `path`: equal state as equal files."""
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


@dataclass(frozen=True)
class Setting:
    """What a player of your own is made from, if its class has a parameter."""

    role: Literal["coder", "tester"]
    num_tests: int
    """Tests of a suite that count."""
    learning_rate: float
    """The step size that tabular players of this role have."""
    seed: int
    """Seed of the player's random choices."""
    sandbox: Sandbox
    make_pools: Callable[[], Sequence[Pool]]
    """Makes `pools`, which costs something."""

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Programs or tests of each problem that a tabular player chooses from, without what is held back for measuring."""
        return tuple(self.make_pools())

    @property
    def draws(self) -> int:
        """Items of one answer: one program, or `num_tests` tests."""
        return 1 if self.role == "coder" else self.num_tests

    @property
    def rng(self) -> np.random.Generator:
        """A new generator from the seed."""
        return np.random.default_rng(self.seed)


def own_player(own: Any, setting: Setting) -> Agent:
    """Make a player of your own, from what it may be made from.

    It is an agent; a class or function that makes one, from a `Setting` if it has a parameter without default; or the name of
    any of these, as `FILE.py:NAME` or `module:NAME`. Raises a ValueError if there is none, or it raises, or it is no agent.
    """
    made = find(own, "player") if isinstance(own, str) else own
    if isinstance(made, type) or (callable(made) and not hasattr(made, "act")):
        needed = required_parameters(made)
        if len(needed) > 1:
            raise ValueError(
                f"Expect {made} to make a player from a Setting or from nothing, actually it needs: {', '.join(needed)}"
            )
        kind = made if isinstance(made, type) else type(made)
        with explained(kind, "__init__", ValueError):
            made = made(setting) if needed else made()
    if not callable(getattr(made, "act", None)):
        raise ValueError(f"Expect {own} to be an agent, actually: it has no method act")
    return made  # type: ignore[no-any-return]  # checked just now


class FixedPlayer(FixedAgent):
    """An agent that does not learn, in a place where others do."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Answer as the agent does."""
        return self.agent.act(observations)


def as_learner(agent: Agent) -> Learner:
    """Let an agent take part in training; without a method `learn` it stays as it is.

    Raises a ValueError if it learns, but cannot be saved or loaded.
    """
    if not hasattr(agent, "learn"):
        return FixedPlayer(agent)
    missing = [name for name in ("save", "load") if not hasattr(agent, name)]
    if missing:
        raise ValueError(
            f"Expect a player that learns to have save and load, for checkpoints, actually: {type(agent).__name__} "
            f"has no {' and no '.join(missing)}"
        )
    return agent  # type: ignore[return-value]  # checked just now
