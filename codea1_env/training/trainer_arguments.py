"""How large updates of a run's language models are, and the arguments of their trainers: checked before anything is loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Literal

from codea1_env.agents.llm import trainer_settings
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.llm.trainer_settings import TrainerSetup, UpdateShape
from codea1_env.agents.llm.trl_internals import with_algorithm
from codea1_env.training.config import OF_TRAINER, RunError, TrainConfig, algorithm_of

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
        passes = own.trainer.get("num_iterations", config.num_iterations)
        learn, shape = config.devices_of(role).learn, update_shape(config, role, step)
        with making(role):
            trainer_settings.batches_of(own.trainer, *shape, passes, learn, gpu)


def trainer_setup(
    config: TrainConfig, role: Role, problems: int, formats: Mapping[str, bool]
) -> TrainerSetup:
    """Say what the trainer of a role is made from; `formats` are its names of the number format.

    A step has no more than so many problems. Raises a ValueError if the run decides a field, or there is no such algorithm.
    """
    own = config.player(role)
    algorithm = algorithm_of(config, "coder" if role == "model" else role)
    of_algorithm = getattr(algorithm, "trainer", {})
    trainer_cls, config_cls = trainer_settings.find_trainer(config.trainer_cls)
    decided = {**trainer_settings.DECIDED, **trainer_settings.decided_by(algorithm)}
    trainer_settings.check_undecided(own.trainer, decided)
    try:
        trainer_settings.check_undecided(of_algorithm, decided)
    except ValueError as error:
        raise ValueError(f"{type(algorithm).__name__}.trainer: {error}") from error
    groups, size = update_shape(config, role, min(config.problems_per_step, problems))
    return TrainerSetup(
        UpdateShape(groups, size, config.max_steps),
        own.sampling,
        {
            "learning_rate": own.learning_rate,
            **{name: getattr(config, name) for name in OF_TRAINER},
            **of_algorithm,
            **formats,
            **own.trainer,
        },
        config.tester.sampling if role == "model" else None,
        with_algorithm(trainer_cls, algorithm),
        config_cls,
    )


_SIZES = ("per_device_train_batch_size", "gradient_accumulation_steps")


def check_trainers(config: TrainConfig, problems: int, *, elsewhere: bool = False) -> None:
    """Make the configuration of every trainer, before anything is loaded; a RunError if that fails.

    Where the run learns `elsewhere`, with another number of processes, the sizes of batches are left out.
    """
    left_out = _SIZES if elsewhere else ()
    for role in roles_of(config):
        if config.player(role).freeze:
            continue
        with making(role), tempfile.TemporaryDirectory(prefix="codea1-trainer-") as folder:
            # Which number format computes fastest is not known yet.
            setup = trainer_setup(config, role, problems, {"bf16": False, "fp16": False})
            fields = {name: v for name, v in setup.fields.items() if name not in left_out}
            replace(setup, fields=fields).config(0, folder)


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
        check_trainers(config, config.problems_per_step, elsewhere=True)
