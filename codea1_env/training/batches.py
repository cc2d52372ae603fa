"""How large the updates of a run are, and how they are divided into batches: known before anything is loaded."""

from __future__ import annotations

from typing import Literal

from codea1_env.agents.llm.trainer_settings import batches_of
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.settings import replaced

Role = Literal["coder", "tester", "model"]
"""Who answers; "model" is one that plays both roles."""

_PLAYS = 4
"""Times that a run with a time budget plays each problem."""
_LEAST_STEPS, _MOST_STEPS = 8, 48
SHORT = 64
"""Tokens of an answer on slow machines; nine of ten answers have fewer."""
_WORTH_OF_SHORT = 0.85
"""Worth of an answer that may not be longer."""


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


def sizes(config: TrainConfig, problems: int) -> list[TrainConfig]:
    """Return all sizes that a run with a time budget may get, the most useful first."""
    longest = config.coder.sampling.max_completion_length
    found = [
        (count * steps * (1.0 if length == longest else _WORTH_OF_SHORT), steps, length, count)
        for length in {longest, min(longest, SHORT)}
        for count in range(min(config.problems_per_step, 2), config.problems_per_step + 1)
        for steps in range(_LEAST_STEPS, _MOST_STEPS + 1)
        if count * steps % _PLAYS == 0
    ]
    return [_sized(config, *each[1:], problems) for each in sorted(found, reverse=True)]


def _sized(config: TrainConfig, steps: int, length: int, count: int, problems: int) -> TrainConfig:
    different = min(problems, config.max_problems or problems, max(1, count * steps // _PLAYS))
    changes = {
        "time_budget": None,
        "problems_per_step": count,
        "max_problems": different,
        "max_steps": steps,
        "eval_steps": steps,
        "save_steps": max(1, steps // 2),
    }
    for role in ("coder", "tester"):
        longest = config.player(role).sampling.max_completion_length
        changes[f"{role}.sampling.max_completion_length"] = min(length, longest)
    return replaced(config, changes)


def answers_of_step(config: TrainConfig) -> dict[str, int]:
    """Return how many answers each role writes in a step."""
    programs = config.problems_per_step * config.num_generations
    asked = config.max_rounds if config.tester_rounds == "every" else 1
    return {"coder": programs * config.max_rounds, "tester": programs * config.num_suites * asked}


def tokens_of_step(config: TrainConfig) -> tuple[int, int]:
    """Return the tokens that language models write in a step, and those of answers that they learn from, at most."""
    count = config.problems_per_step
    written = learned = 0
    for role, number in answers_of_step(config).items():
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
    """Raise a RunError if the trainers cannot divide the answers of a step; with a time budget, of none of its sizes."""
    refusal = None
    together = config.learner_processes if config.engine == "ray" else processes
    tried = [config] if config.time_budget is None else sizes(config, problems)
    for each in tried:
        try:
            _divide(each, problems, together, gpu)
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
        fields = own.trainer
        passes = fields.get("num_iterations", config.num_iterations)
        try:
            batches_of(fields, *update_shape(config, role, step), passes, processes, gpu)
        except ValueError as error:
            raise RunError(f"Cannot make the {role}: {error}") from error
