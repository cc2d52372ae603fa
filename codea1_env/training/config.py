"""The settings of a training run: what both players share, and a block for each of them."""

from __future__ import annotations

from dataclasses import field
from typing import Self

import pydantic.dataclasses
from pydantic import model_validator

from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig, find_reward
from codea1_env.sandbox import Limits
from codea1_env.training.algorithms import check_algorithms
from codea1_env.training.contradictions import contradictions
from codea1_env.training.reward_model import find_reward_model
from codea1_env.training.setting_groups import (
    EngineSettings,
    GameSettings,
    LanguageModelSettings,
    LearningSettings,
    MeasuringSettings,
    PlayerConfig,
    TesterConfig,
    TrackerName,
)
from codea1_env.training.settings import STRICT, in_one_line, moved_names

__all__ = ["PlayerConfig", "PlayerError", "RunError", "TesterConfig", "TrackerName", "TrainConfig"]


class RunError(ValueError):
    """A run cannot be started or resumed as asked. The message says what to do instead."""


class PlayerError(RuntimeError):
    """A player failed in the middle of a run. The message says why, and where the run can be resumed."""


@in_one_line
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT)
class TrainConfig(
    LanguageModelSettings, EngineSettings, MeasuringSettings, LearningSettings, GameSettings
):
    """Everything that decides what a training run does. Names follow TRL and the paper.

    Raises:
        ValueError: A value is of a wrong type or out of its range, or contradicts another.

    Example:
        >>> TrainConfig(max_steps=10, tester=TesterConfig("golden")).tester.learning_rate
        16.0
    """

    coder: PlayerConfig = field(default_factory=PlayerConfig)
    """The player who writes programs."""
    tester: TesterConfig = field(default_factory=TesterConfig)
    """The player who writes tests."""

    def __new__(cls, *_: object, **settings: object) -> Self:
        """Say what a setting of an older version is called now, and where objects go that play."""
        if moved := moved_names(settings):
            raise TypeError(
                f"{moved}: TrainConfig(coder=PlayerConfig(...), tester=TesterConfig(...))"
            )
        for role, block in (("coder", PlayerConfig), ("tester", TesterConfig)):
            value = settings.get(role, block())
            if not (type(value) is block and isinstance(value.player, str)):
                raise TypeError(
                    f"Expect {role} to be a {block.__name__} whose player is a str, actually: {value!r:.200}; hand players "
                    "of yours to train(config, coder=..., tester=...)"
                )
        return super().__new__(cls)

    @model_validator(mode="after")
    def _has_no_contradictions(self) -> Self:
        find_reward(self.rewards)
        if self.reward_model is not None:
            find_reward_model(self.reward_model)
        for contradiction in contradictions(self):
            raise ValueError(contradiction)
        check_algorithms(self, files=False)  # files are loaded once, when the run begins
        return self

    @property
    def stale_steps(self) -> int | None:
        """What the Mistake Book takes for `stale_after`."""
        return None if self.strict_paper else self.stale_after

    def player(self, role: str) -> PlayerConfig:
        """Return the block of a role; that of the coder for one model in both ("model")."""
        return self.tester if role == "tester" else self.coder

    def model_of(self, role: str) -> str:
        """Return the language model of a role."""
        return self.player(role).model or self.model

    def algorithm_of(self, role: str) -> str:
        """Return the name of a player's algorithm."""
        return self.player(role).algorithm or self.algorithm

    @property
    def has_language_model(self) -> bool:
        """Whether a language model plays."""
        return "llm" in (self.coder.player, self.tester.player)


def rules_of(config: TrainConfig) -> RefereeConfig:
    """Return how a run judges and pays."""
    rewards = RewardConfig(config.alpha, config.num_tests, config.strict_paper, config.rewards)
    limits = Limits(call_cpu_time=config.time_limit)
    return RefereeConfig(rewards, wrong_oracle=config.wrong_oracle, limits=limits)
