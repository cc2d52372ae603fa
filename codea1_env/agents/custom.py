"""Players of your own: what they are made from, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from codea1_env.agents.pools import Pool
from codea1_env.agents.protocols import Agent, Learner
from codea1_env.agents.scripted import FixedAgent
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.support.plugins import find


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
        """Programs or tests of each problem that a tabular player chooses from; `pool.problem` is the problem.

        Nothing in them is held back for measuring.
        """
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
    """Make a player of your own.

    Args:
        own: An agent; a class or function that makes one, from a `Setting` if it has a parameter without default; or
            the name of any of these, as `FILE.py:NAME` or `module:NAME`.
        setting: What it is made from.

    Raises:
        ValueError: There is nothing of this name, or it is no agent.
    """
    made = find(own, "player") if isinstance(own, str) else own
    if isinstance(made, type) or (callable(made) and not hasattr(made, "act")):
        made = made(setting) if _needs_setting(made) else made()
    if not callable(getattr(made, "act", None)):
        raise ValueError(f"Expect {own} to be an agent, actually: it has no method act")
    return made  # type: ignore[no-any-return]  # checked just now


def _needs_setting(make: Callable[..., Any]) -> bool:
    needed = [
        each.name
        for each in inspect.signature(make).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if len(needed) > 1:
        raise ValueError(
            f"Expect {make} to make a player from a Setting or from nothing, actually it needs: {', '.join(needed)}"
        )
    return bool(needed)


class FixedPlayer(FixedAgent):
    """An agent that does not learn, in a place where others do."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Answer as the agent does."""
        return self.agent.act(observations)


def as_learner(agent: Agent) -> Learner:
    """Let an agent take part in training; without a method `learn` it stays as it is.

    Raises:
        ValueError: It learns, but cannot be saved or loaded.
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
