"""The settings of a training run, what in them contradicts each other, and the algorithms that they name."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pydantic.dataclasses
from pydantic import model_validator

from codea1_env.agents import make_algorithm
from codea1_env.agents.algorithms import ALGORITHMS, Player, no_algorithm
from codea1_env.agents.llm.prompts import WORDINGS, make_wording, no_wording
from codea1_env.agents.opponents import SCRIPTED
from codea1_env.mistake_book import MAX_TESTS
from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig, find_reward
from codea1_env.sandbox import Limits
from codea1_env.support.plugins import find
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
from codea1_env.training.settings import STRICT, flat, in_one_line

__all__ = ["PlayerConfig", "PlayerError", "RunError", "TesterConfig", "TrackerName", "TrainConfig"]

CODERS = ("tabular", "llm", *SCRIPTED["coder"])
TESTERS = ("tabular", "llm", *SCRIPTED["tester"])
OF_RAY: dict[str, Any] = {
    "address": "local", "coder.devices": 1, "coder.writers": None, "tester.devices": 1, "tester.writers": None,
}  # fmt: skip
"""Settings that only Ray has a use for, as they are without it."""


class Devices(NamedTuple):
    """How many devices of a language model do what."""

    learn: int
    write: int
    """With an engine each, beside those that learn; 0 where what learns writes, too."""


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

    Raises a ValueError if a value is of a wrong type or out of its range, or contradicts another.

    Example:
        >>> TrainConfig(max_steps=10, tester=TesterConfig("golden")).tester.learning_rate
        16.0
    """

    coder: PlayerConfig = field(default_factory=PlayerConfig)
    """The player who writes programs."""
    tester: TesterConfig = field(default_factory=TesterConfig)
    """The player who writes tests."""

    def __new__(cls, *_: object, **settings: object) -> Self:
        """Say where objects go that play."""
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
        for contradiction in contradictions(self):
            raise ValueError(contradiction)
        check_algorithms(self, files=False)  # files are loaded once, when the run begins
        return self

    @property
    def stale_steps(self) -> int | None:
        """What the Mistake Book takes for `stale_after`."""
        return None if self.strict_paper else self.stale_after

    @property
    def page_size(self) -> int | None:
        """What the Mistake Book takes for `max_tests_per_problem`."""
        released = self.strict_paper and self.max_tests_per_problem == MAX_TESTS
        return None if released else self.max_tests_per_problem

    @property
    def kept_programs(self) -> int:
        """Programs of each problem and step that episodes.jsonl keeps."""
        all_of_them = self.num_generations if self.has_language_model else 1
        return self.logged_programs or all_of_them

    @property
    def spars(self) -> bool:
        """Whether the tester meets planted faults: a language model that learns from rewards."""
        tester = self.tester
        learns = tester.objective == "rewards" and not tester.freeze
        return self.sparring > 0 and tester.player == "llm" and learns

    def player(self, role: str) -> PlayerConfig:
        """Return the block of a role; that of the coder for one model in both ("model")."""
        return self.tester if role == "tester" else self.coder

    def model_of(self, role: str) -> str:
        """Return the language model of a role."""
        return self.player(role).model or self.model

    def devices_of(self, role: str) -> Devices:
        """Return how the devices of a language model are divided: with vLLM half of them write, if the settings do not say."""
        own, vllm = self.player(role), self.backend == "vllm"
        if own.freeze and vllm and own.devices > 1:
            return Devices(0, own.devices)
        write = own.writers if own.writers is not None else own.devices // 2 if vllm else 0
        return Devices(own.devices - write, write)

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


def contradictions(config: TrainConfig) -> Iterator[str]:
    """Say which settings do not suit each other, and what to do."""
    for role, known in (("coder", CODERS), ("tester", TESTERS)):
        yield from _of_player(config, role, config.player(role), known)
    yield from _of_algorithm("algorithm", config.algorithm)
    if config.prompts not in WORDINGS and ":" not in config.prompts:
        yield no_wording(config.prompts)
    if config.backend == "server" and config.lora_rank == 0:
        yield (
            "Expect backend to be 'transformers' or 'vllm' if all weights are trained (lora_rank = 0), actually: 'server', "
            "which takes new adapters after an update, no new weights. Set lora_rank to the rank of adapters, such as 16, or "
            "leave backend out."
        )
    yield from _of_ray(config)
    yield from _of_opponents(config)
    if config.tester_rounds == "first" and config.max_rounds == 1:
        yield (
            "Expect max_rounds above 1 with tester_rounds='first', which says nothing about a single round, actually: "
            "max_rounds=1. Raise max_rounds, or leave tester_rounds out."
        )
    if config.tester.objective == "golden-tests" and config.tester.player == "llm":
        yield (
            "Expect tester.objective='rewards' (the baseline 'sft' sets 'golden-tests') for a language model, actually: "
            "'golden-tests'. examples/sft_tester.py trains one on golden tests with TRL's SFTTrainer."
        )
    if config.self_play:
        yield from _of_self_play(config)


def _of_player(
    config: TrainConfig, role: str, block: PlayerConfig, known: tuple[str, ...]
) -> Iterator[str]:
    if block.player not in known and ":" not in block.player:
        yield (
            f"Expect {role}.player to be one of {', '.join(map(repr, known))}, or FILE.py:NAME, actually: "
            f"{block.player!r}. A language model is 'llm', with its name or folder as {role}.model."
        )
    name, rate = f"{role}.learning_rate", block.learning_rate
    if "learning_rate" in block.trainer:  # which goes before
        name, rate = f"{role}.trainer.learning_rate", block.trainer["learning_rate"]
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not (block.freeze and rate == 0) and not (number and 0 < rate < math.inf):
        remedy = f". A player that is not to learn: {role}.freeze = true" if rate == 0 else ""
        yield f"Expect {name} to be a finite number greater than 0, actually: {rate!r}{remedy}"
    elif block.player == "llm" and rate > 0.1:
        yield (
            f"Expect {name} to be far below 0.1 for a language model (1e-6 for all weights, 1e-4 for adapters), "
            f"actually: {rate!r}. A preset such as smollm2-cpu sets what it needs."
        )
    yield from _of_algorithm(f"{role}.algorithm", block.algorithm)
    for setting in OF_TRAINER:
        value = block.trainer.get(setting)  # another type is named with the trainer's configuration
        least, most = (1, 1024) if setting == "num_iterations" else (0, math.inf)
        if isinstance(value, (int, float)) and not (least <= value <= most and value < math.inf):
            yield f"Expect {role}.trainer.{setting} to be from {least} to {most}, actually: {value!r}"
    if block.player == "llm" and not block.freeze:
        try:
            block.sampling.check_for_learning()
        except ValueError as error:
            yield f"{role}.sampling: {error}"


def _of_algorithm(place: str, name: str | None) -> Iterator[str]:
    if name is not None and name not in ALGORITHMS and ":" not in name:
        yield no_algorithm(place, name)


def _of_ray(config: TrainConfig) -> Iterator[str]:
    values = flat(config)
    for name, default in OF_RAY.items():
        if config.engine != "ray" and values[name] != default:
            yield (
                f"Expect {name} with engine='ray', actually: {name}={values[name]!r} and engine="
                f"{config.engine!r}. Set engine to 'ray', or {name} to {default!r}."
            )
    named = re.fullmatch(r"[^/\s]+:(\d{1,5})", config.address)
    if config.address not in ("local", "auto") and not (named and 0 < int(named[1]) < 2**16):
        yield (
            "Expect address to be 'local', 'auto', or HOST:PORT of the head of a Ray cluster, with a port from 1 to 65535, "
            f"actually: {config.address!r}."
        )
    for role in ("coder", "tester"):
        own, (learn, write) = config.player(role), config.devices_of(role)
        given = (own.devices, own.writers) != (1, None)
        if config.self_play and role == "tester" and given:
            yield (
                "Expect no tester.devices and tester.writers with self_play, whose one model has those of the coder, actually: "
                f"tester.devices={own.devices}, tester.writers={own.writers}. Leave them out."
            )
        if own.player != "llm" and given:
            yield (
                f"Expect {role}.devices and {role}.writers of a language model, actually: {role}.player={own.player!r}. Leave them out."
            )
        if own.player != "llm" or own.freeze:
            continue
        if learn < 1:
            yield (
                f"Expect {role}.writers to leave a device to learn on, actually: {own.writers} of {role}.devices="
                f"{own.devices}. Lower {role}.writers, or raise {role}.devices."
            )
        elif config.backend == "vllm" and learn > 1 and not write:
            yield (
                f"Expect {role}.writers of at least 1 with backend='vllm' and {learn} devices that learn, actually: 0, so that "
                f"each would start an engine. Leave {role}.writers out, or set backend to 'transformers'."
            )
        elif config.backend == "server" and write:
            yield (
                f"Expect no {role}.writers with backend='server', which writes, actually: {write}. Leave {role}.writers out."
            )


def _of_opponents(config: TrainConfig) -> Iterator[str]:
    if config.opponents != "past":
        return
    if config.self_play or config.engine == "ray":
        yield (
            "Expect opponents='past' with two players in this process, actually: "
            f"self_play={config.self_play}, engine={config.engine!r}. Leave one of the settings out."
        )
    if config.past_steps >= config.max_steps:
        yield (
            f"Expect past_steps to be below max_steps, or there is no past but the untrained players, actually: "
            f"{config.past_steps} and {config.max_steps}. Lower past_steps."
        )


def _of_self_play(config: TrainConfig) -> Iterator[str]:
    coder, tester = config.coder, config.tester
    if coder.player != tester.player or coder.freeze or tester.freeze:
        yield (
            f"Expect self_play with the same kind of learning player in both roles, actually: coder.player="
            f"{coder.player!r}, tester.player={tester.player!r}, coder.freeze={coder.freeze}, "
            f"tester.freeze={tester.freeze}. Change these, or leave self_play out."
        )
    if tester.objective != "rewards":
        yield (
            f"Expect tester.objective='rewards' with self_play, actually: {tester.objective!r}. One "
            "model learns from what both roles earn; leave one of the two settings out."
        )
    # A trainer has one size of groups for all that it learns from.
    one_size = config.num_generations == config.num_suites
    if coder.player == "llm" and not (one_size and tester.model is None):
        yield (
            f"Expect one model and groups of one size for self_play of a language model, actually: "
            f"num_generations={config.num_generations}, num_suites={config.num_suites}, tester.model="
            f"{tester.model!r}. Set num_suites to num_generations, and no tester.model."
        )


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

    Raises a ValueError if there is none of this name for such a player, or a setting contradicts it.
    """
    block, name = config.player(role), config.algorithm_of(role)
    settings = dataclasses.asdict(config) | {"learning_rate": block.learning_rate}
    learner: Player = "llm" if block.player == "llm" else "tabular"
    algorithm = make_algorithm(name, settings, learner, config.algorithm_args)
    defaults = {each.name: each.default for each in dataclasses.fields(config)}
    for key, own in getattr(algorithm, "trainer", {}).items():
        if key in OF_TRAINER and (said := settings[key]) not in (own, defaults[key]):
            raise ValueError(
                f"Expect {key} to be left to the algorithm {name!r}, which says {own!r}, actually: {said!r}. For a "
                f"language model {key} in [{role}.trainer] goes before the algorithm; else choose algorithm 'grpo'."
            )
    return algorithm


def check_algorithms(config: TrainConfig, *, files: bool) -> None:
    """Raise a ValueError if the algorithm of a player cannot be made, or teaches other players than the run's."""
    for role in who_needs_one(config):
        if ":" in config.algorithm_of(role) and not files:
            continue
        try:
            algorithm_of(config, role)
        except ValueError as error:
            raise ValueError(f"{role}.algorithm: {error}") from error


def check_own_code(config: TrainConfig) -> None:
    """Raise a ValueError that names the setting if a player, algorithm or prompts of the user's are not there, or are none."""
    make_wording(config.prompts, config.num_tests, config.tester_examples)
    for role in ("coder", "tester"):
        if ":" in config.player(role).player:
            try:
                find(config.player(role).player, "player")
            except ValueError as error:
                raise ValueError(f"{role}.player: {error}") from error
    check_algorithms(config, files=True)
