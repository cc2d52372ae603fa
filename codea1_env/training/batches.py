"""How large the updates of a run are, and how they are divided into batches: known before anything is loaded."""

from __future__ import annotations

from typing import Literal

from codea1_env.agents.llm.trainer_settings import batches_of
from codea1_env.training.config import RunError, TrainConfig

Role = Literal["coder", "tester", "model"]
"""Who answers; "model" is one that plays both roles."""


def roles_of(config: TrainConfig) -> tuple[Role, ...]:
    """Return the roles that language models play."""
    both: tuple[Role, ...] = ("model",) if config.self_play else ("coder", "tester")
    return tuple(role for role in both if config.player(role).player == "llm")


def update_shape(config: TrainConfig, role: Role, problems: int) -> tuple[int, int]:
    """Return the groups of an update on so many problems, and answers of a group."""
    programs = config.num_generations if config.suite_selection == "all" else 1
    asked = config.max_rounds if config.tester_rounds == "every" else 1
    suites = problems * programs * asked
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
        "tester": programs * config.num_suites * asked,
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


def check_batches(config: TrainConfig, problems: int, processes: int, *, gpu: bool) -> None:
    """Raise a RunError if the trainers cannot divide the answers of a step."""
    together = config.learner_processes if config.engine == "ray" else processes
    step = min(config.problems_per_step, problems)
    for role in roles_of(config):
        own = config.player(role)
        if own.freeze:
            continue
        fields = own.trainer
        passes = fields.get("num_iterations", config.num_iterations)
        try:
            batches_of(fields, *update_shape(config, role, step), passes, together, gpu)
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error
