"""Makes the players that a configuration names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from codea1_env import agents
from codea1_env.agents import Agent, Learner
from codea1_env.agents.llm.agent import LanguagePlayer, Usage
from codea1_env.agents.llm.completions import Message
from codea1_env.agents.opponents import SCRIPTED, scripted
from codea1_env.evaluation import HeldOut, train_cases
from codea1_env.problems import Problem
from codea1_env.rollout import RolloutEpisode
from codea1_env.sandbox import Sandbox
from codea1_env.training.config import RunError, TrainConfig, algorithm_of
from codea1_env.training.language_models import Models
from codea1_env.training.trainer_arguments import Role

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

    def take_usage(self) -> dict[str, Usage]:
        """Role -> what the answers of a language model took since the last call."""
        one = self.coder is self.tester
        roles = {"model": self.coder} if one else {"coder": self.coder, "tester": self.tester}
        return {
            role: player.take_usage()
            for role, player in roles.items()
            if isinstance(player, LanguagePlayer)
        }

    def chats(self, episode: RolloutEpisode) -> dict[str, list[Message]]:
        """Chats that language models were shown: `prompt` the coder, `test_prompt` the tester."""
        shown = {
            "prompt": (self.coder, episode.coder_observation),
            "test_prompt": (self.tester, episode.tester_observation),
        }
        return {
            name: player.agent.chat(observation)
            for name, (player, observation) in shown.items()
            if isinstance(player, LanguagePlayer)
        }


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

    `splits` takes a while for many problems: only players that need tests or mutants ask for them.
    """
    make = _Makers(config, problems, splits, sandbox, models)
    if config.self_play:
        if coder or tester:
            raise RunError("self_play trains one model in both roles: leave out coder and tester.")
        one = make.language_model("model") or make.one_model()
        return Players(one, one, coder_learns=True, tester_learns=True)
    coder = make.own(coder, "coder") or make.language_model("coder") or make.coder()
    tester = make.own(tester, "tester") or make.language_model("tester") or make.tester()
    if config.tester.objective == "golden-tests" and not isinstance(tester, agents.Imitator):
        raise RunError(
            f"Expect a tester with a method imitate for tester.objective='golden-tests', actually: "
            f"{type(tester).__name__}. Use the tester 'tabular', or tester.objective='rewards'."
        )
    return Players(
        coder,
        tester,
        coder_learns=not (config.coder.freeze or isinstance(coder, agents.FixedAgent)),
        tester_learns=not (config.tester.freeze or isinstance(tester, agents.FixedAgent)),
    )


def seed_of(config: TrainConfig, role: Role) -> int:
    """Return the seed of a role's player: from the seed of the run and a stream of random numbers, 0 or 1."""
    sequence = np.random.SeedSequence([config.seed, int(role == "tester")])
    return int(sequence.generate_state(1, np.uint64)[0])


@dataclass(frozen=True)
class _Makers:
    config: TrainConfig
    problems: Sequence[Problem]
    splits: Splits
    sandbox: Sandbox
    models: Models

    def language_model(self, role: Role) -> Learner | None:
        if self.config.player(role).player != "llm":
            return None
        return self.models.player(role, seed_of(self.config, role))

    def own(self, player: OwnPlayer | None, role: Literal["coder", "tester"]) -> Learner | None:
        """Return a player of your own: the one that is given, or that the configuration names."""
        block = self.config.player(role)
        own = player if player is not None else block.player if ":" in block.player else None
        if own is None:
            return None
        setting = agents.Setting(
            role,
            self.config.num_tests,
            block.learning_rate,
            seed_of(self.config, role),
            self.sandbox,
            self.programs if role == "coder" else self.tests,
        )
        try:
            return agents.as_learner(agents.own_player(own, setting))
        except ValueError as error:
            raise RunError(str(error)) from error

    def coder(self) -> Learner:
        seed = seed_of(self.config, "coder")
        name = self.config.coder.player
        if name in SCRIPTED["coder"]:
            return scripted(name, self.problems, self.sandbox, seed, self.config.num_tests)
        algorithm = self.algorithm("coder")
        return agents.TabularAgent(self.programs(), algorithm, np.random.default_rng(seed))

    def tester(self) -> Learner:
        config, seed = self.config, seed_of(self.config, "tester")
        if config.tester.player in SCRIPTED["tester"]:
            # Tests that are held back measure the coder: no tester may know them.
            known = [
                dataclasses.replace(
                    each,
                    cases=train_cases(each, config.seed)[: config.golden_tests],
                    base=0,
                    test_module="",
                )
                for each in self.problems
            ]
            return scripted(config.tester.player, known, self.sandbox, seed, config.num_tests)
        rng = np.random.default_rng(seed)
        return agents.TabularAgent(
            self.tests(), self.algorithm("tester"), rng, draws=config.num_tests
        )

    def one_model(self) -> agents.TabularSelfPlayer:
        return agents.TabularSelfPlayer(
            self.programs(),
            self.tests(),
            self.sandbox,
            self.algorithm("coder"),
            self.algorithm("tester"),
            np.random.default_rng(seed_of(self.config, "coder")),
            draws=self.config.num_tests,
        )

    def programs(self) -> list[agents.Pool]:
        return [agents.pool_of_programs(split, self.config.pool_size) for split in self.splits()]

    def tests(self) -> list[agents.Pool]:
        """Tests that a tabular tester chooses from, for each problem. Raises a RunError if no problem has as many tests as a suite is to have."""
        size, seed = 2 * self.config.pool_size, self.config.seed
        pools = [
            agents.pool_of_tests(each, self.sandbox, size=size, seed=seed) for each in self.splits()
        ]
        if (most := max(len(pool.items) for pool in pools)) < self.config.num_tests:
            raise RunError(
                f"Expect num_tests to be at most {most}, the tests in the largest pool, actually: {self.config.num_tests}"
            )
        return pools

    def algorithm(self, role: Role) -> agents.Algorithm:
        try:
            return algorithm_of(self.config, role)  # type: ignore[no-any-return]
        except ValueError as error:
            raise RunError(str(error)) from error
