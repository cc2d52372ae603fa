"""Memory of a run on a processor: what does not fit is refused before anything is loaded, and little memory is spared.

A kernel that is out of memory ends a process without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from codea1_env.agents.llm.capacity import give_back_at_once, least_memory, update_memory
from codea1_env.agents.llm.computing import Dtype
from codea1_env.agents.llm.trainer_settings import TOGETHER_ON_CPU
from codea1_env.agents.models import resolve
from codea1_env.training.batches import Role, roles_of, sizes, update_shape
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.settings import replaced

_AGAIN = "gradient_checkpointing"
"""Field of trainers: layers are computed again for their gradients, which takes a third more time and little memory."""
_folder = cache(resolve)
"""Folder of a model, which is not looked through again for each size of a run."""
_HEAP = 1.8
"""The C library's heap grows to so many times what is used, unless memory is given back at once."""


def check_memory(config: TrainConfig, dtype: Dtype, folder: Path, available: float) -> None:
    """Refuse a run that does not fit into memory at all.

    Raises:
        RunError: It does not.
    """
    _refuse(config, dtype, _least(config, dtype, folder), available)


def _refuse(config: TrainConfig, dtype: str, needed: float, available: float) -> None:
    if needed > available:
        role = roles_of(config)[0]
        raise RunError(
            f"Expect at least {needed / 1e9:.1f} GB of free memory for {config.model_of(role)} in {dtype}, actually: "
            f"{available / 1e9:.1f} GB. Close other programs, raise the limit of the container, lower generation_batch, "
            "or play without language models: make train PRESET=tabular"
        )


def needed(config: TrainConfig) -> float:
    """Return the bytes that a run takes, if all prompts and answers are as long as they may be."""
    dtype: Dtype = "float32" if config.dtype == "auto" else config.dtype
    roles = roles_of(config)
    folders = {role: _folder(config.model_of(role)) for role in roles}
    least = max(_least(config, dtype, folder) for folder in folders.values())
    return least + max(_update(config, role, folders[role]) for role in roles)


def spared(
    config: TrainConfig,
    problems: int,
    available: float,
    divides: Callable[[TrainConfig], bool],
    say: Callable[[str], None],
) -> TrainConfig:
    """Return a run that computes layers again, if it has a time budget and even its smallest size would not fit otherwise.

    Where memory is little, this process gives it back at once from now on.

    Args:
        config: The run.
        problems: Number of problems that it may train on.
        available: Bytes; infinite where a device says itself when it is full.
        divides: Whether the trainers can divide the answers of a step.
        say: Gets a line for people.

    Raises:
        RunError: Not even that fits.
    """
    if available == float("inf"):
        return config

    def smallest(config: TrainConfig) -> float:
        tried = [config] if config.time_budget is None else sizes(config, problems)
        return needed(next(filter(divides, reversed(tried)), tried[-1]))

    if smallest(config) <= available:
        return config
    played = [role for role in ("coder", "tester") if config.player(role).player == "llm"]
    again = _computing_again(config, dict.fromkeys(played, True))
    _refuse(config, config.dtype, smallest(again), available)
    give_back_at_once()
    little = f"{available / 1e9:.1f} GB of memory are free, which is little: "
    if config.time_budget is None:
        say(f"{little}it is given back at once, which takes time. {_AGAIN} would take less.")
        return config
    say(f"{little}layers are computed again for their gradients.")
    return again


def as_begun(config: TrainConfig, begun: TrainConfig) -> TrainConfig:
    """Return a run with what little memory decided of it when it began."""
    trainers = {role: begun.player(role).trainer for role in ("coder", "tester")}
    return _computing_again(
        config, {role: trainer[_AGAIN] for role, trainer in trainers.items() if _AGAIN in trainer}
    )


def _computing_again(config: TrainConfig, again: Mapping[str, bool]) -> TrainConfig:
    changes = {
        f"{role}.trainer": {**config.player(role).trainer, _AGAIN: value}
        for role, value in again.items()
    }
    return replaced(config, changes)


def _least(config: TrainConfig, dtype: Dtype, folder: Path) -> float:
    trained = sum(not config.player(role).freeze for role in roles_of(config))
    lora = config.lora_rank > 0
    return least_memory(folder, dtype, trained=trained, lora=lora, rows=config.generation_batch)


def _update(config: TrainConfig, role: Role, folder: Path) -> float:
    """Bytes of an update, if all its prompts and answers are as long as they may be."""
    player = config.player(role)
    if player.freeze:
        return 0.0
    groups, size = update_shape(config, role, config.problems_per_step)
    together = player.trainer.get("per_device_train_batch_size", TOGETHER_ON_CPU)
    rows = min(groups * size, together)
    both = (config.coder, config.tester) if role == "model" else (player,)
    prompt = max(each.sampling.max_prompt_length for each in both)
    answers = rows * max(each.sampling.max_completion_length for each in both)
    # Answers of a group share their prompt; where an update has several batches, its rows are shuffled.
    prompts = min(groups, rows)
    again = bool(player.trainer.get(_AGAIN, True))
    kept = update_memory(folder, prompts * prompt + answers, answers, again=again)
    return kept if again else _HEAP * kept
