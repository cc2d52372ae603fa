"""Memory of a run on a processor: what does not fit is refused before anything is loaded, and little memory is spared.

A kernel that is out of memory ends a process without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codea1_env.agents.llm.capacity import give_back_at_once, least_memory, update_memory
from codea1_env.agents.llm.computing import Dtype
from codea1_env.agents.llm.trainer_settings import TOGETHER_ON_CPU
from codea1_env.training.batches import roles_of, sizes, update_of
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.settings import replaced

_AGAIN = "gradient_checkpointing"
"""Field of trainers: layers are computed again for their gradients, which takes a third more time and little memory."""
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


def needed(config: TrainConfig, folder: Path) -> float:
    """Return the bytes that a run takes, if all prompts and answers are as long as they may be."""
    dtype: Dtype = "float32" if config.dtype == "auto" else config.dtype
    return _least(config, dtype, folder) + _largest_update(config, folder)


def spared(
    config: TrainConfig,
    folder: Path,
    problems: int,
    available: float,
    say: Callable[[str], None],
) -> TrainConfig:
    """Return a run, computing layers again if it has a time budget and would not fit otherwise, even in its smallest size.

    Where memory is little, this process gives it back at once from now on.

    Raises:
        RunError: Not even that fits.
    """
    if needed(_computing_again(_smallest(config, problems), False), folder) <= available:
        return config
    give_back_at_once()
    if config.time_budget is None:
        return config
    say(
        f"{available / 1e9:.1f} GB of memory are free, which is little: layers are computed again for their gradients."
    )
    found = _computing_again(config, True)
    _refuse(found, config.dtype, needed(_smallest(found, problems), folder), available)
    return found


def _smallest(config: TrainConfig, problems: int) -> TrainConfig:
    return config if config.time_budget is None else sizes(config, problems)[-1]


def _computing_again(config: TrainConfig, again: bool) -> TrainConfig:
    changes = {
        f"{role}.trainer": {**config.player(role).trainer, _AGAIN: again}
        for role in ("coder", "tester")
        if config.player(role).player == "llm"
    }
    return replaced(config, changes)


def _least(config: TrainConfig, dtype: Dtype, folder: Path) -> float:
    trained = sum(not config.player(role).freeze for role in roles_of(config))
    lora = config.lora_rank > 0
    return least_memory(folder, dtype, trained=trained, lora=lora, rows=config.generation_batch)


def _largest_update(config: TrainConfig, folder: Path) -> float:
    """Bytes of the larger update of a step, if all its prompts and answers are as long as they may be."""
    most = 0.0
    for role in roles_of(config):
        player = config.player(role)
        if player.freeze:
            continue
        groups, size = update_of(config, role, config.problems_per_step)
        together = player.trainer.get("per_device_train_batch_size", TOGETHER_ON_CPU)
        rows = min(groups * size, together)
        # Answers of a group share their prompt.
        prompts = -(-rows // size) * player.sampling.max_prompt_length
        tokens = prompts + rows * player.sampling.max_completion_length
        again = bool(player.trainer.get(_AGAIN, True))
        kept = update_memory(folder, tokens, again=again)
        most = max(most, kept if again else _HEAP * kept)
    return most
