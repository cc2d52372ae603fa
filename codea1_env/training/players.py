"""Makes the players that a configuration names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from codea1_env.agents import (
    Agent,
    Algorithm,
    BoundaryTester,
    CopierTester,
    FixedAgent,
    GoldenTester,
    Imitator,
    Learner,
    MutantCoder,
    Pool,
    ReferenceCoder,
    Setting,
    TabularAgent,
    TabularSelfPlayer,
    as_learner,
    own_player,
    pool_of_programs,
    pool_of_tests,
)
from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.language_player import LanguagePlayer
from codea1_env.evaluation import HeldOut, train_tests
from codea1_env.problems import Problem
from codea1_env.rollout import RolloutEpisode
from codea1_env.sandbox import Sandbox
from codea1_env.training.algorithms import algorithm_of
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import Models, Role

_CODER, _TESTER = 0, 1
"""Streams of random numbers: the seed of a player is (seed of the run, stream)."""


Splits = Callable[[], Sequence[HeldOut]]
"""Gives all problems of a run with their tests and mutants, and computes them once."""

OwnPlayer = Agent | Callable[..., Agent]
"""A player of your own, or what makes it: see `codea1_env.agents.own_player`."""


@dataclass(frozen=True)
class Players:
    """Both players, and which of them learn."""

    coder: Learner
    tester: Learner
    coder_learns: bool
    tester_learns: bool

    def for_step(self) -> Players:
        """The players of one step: what these answer is what they learn from, whatever is answered beside."""
        coder = _for_step(self.coder)
        tester = coder if self.tester is self.coder else _for_step(self.tester)
        return dataclasses.replace(self, coder=coder, tester=tester)

    def take_usage(self) -> dict[str, Usage]:
        """Role -> what the answers of a language model took since the last call."""
        if self.coder is self.tester:
            roles = {"model": self.coder}
        else:
            roles = {"coder": self.coder, "tester": self.tester}
        return {
            role: player.take_usage()
            for role, player in roles.items()
            if isinstance(player, LanguagePlayer)
        }

    def chats(self, episode: RolloutEpisode) -> dict[str, list[Message]]:
        """What language models were shown: `prompt` the coder, `test_prompt` the tester."""
        shown = {
            "prompt": (self.coder, episode.coder_observation),
            "test_prompt": (self.tester, episode.tester_observation),
        }
        return {
            name: player.agent.chat(observation)
            for name, (player, observation) in shown.items()
            if isinstance(player, LanguagePlayer)
        }


def _for_step(player: Learner) -> Any:
    return player.for_step() if isinstance(player, LanguagePlayer) else player


def make_players(
    config: TrainConfig,
    problems: Sequence[Problem],
    splits: Splits,
    sandbox: Sandbox,
    *,
    coder: OwnPlayer | None = None,
    tester: OwnPlayer | None = None,
    models: Models,
) -> Players:
    """Make the players of a run; a given one takes the place of the one that the configuration names.

    Args:
        config: The run.
        problems: What is trained on.
        splits: Gives the problems with their tests and mutants; only asked by players that need them, which takes a
            while for many problems.
        sandbox: Where programs run.
        coder: See `train`.
        tester: See `train`.
        models: The language models of the run.
    """
    if config.self_play:
        if coder or tester:
            raise RunError("Expect no player of your own with self_play, which has one model.")
        one = make_language_model(config, "model", models) or _make_one_model(
            config, splits, sandbox
        )
        return Players(one, one, coder_learns=True, tester_learns=True)
    coder = (
        _own(coder, "coder", config, splits, sandbox)
        or make_language_model(config, "coder", models)
        or _make_coder(config, problems, splits, sandbox)
    )
    tester = (
        _own(tester, "tester", config, splits, sandbox)
        or make_language_model(config, "tester", models)
        or _make_tester(config, problems, splits, sandbox)
    )
    if config.tester.objective == "golden-tests" and not isinstance(tester, Imitator):
        raise RunError(
            f"Expect a tester with a method imitate for tester.objective='golden-tests', actually: "
            f"{type(tester).__name__}. Use a tester that learns, of tables or a language model, or "
            "tester.objective='rewards'."
        )
    return Players(
        coder,
        tester,
        coder_learns=not (config.coder.freeze or isinstance(coder, FixedAgent)),
        tester_learns=not (config.tester.freeze or isinstance(tester, FixedAgent)),
    )


def make_language_model(config: TrainConfig, role: Role, models: Models) -> Learner | None:
    """Make the player of a role, if the configuration says that it is a language model."""
    if config.player(role).player != "llm":
        return None
    return models.player(role, seed_of(config, role))


def seed_of(config: TrainConfig, role: Role) -> int:
    """The seed of a role's language model."""
    return _seed(config, _TESTER if role == "tester" else _CODER)


def _own(
    player: OwnPlayer | None,
    role: Literal["coder", "tester"],
    config: TrainConfig,
    splits: Splits,
    sandbox: Sandbox,
) -> Learner | None:
    """A player of your own: the one that is given, or that the configuration names."""
    is_coder = role == "coder"
    name = config.player(role).player
    own = player if player is not None else name if ":" in name else None
    if own is None:
        return None

    def pools() -> list[Pool]:
        if is_coder:
            return [pool_of_programs(split, config.pool_size) for split in splits()]
        return _pools_of_tests(config, splits, sandbox)

    rate = config.player(role).learning_rate
    seed = _seed(config, _CODER if is_coder else _TESTER)
    setting = Setting(role, config.num_tests, rate, seed, sandbox, pools)
    try:
        return as_learner(own_player(own, setting))
    except ValueError as error:
        raise RunError(str(error)) from error


def _make_coder(
    config: TrainConfig, problems: Sequence[Problem], splits: Splits, sandbox: Sandbox
) -> Learner:
    seed = _seed(config, _CODER)
    if config.coder.player == "reference":
        return ReferenceCoder(problems, seed)
    if config.coder.player == "mutant":
        return MutantCoder(problems, sandbox, seed)
    pools = [pool_of_programs(split, config.pool_size) for split in splits()]
    return TabularAgent(pools, _algorithm(config, "coder"), np.random.default_rng(seed))


def _make_tester(
    config: TrainConfig, problems: Sequence[Problem], splits: Splits, sandbox: Sandbox
) -> Learner:
    seed = _seed(config, _TESTER)
    if config.tester.player == "copier":
        return CopierTester(config.num_tests)
    # Tests that are held back measure the coder: no tester may know them.
    known = [
        dataclasses.replace(each, tests=train_tests(each, config.seed)[: config.golden_tests])
        for each in problems
    ]
    if config.tester.player == "golden":
        return GoldenTester(known, config.num_tests, seed)
    if config.tester.player == "boundary":
        return BoundaryTester(known, sandbox, config.num_tests, seed)
    pools = _pools_of_tests(config, splits, sandbox)
    algorithm = _algorithm(config, "tester")
    return TabularAgent(pools, algorithm, np.random.default_rng(seed), draws=config.num_tests)


def _make_one_model(config: TrainConfig, splits: Splits, sandbox: Sandbox) -> TabularSelfPlayer:
    return TabularSelfPlayer(
        [pool_of_programs(split, config.pool_size) for split in splits()],
        _pools_of_tests(config, splits, sandbox),
        sandbox,
        _algorithm(config, "coder"),
        _algorithm(config, "tester"),
        np.random.default_rng(_seed(config, _CODER)),
        draws=config.num_tests,
    )


def _pools_of_tests(config: TrainConfig, splits: Splits, sandbox: Sandbox) -> list[Pool]:
    size = 2 * config.pool_size
    return [pool_of_tests(split, sandbox, size=size, seed=config.seed) for split in splits()]


def _algorithm(config: TrainConfig, role: Role) -> Algorithm:
    try:
        made: Algorithm = algorithm_of(config, role)
        return made
    except ValueError as error:
        raise RunError(str(error)) from error


def _seed(config: TrainConfig, stream: int) -> int:
    return int(np.random.SeedSequence([config.seed, stream]).generate_state(1, np.uint64)[0])
