"""What the values of a `TrainConfig` must be: each of its type and in its range, and all of them together."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from codea1_env.agents import ALGORITHMS
from codea1_env.training.algorithms import OF_TRAINER, check_algorithms, imitates

if TYPE_CHECKING:
    from codea1_env.training.config import PlayerConfig, TrainConfig

CODERS = ("tabular", "llm", "reference", "mutant")
TESTERS = ("tabular", "llm", "golden", "boundary", "copier")
_TYPES: dict[Any, tuple[type, str]] = {
    int: (numbers.Integral, "an integer"),
    float: (numbers.Real, "a number"),
    str: (str, "a str"),
    bool: (bool, "True or False"),
    type(None): (type(None), "None"),
}
"""Type of a field -> what its value must be."""
_POSITIVE = (
    "max_problems", "golden_tests", "threads", "generation_threads", "time_budget", "pool_size", "generation_batch",
    "lora_alpha", "problems_per_step", "num_tests", "max_tests_per_problem", "num_iterations", "max_steps",
    "eval_steps", "eval_samples", "eval_trained", "overlap", "save_steps", "save_total_limit", "time_limit", "workers",
    "learner_processes", "learner_gpus", "stale_after", "max_rounds", "past_steps",
)  # fmt: skip
_NOT_NEGATIVE = (
    "seed",
    "beta",
    "epsilon",
    "epsilon_high",
    "lora_rank",
    "eval_problems",
    "reward_model_after",
)
_FINITE = ("beta", "epsilon", "time_limit", "lora_alpha", "learner_gpus")
_COUNTS = (
    "num_generations", "num_suites", "num_tests", "eval_samples", "pool_size", "lora_rank", "overlap", "max_rounds",
)  # fmt: skip
_RANGES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (_POSITIVE, lambda value: value > 0, "to be greater than 0"),
    (
        ("num_generations", "num_suites"),
        lambda value: value >= 2,
        "to be at least 2 (answers of a group are compared with each other)",
    ),
    (_NOT_NEGATIVE, lambda value: value >= 0, "not to be negative"),
    (("alpha", "past_share"), lambda value: 0 <= value <= 1, "to be between 0 and 1"),
    (_FINITE, lambda value: value < math.inf, "to be finite"),
    (("time_limit",), lambda value: value <= 86_400, "to be at most 86400 seconds, a day"),
    # More is a slip of the hand, which would seem to hang or be out of memory at once.
    (_COUNTS, lambda value: value <= 65_536, "to be at most 65536"),
    (("num_iterations", "workers"), lambda value: value <= 1024, "to be at most 1024"),
    (("past_limit",), lambda value: value >= 2, "to be at least 2, the oldest and the newest"),
    (("max_staleness",), lambda value: value in (0, 1), "to be 0 or 1"),
)
"""Settings, whether a value is in their range, and the range in words."""
OF_RAY: dict[str, Any] = {
    "address": "auto", "learner_processes": 1, "learner_gpus": None, "max_staleness": 0,
}  # fmt: skip
"""Settings that only Ray has a use for, as they are without it."""
_CORRECTION = "vllm_importance_sampling_correction"
_OWN_PLAYERS = "; hand players of yours to train(config, coder=..., tester=...)"


def check_types(config: TrainConfig) -> None:
    """Say of which type a value must be, where Python would only say that it cannot compare it.

    Raises:
        TypeError: A value is of another type than its field.
    """
    for name, value, hint in _fields(config):
        remedy = _OWN_PLAYERS if name.partition(".")[0] in ("coder", "tester") else ""
        kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
        if dataclasses.is_dataclass(hint):
            fits, wanted = type(value) is hint, f"a {typing.cast(type, hint).__name__}"
        elif kinds <= _TYPES.keys() and not (name == "rewards" and callable(value)):
            # True is an integer to Python, not to us.
            fits = any(
                isinstance(value, _TYPES[kind][0]) and isinstance(value, bool) is (kind is bool)
                for kind in kinds
            )
            wanted = " or ".join(sorted(_TYPES[kind][1] for kind in kinds))
        else:
            continue
        if not fits:
            raise TypeError(f"Expect {name} to be {wanted}, actually: {value!r:.200}{remedy}")


def check_values(config: TrainConfig) -> None:
    """Check every value for itself.

    Raises:
        ValueError: One is out of its range.
    """
    for names, fits, wanted in _RANGES:
        for name in names:
            values = {name: getattr(config, name)}
            for role in ("coder", "tester") if name in OF_TRAINER else ():
                values[f"{role}.trainer.{name}"] = config.player(role).trainer.get(name)
            for place, value in values.items():
                # A trainer's field of another type is named when its configuration is made.
                if isinstance(value, numbers.Real) and not fits(value):
                    raise ValueError(f"Expect {place} {wanted}, actually: {value!r}")
    if config.time_budget == math.inf:
        raise ValueError(
            "Expect time_budget to be a number of minutes, actually: inf. Set max_steps instead."
        )
    for role, known in (("coder", CODERS), ("tester", TESTERS)):
        _check_learning_rates(role, config.player(role))
        _check_player(role, config.player(role).player, known)
    for name in ("algorithm", "coder.algorithm", "tester.algorithm"):
        value = attrgetter(name)(config)
        if value is not None and value not in ALGORITHMS and ":" not in value:
            raise ValueError(
                f"Expect {name} to be one of {', '.join(ALGORITHMS)}, module:Class or FILE.py:Class, actually: {value!r}"
            )
    for name, value, hint in _fields(config):
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is Literal and value not in arguments:
            raise ValueError(
                f"Expect {name} to be one of {', '.join(map(repr, arguments))}, actually: {value!r}"
            )
        choices = typing.get_args(arguments[0]) if origin is tuple else ()
        if choices and not (isinstance(value, tuple) and all(each in choices for each in value)):
            raise ValueError(
                f"Expect {name} to be a list of some of {', '.join(map(repr, choices))}, actually: {value!r}"
            )


def check_combinations(config: TrainConfig) -> None:
    """Check values that must suit each other.

    Raises:
        ValueError: They do not.
    """
    _check_language_models(config)
    _check_engine(config)
    _check_past(config)
    if config.tester_rounds == "first" and config.max_rounds == 1:
        raise ValueError(
            "Expect max_rounds above 1 with tester_rounds='first', which says nothing about a single round, actually: "
            "max_rounds=1. Raise max_rounds, or leave tester_rounds out."
        )
    if config.self_play:
        _check_self_play(config)
    check_algorithms(config, files=False)  # files are loaded once, when the run begins


def _fields(settings: Any, block: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Name, value and type of every field; a block comes before the fields in it."""
    hints = typing.get_type_hints(type(settings))
    for each in dataclasses.fields(settings):
        value, hint = getattr(settings, each.name), hints[each.name]
        yield f"{block}{each.name}", value, hint
        if dataclasses.is_dataclass(hint):
            yield from _fields(value, f"{block}{each.name}.")


def _check_player(role: str, player: str, known: tuple[str, ...]) -> None:
    if player in known or ":" in player:
        return
    remedy = f"A language model is 'llm', with its name or folder as {role}.model."
    if (Path(player) / "config.toml").is_file():
        remedy = (
            "That is the folder of a run: --resume goes on with it, and `codea1 bench cross-play` lets "
            "its players play."
        )
    raise ValueError(
        f"Expect {role}.player to be one of {', '.join(map(repr, known))}, or FILE.py:NAME, actually: {player!r}. "
        + remedy
    )


def _check_learning_rates(role: str, block: PlayerConfig) -> None:
    rates = {f"{role}.learning_rate": block.learning_rate}
    if "learning_rate" in block.trainer:
        rates[f"{role}.trainer.learning_rate"] = block.trainer["learning_rate"]
    for name, rate in rates.items():
        number = isinstance(rate, numbers.Real) and not isinstance(rate, bool)
        if not (block.freeze and rate == 0) and not (number and 0 < rate < math.inf):
            remedy = f". A player that is not to learn: {role}.freeze = true" if rate == 0 else ""
            raise ValueError(
                f"Expect {name} to be a finite number greater than 0, actually: {rate!r}{remedy}"
            )


def _check_engine(config: TrainConfig) -> None:
    if config.engine != "ray":
        for name, default in OF_RAY.items():
            if getattr(config, name) != default:
                raise ValueError(
                    f"Expect {name} with engine='ray', actually: {name}={getattr(config, name)!r} and engine="
                    f"{config.engine!r}. Set engine to 'ray', or {name} to {default!r}."
                )
        return
    blocks = {"coder": config.coder, "tester": config.tester}
    tables = [
        f"{role}.player={block.player!r}"
        for role, block in blocks.items()
        if block.player == "tabular" and not block.freeze
    ]
    if config.max_staleness and (tables or not config.has_language_model):
        raise ValueError(
            "Expect max_staleness=1 where language models alone learn (a table cannot answer while it learns), actually: "
            f"{', '.join(tables) or 'no language model'}. Set max_staleness to 0."
        )
    for role, block in blocks.items():
        if config.max_staleness and block.trainer.get(_CORRECTION) is False:
            raise ValueError(
                f"Expect max_staleness=1 with {_CORRECTION}, since answers are of older weights, actually: "
                f"{role}.trainer.{_CORRECTION}=False. Leave it out, or set max_staleness to 0."
            )
        # Who writes in a process of its own has that one's engine.
        writes = block.player == "llm" and (block.freeze or not config.max_staleness)
        if config.backend == "vllm" and config.learner_processes > 1 and writes:
            raise ValueError(
                f"Expect learner_processes=1 with backend='vllm', actually: {config.learner_processes}, of which each would "
                f"start an engine for the {role}. Set learner_processes to 1, or backend to 'transformers'; with "
                "max_staleness=1 the players that learn have one process each with vLLM."
            )


def _check_past(config: TrainConfig) -> None:
    if config.opponents != "past":
        return
    if config.self_play or config.engine == "ray" or config.max_staleness:
        raise ValueError(
            "Expect opponents='past' with two players in this process, actually: "
            f"self_play={config.self_play}, engine={config.engine!r}. Leave one of the settings out."
        )
    if config.past_steps >= config.max_steps:
        raise ValueError(
            f"Expect past_steps to be below max_steps, or there is no past but the untrained players, actually: "
            f"{config.past_steps} and {config.max_steps}. Lower past_steps."
        )


def _check_self_play(config: TrainConfig) -> None:
    coder, tester = config.coder, config.tester
    if coder.player != tester.player or coder.freeze or tester.freeze:
        raise ValueError(
            f"Expect self_play with the same kind of learning player in both roles, actually: coder.player="
            f"{coder.player!r}, tester.player={tester.player!r}, coder.freeze={coder.freeze}, "
            f"tester.freeze={tester.freeze}. Change these, or leave self_play out."
        )
    if tester.objective != "rewards":
        raise ValueError(
            f"Expect tester.objective='rewards' with self_play, actually: {tester.objective!r}. One "
            "model learns from what both roles earn; leave one of the two settings out."
        )
    # A trainer has one size of groups for all that it learns from.
    one_size = config.num_generations == config.num_suites
    if coder.player == "llm" and not (one_size and tester.model is None):
        raise ValueError(
            f"Expect one model and groups of one size for self_play of a language model, actually: "
            f"num_generations={config.num_generations}, num_suites={config.num_suites}, tester.model="
            f"{tester.model!r}. Set num_suites to num_generations, and no tester.model."
        )


def _check_language_models(config: TrainConfig) -> None:
    coder, tester = config.coder, config.tester
    if config.time_budget is not None and not (
        config.has_language_model and config.backend == "transformers"
    ):
        raise ValueError(
            "Expect time_budget with language models and backend='transformers', whose speed can be measured "
            f"before the run, actually: coder.player={coder.player!r}, tester.player={tester.player!r}, backend="
            f"{config.backend!r}. Set max_steps instead."
        )
    if config.backend == "server" and config.lora_rank == 0:
        raise ValueError(
            "Expect backend to be 'transformers' or 'vllm' if all weights are trained (lora_rank = 0), actually: 'server', "
            "which takes new adapters after an update, no new weights. Set lora_rank to the rank of adapters, such as 16, or "
            "leave backend out."
        )
    for role in ("coder", "tester"):
        block = config.player(role)
        rates = {f"{role}.learning_rate": block.learning_rate}
        if "learning_rate" in block.trainer:  # which goes before
            rates = {f"{role}.trainer.learning_rate": block.trainer["learning_rate"]}
        if block.player == "llm" and (high := [name for name in rates if rates[name] > 0.1]):
            raise ValueError(
                f"Expect {high[0]} to be far below 0.1 for a language model (1e-6 for all weights, 1e-4 "
                f"for adapters), actually: {rates[high[0]]!r}. A preset such as smollm2-cpu sets what it needs."
            )
        if block.player == "llm" and not (block.freeze or imitates(config, role)):
            try:
                block.sampling.check_for_learning()
            except ValueError as error:
                raise ValueError(f"{role}.sampling: {error}") from error
