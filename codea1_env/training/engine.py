"""Where language models compute: an engine fits a run to its machines and makes the models, and the loop need not know."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.capacity import available_memory, own_memory
from codea1_env.agents.models import ModelError, best_device, local_folder, resolve
from codea1_env.problems import Problem
from codea1_env.training import memory, time_budget
from codea1_env.training.batches import Role, check_batches, roles_of, sizes
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import (
    LanguageModels,
    Models,
    computing_of,
    decided_computing,
)
from codea1_env.training.progress import ONCE


@dataclass(frozen=True)
class RunPlan:
    """What a run does, and how long that takes."""

    config: TrainConfig
    """With everything decided."""
    step: Mapping[str, float]
    """Phase of a step -> seconds; empty where nothing was measured."""
    measurement: float
    """Seconds to measure both players once."""
    models: Models
    """The models, perhaps loaded already."""

    @classmethod
    def of_known(cls, config: TrainConfig, known: Mapping[str, float], models: Models) -> RunPlan:
        """Return the plan of a run whose phases took so long before, if it goes on."""
        step = {name: value for name, value in known.items() if name not in ONCE}
        return cls(config, step, known.get("evaluate", 0.0), models)

    @property
    def measurements(self) -> int:
        """How often both players are measured."""
        return 1 + -(-self.config.max_steps // self.config.eval_steps)

    @property
    def seconds(self) -> float:
        """Of all steps and measurements."""
        steps = self.config.max_steps * sum(self.step.values())
        return steps + self.measurements * self.measurement


class LocalEngine:
    """This process."""

    elsewhere: Collection[Role] = ()
    """Roles whose players compute on other machines, each on its own."""

    def fit(
        self,
        config: TrainConfig,
        problems: Sequence[Problem],
        started: float,
        known: Mapping[str, float],
        say: Callable[[str], None],
        tell: Callable[[float], None],
    ) -> RunPlan:
        """Decide what a configuration leaves to the machine: number formats, threads, and how much there is time for.

        `known` are the seconds of each phase of a run that goes on: then nothing is decided any more. `say` gets lines
        for people, `tell` the share of the measuring that is done.

        Raises:
            RunError: Nothing useful can be done in the time given, or the model cannot be had or used as asked.
        """
        _check_folders(config)
        models = LanguageModels(config, len(problems))
        models.check_trainers()
        if config.has_language_model and not known:
            check_batches(config, len(problems), 1, gpu=best_device() != "cpu")
        if not (config.has_language_model and config.backend == "transformers"):
            return RunPlan.of_known(config, known, models)
        models.find(say=say)  # nothing is measured for a run whose other model cannot be used
        available = available_memory() + own_memory() if best_device() == "cpu" else float("inf")
        config = config if known else self._computing(config, available, say)
        divides = partial(_divides, problems=len(problems))
        config = memory.spared(config, len(problems), available, divides, say)
        if known:
            return RunPlan.of_known(config, known, models)
        bases: dict[Path, Any] = {}
        models = LanguageModels(config, len(problems), bases)
        if config.time_budget is None:
            return RunPlan(config, {}, 0.0, models)
        tell(0.0)
        small = sizes(config, len(problems))[-1]
        measured = time_budget.measure_step(config, models, problems, tell)
        fitted = time_budget.within(
            config,
            measured,
            len(problems),
            time.perf_counter() - started,
            lambda each: divides(each) and memory.needed(each) <= available,
        )
        number = fitted.max_problems or len(problems)
        plan = RunPlan(
            fitted,
            time_budget.phases_of(fitted, small, measured),
            time_budget.measurement(fitted, small, measured, number),
            LanguageModels(fitted, number, bases),
        )
        _tell_plan(plan, number, config.time_budget, time.perf_counter() - started, say)
        return plan

    def _computing(
        self, config: TrainConfig, available: float, say: Callable[[str], None]
    ) -> TrainConfig:
        """Decide number formats and threads; refuse what does not fit into memory."""
        try:
            folder = resolve(config.model_of(_role(config)))
            # Measuring takes memory, too; which format is chosen is not known yet.
            least = "bfloat16" if config.dtype == "auto" else config.dtype
            memory.check_memory(config, least, folder, available)
            computing = computing_of(config, folder)
        except ValueError as error:
            raise RunError(f"Cannot make the {_role(config)}: {error}") from error
        memory.check_memory(config, computing.dtype, folder, available)
        say(f"Computing in {computing}.")
        return decided_computing(config, computing)


def _divides(config: TrainConfig, problems: int) -> bool:
    """Whether the trainers can divide the answers of a step."""
    try:
        check_batches(config, problems, 1, gpu=best_device() != "cpu")
    except RunError:
        return False
    return True


def _tell_plan(
    plan: RunPlan, problems: int, budget: float, spent: float, say: Callable[[str], None]
) -> None:
    config = plan.config
    say(
        f"{config.max_steps} steps of {config.problems_per_step} of {problems} problems, answers of at most "
        f"{config.coder.sampling.max_completion_length} tokens: about {plan.seconds / 60:.0f} minutes."
    )
    if spent + plan.seconds > 60 * budget:
        say(
            f"That is more than the {budget:g} minutes asked for, and the smallest run in which something can be "
            "learned: this machine is slow, or busy with something else."
        )


def _role(config: TrainConfig) -> str:
    """Whose model stands for both."""
    return "coder" if config.coder.player == "llm" else "tester"


def _check_folders(config: TrainConfig) -> None:
    """Refuse a model that is no folder before torch is imported, which takes long."""
    for role in roles_of(config):
        if config.player(role).player == "llm":
            try:
                local_folder(config.model_of(role))
            except ModelError as error:
                raise RunError(f"Cannot make the {role}: {error}") from error
