"""Where language models compute: an engine fits a run to its machines and makes the models, and the loop need not know."""

from __future__ import annotations

from collections.abc import Callable, Collection

from codea1_env.agents.llm.capacity import available_memory, give_back_at_once
from codea1_env.agents.models import ModelError, best_device, check_chat, local_folder, resolve
from codea1_env.training.batches import Role, check_batches, roles_of
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import (
    LanguageModels,
    Models,
    computing_of,
    decided_computing,
)

_LITTLE = 6e9
"""Bytes of free memory below which a run on a processor spares it."""


class LocalEngine:
    """This process."""

    elsewhere: Collection[Role] = ()
    """Roles whose players compute on other machines, each on its own."""

    def fit(
        self, config: TrainConfig, problems: int, say: Callable[[str], None], *, resumed: bool
    ) -> tuple[TrainConfig, Models]:
        """Make the models of a run, and decide what its configuration leaves to the machine: number formats and threads.

        Args:
            config: The run.
            problems: Number of problems to train on.
            say: Gets lines for people.
            resumed: Whether it goes on: then nothing is decided any more.

        Raises:
            RunError: The model cannot be had or used as asked.
        """
        _check_folders(config)
        models = LanguageModels(config, problems)
        models.check_trainers()
        if config.has_language_model and not resumed:
            check_batches(config, problems, 1, gpu=best_device() != "cpu")
        if not (config.has_language_model and config.backend == "transformers"):
            return config, models
        models.find(say=say)  # nothing is measured for a run whose other model cannot be used
        config = config if resumed else self._computing(config, say)
        return config, LanguageModels(config, problems, spare_memory=_spare_memory(say))

    def _computing(self, config: TrainConfig, say: Callable[[str], None]) -> TrainConfig:
        role = "coder" if config.coder.player == "llm" else "tester"
        try:
            computing = computing_of(config, resolve(config.model_of(role)))
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error
        say(f"Computing in {computing}.")
        return decided_computing(config, computing)


def _spare_memory(say: Callable[[str], None]) -> bool:
    """Give memory back at once where a processor has little, and say so; returns whether layers are to be computed again."""
    free = available_memory() if best_device() == "cpu" else _LITTLE
    if free >= _LITTLE:
        return False
    give_back_at_once()
    say(
        f"{free / 1e9:.1f} GB of memory are free, which is little: layers are computed again for their gradients, and "
        "memory is given back at once."
    )
    return True


def _check_folders(config: TrainConfig) -> None:
    """Refuse a model that is no folder, or has no chat template, before torch is imported, which takes long."""
    for role in roles_of(config):
        if config.player(role).player == "llm":
            try:
                folder = local_folder(config.model_of(role))
                if folder is not None:
                    check_chat(folder)
            except ModelError as error:
                raise RunError(f"Cannot make the {role}: {error}") from error
