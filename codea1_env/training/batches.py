"""How the updates of a run are divided into batches, which is known before anything is measured or loaded."""

from __future__ import annotations

from codea1_env.agents.llm.trainer_settings import batches_of
from codea1_env.training.algorithms import imitates
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import Role, roles_of, update_of
from codea1_env.training.time_budget import sizes


def passes_of(config: TrainConfig, role: Role) -> int:
    """Return how often an update goes through its answers."""
    if imitates(config, role):
        return 1
    passes: int = config.player(role).trainer.get("num_iterations", config.num_iterations)
    return passes


def learn_together(config: TrainConfig, processes: int) -> int:
    """Return the number of processes that learn together, of those that a run has."""
    return config.learner_processes if config.engine == "ray" else processes


def tokens_of_step(config: TrainConfig) -> tuple[int, int]:
    """Return the tokens that language models write in a step, and those of answers that they learn from, at most."""
    count, programs = config.problems_per_step, config.num_generations
    asked = config.max_rounds if config.tester_rounds == "every" else 1
    answers = {
        "coder": count * programs * config.max_rounds,
        "tester": count * programs * config.num_suites * asked,
    }
    written = learned = 0
    for role, number in answers.items():
        own = config.player(role)
        if own.player == "llm":
            written += number * own.sampling.max_completion_length
    for role in roles_of(config):
        if not config.player(role).freeze:
            groups, size = update_of(config, role, count)
            longest = config.player(role).sampling.max_completion_length
            if role == "model":  # it learns from suites, too
                longest = max(longest, config.tester.sampling.max_completion_length)
            learned += groups * size * longest
    return written, learned


def check_batches(config: TrainConfig, problems: int, processes: int, *, gpu: bool) -> None:
    """Check that the trainers can divide the answers of a step; of a run whose size is open, those of one that it may get.

    Args:
        config: The run.
        problems: Number of problems to train on: a step has no more.
        processes: Those of the run.
        gpu: Whether each has a GPU.

    Raises:
        RunError: One cannot.
    """
    refusal = None
    tried = [config] if config.time_budget is None else reversed([*sizes(config, problems)])
    for each in tried:
        try:
            _divide(each, problems, learn_together(config, processes), gpu)
        except RunError as error:
            refusal = refusal or error
        else:
            return
    assert refusal is not None
    raise refusal


def _divide(config: TrainConfig, problems: int, processes: int, gpu: bool) -> None:
    step = min(config.problems_per_step, problems)
    for role in roles_of(config):
        own = config.player(role)
        if own.freeze:
            continue
        passes = passes_of(config, role)
        try:
            batches_of(own.trainer, *update_of(config, role, step), passes, processes, gpu)
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error
