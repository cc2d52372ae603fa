"""The algorithms of a run's players: made from its settings, which must not contradict them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from codea1_env.agents import make_algorithm
from codea1_env.agents.algorithms import Player
from codea1_env.agents.llm.prompts import make_wording
from codea1_env.support.plugins import find

if TYPE_CHECKING:
    from codea1_env.training.config import TrainConfig


OF_TRAINER = ("epsilon", "epsilon_high", "beta", "loss_type", "num_iterations")
"""Fields of a trainer that are settings of the run, by the same names."""


def who_needs_one(config: TrainConfig) -> list[str]:
    """Return the roles whose player learns by an algorithm; of a language model in both, the coder's settings count."""
    found = []
    for role in ("coder", "tester"):
        block = config.player(role)
        learns = not (block.freeze or (config.self_play and role == "tester"))
        # A table that only plays, or imitates, is made with an algorithm all the same.
        if block.player == "tabular" or (block.player == "llm" and learns):
            found.append(role)
    return found


def algorithm_of(config: TrainConfig, role: str) -> Any:
    """Make the algorithm of a player.

    Raises:
        ValueError: There is none of this name for such a player, or a setting contradicts it.
    """
    block, name = config.player(role), config.algorithm_of(role)
    settings = dataclasses.asdict(config) | {"learning_rate": block.learning_rate}
    learner: Player = "llm" if block.player == "llm" else "tabular"
    algorithm = make_algorithm(name, settings, learner, config.algorithm_args)
    defaults = {each.name: each.default for each in dataclasses.fields(config)}
    for field, own in getattr(algorithm, "trainer", {}).items():
        if field not in OF_TRAINER:
            continue
        said = settings[field]
        if said not in (own, defaults[field]):
            raise ValueError(
                f"Expect {field} to be left to the algorithm {name!r}, which says {own!r}, actually: {said!r}. For a "
                f"language model {field} in [{role}.trainer] goes before the algorithm; else choose algorithm 'grpo'."
            )
    return algorithm


def check_algorithms(config: TrainConfig, *, files: bool) -> None:
    """Make the algorithms of all players, to be thrown away.

    Raises:
        ValueError: One cannot be made, or teaches other players than the run's.
    """
    for role in who_needs_one(config):
        if ":" in config.algorithm_of(role) and not files:
            continue
        try:
            algorithm_of(config, role)
        except ValueError as error:
            raise ValueError(f"{role}.algorithm: {error}") from error


def check_own_code(config: TrainConfig) -> None:
    """Load the players, algorithms and prompts of the user's that a run names, to be thrown away.

    Raises:
        ValueError: There is no such file or name, or it is no algorithm. The message names the setting.
    """
    make_wording(config.prompts, config.num_tests, config.tester_examples)
    for role in ("coder", "tester"):
        if ":" in config.player(role).player:
            try:
                find(config.player(role).player, "player")
            except ValueError as error:
                raise ValueError(f"{role}.player: {error}") from error
    check_algorithms(config, files=True)
