"""How large updates of a run's language models are, and the arguments of their trainers: checked before anything is loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal

from codea1_env.agents.llm import trainer_settings
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.llm.trl_internals import with_algorithm
from codea1_env.training.config import (
    OF_TRAINER,
    RunError,
    TrainConfig,
    algorithm_of,
    who_needs_one,
)

Role = Literal["coder", "tester", "model"]
"""Who answers; "model" is one that plays both roles."""


def roles_of(config: TrainConfig) -> tuple[Role, ...]:
    """Return the roles that language models play."""
    both: tuple[Role, ...] = ("model",) if config.self_play else ("coder", "tester")
    return tuple(role for role in both if config.player(role).player == "llm")


def suite_groups(config: TrainConfig, problems: int) -> int:
    """Return how many groups of suites against the coder's programs a tester learns from."""
    programs = config.num_generations if config.suite_selection == "all" else 1
    asked = config.max_rounds if config.tester_rounds == "every" else 1
    return problems * programs * asked


def sparring_groups(config: TrainConfig, problems: int) -> int:
    """Return how many groups of suites against planted faults come beside those: at least one where there is sparring."""
    share = config.sparring
    if not config.spars:
        return 0
    return max(1, round(suite_groups(config, problems) * share / (1 - share)))


def update_shape(config: TrainConfig, role: Role, problems: int) -> tuple[int, int]:
    """Return the groups of an update on so many problems, and answers of a group."""
    suites = suite_groups(config, problems) + sparring_groups(config, problems)
    if role == "tester":
        return suites, config.num_suites
    return problems * config.max_rounds + (suites if role == "model" else 0), config.num_generations


def tokens_of_step(config: TrainConfig) -> tuple[int, int]:
    """Return the tokens that language models write in a step, and those of answers that they learn from, at most."""
    count = config.problems_per_step
    programs = count * config.num_generations
    asked = config.max_rounds if config.tester_rounds == "every" else 1
    answers = {
        "coder": programs * config.max_rounds,
        "tester": (programs * asked + sparring_groups(config, count)) * config.num_suites,
    }
    written = learned = 0
    for role, number in answers.items():
        own = config.player(role)
        if own.player == "llm":
            written += number * own.sampling.max_completion_length
    for role in roles_of(config):
        if not config.player(role).freeze:
            groups, size = update_shape(config, role, count)
            longest = config.player(role).sampling.max_completion_length
            if role == "model":  # it learns from suites, too
                longest = max(longest, config.tester.sampling.max_completion_length)
            learned += groups * size * longest
    return written, learned


def check_batches(config: TrainConfig, problems: int, *, gpu: bool) -> None:
    """Raise a RunError if the trainers cannot divide the answers of a step among their processes."""
    step = min(config.problems_per_step, problems)
    for role in roles_of(config):
        own = config.player(role)
        if own.freeze:
            continue
        fields = own.trainer
        passes = fields.get("num_iterations", config.num_iterations)
        try:
            trainer_settings.batches_of(
                fields,
                *update_shape(config, role, step),
                passes,
                config.devices_of(role).learn,
                gpu,
            )
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error


_SIZES = ("per_device_train_batch_size", "gradient_accumulation_steps")


class TrainerArguments:
    """Arguments of players that learn, as far as they are those of their trainers. A step has no more than so many problems.

    Raises a RunError if there is no such algorithm.
    """

    def __init__(self, config: TrainConfig, problems: int) -> None:
        self._config = config
        self._groups = min(config.problems_per_step, problems)
        try:
            self._algorithms = {
                role: algorithm_of(config, role)
                for role in who_needs_one(config)
                if config.player(role).player == "llm"
            }
        except ValueError as error:
            raise RunError(str(error)) from error

    def of(self, role: Role, formats: Mapping[str, bool]) -> dict[str, Any]:
        """Return the arguments of a role's player; `formats` are the trainer's names of the number format.

        Raises a ValueError if the run decides a field.
        """
        config, own = self._config, self._config.player(role)
        shape = trainer_settings.UpdateShape(
            *update_shape(config, role, self._groups), config.max_steps
        )
        algorithm = self._algorithm(role)
        trainer_cls, config_cls = trainer_settings.find_trainer(config.trainer_cls)
        decided = {**trainer_settings.DECIDED, **trainer_settings.decided_by(algorithm)}
        trainer_settings.check_undecided(own.trainer, decided)
        try:
            trainer_settings.check_undecided(getattr(algorithm, "trainer", {}), decided)
        except ValueError as error:
            raise ValueError(f"{type(algorithm).__name__}.trainer: {error}") from error
        return {
            "role": role,
            "shape": shape,
            "fields": self._fields(role, formats),
            "trainer_cls": with_algorithm(trainer_cls, algorithm),
            "config_cls": config_cls,
            "tester_sampling": config.tester.sampling if role == "model" else None,
        }

    def check(self, roles: Sequence[Role], *, elsewhere: bool = False) -> None:
        """Make the configuration of every trainer, before anything is loaded; a RunError if that fails.

        Where the run learns `elsewhere`, with another number of processes, the sizes of batches are left out.
        """
        left_out = _SIZES if elsewhere else ()
        for role in roles:
            if self._config.player(role).freeze:
                continue
            with making(role), tempfile.TemporaryDirectory(prefix="codea1-trainer-") as folder:
                # Which number format computes fastest is not known yet.
                taught = self.of(role, {"bf16": False, "fp16": False})
                fields = {name: v for name, v in taught["fields"].items() if name not in left_out}
                samplings = (self._config.player(role).sampling, taught["tester_sampling"])
                trainer_settings.grpo_config(
                    fields,
                    taught["shape"],
                    samplings=list(filter(None, samplings)),
                    config_cls=taught["config_cls"],
                    seed=0,
                    folder=folder,
                )

    def _fields(self, role: Role, formats: Mapping[str, bool]) -> dict[str, Any]:
        config = self._config
        return {
            "learning_rate": config.player(role).learning_rate,
            **{name: getattr(config, name) for name in OF_TRAINER},
            **getattr(self._algorithm(role), "trainer", {}),
            **formats,
            **config.player(role).trainer,
        }

    def _algorithm(self, role: Role) -> Any:
        return self._algorithms.get("coder" if role == "model" else role)


@contextmanager
def making(role: Role) -> Iterator[None]:
    """Say whose player cannot be made."""
    try:
        yield
    except (ValueError, BackendError, UpdateError) as error:
        raise RunError(f"Cannot make the {role}: {error}") from error


def check_trainer_fields(config: TrainConfig) -> None:
    """Raise a RunError for a wrong field of a trainer, on a machine that need not be the one where it learns; without TRL nothing."""
    if find_spec("trl") is not None:
        here = replace(config, backend="transformers")
        arguments = TrainerArguments(here, config.problems_per_step)
        arguments.check(roles_of(here), elsewhere=True)
