"""Fits a run of language models to the machine: number formats, threads, and how much can be done in the time given."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.agents.llm.computing import Dtype
from codea1_env.agents.llm.memory import available_memory, own_memory
from codea1_env.agents.llm.model_shape import shape_of
from codea1_env.agents.llm.processes import world_size
from codea1_env.agents.models import best_device, resolve
from codea1_env.problems import Problem
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import LanguageModels, Models, computing_of
from codea1_env.training.memory_plan import Devices, plan_memory
from codea1_env.training.progress import ONCE
from codea1_env.training.settings import replaced
from codea1_env.training.speed import (
    Speed,
    measure_speed,
    phases_of_step,
    seconds_of_measurement,
)

_QUARTERS = 4
"""A run plays every problem as often as this: what is earned at its start and at its end can be compared."""
_LEAST_STEPS, _MOST_STEPS = 8, 48
_SHORT = 64
"""Tokens of an answer on slow machines; nine of ten answers have fewer."""
_WORTH_OF_SHORT = 0.85
"""What an answer is worth that may not be longer."""
_FULL = 0.6
"""Length of prompts and answers, as a share of what they may have."""
_STRETCH = 2.5
"""Beside other work a run may take so many times as long rather than not begin."""
_SHARE_OF_MEASURING = 0.1
"""Of a run's time that the measurement before the first step may take at most."""
_ENDING = 10.0
"""Seconds for checkpoints, and until the last table stands."""


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

    @property
    def seconds(self) -> float:
        """Of all steps and measurements."""
        config = self.config
        times = 1 + -(-config.max_steps // config.eval_steps)
        return config.max_steps * sum(self.step.values()) + times * self.measurement


def fit_to_machine(
    config: TrainConfig,
    problems: Sequence[Problem],
    started: float,
    known: Mapping[str, float],
    say: Callable[[str], None],
    tell: Callable[[float], None],
) -> RunPlan:
    """Decide what a configuration leaves to the machine.

    Args:
        config: The run.
        problems: What it may train on.
        started: When the run began, by `time.perf_counter`.
        known: Phase -> seconds, of a run that goes on: then nothing is decided any more.
        say: Is told what was decided, in lines for people.
        tell: Is told what share of the measuring is done.

    Raises:
        RunError: Nothing useful can be done in the time given, or the model cannot be had or used as asked.
    """
    models = LanguageModels(config, len(problems))
    if known:
        step = {name: value for name, value in known.items() if name not in ONCE}
        return RunPlan(config, step, known.get("evaluate", 0.0), models)
    if not config.has_language_model or config.backend != "transformers":
        return RunPlan(config, {}, 0.0, models)
    if world_size() > 1:
        if config.time_budget is not None:
            raise RunError(
                "Expect one process with time_budget, actually: "
                f"{world_size()}. Set max_steps instead."
            )
        return RunPlan(config, {}, 0.0, models)
    bases: dict[Path, Any] = {}
    available = available_memory() + own_memory() if best_device() == "cpu" else None
    try:
        folder = resolve(config.model_of(_role(config)), say)
        # Measuring takes memory, too; which format is chosen is not known yet.
        least = "bfloat16" if config.dtype == "auto" else config.dtype
        _check_memory(config, least, folder, available)
        computing = computing_of(config, folder)
    except ValueError as error:
        raise RunError(f"Cannot make the {_role(config)}: {error}") from error
    _check_memory(config, computing.dtype, folder, available)
    say(f"Computing in {computing}.")
    config = dataclasses.replace(
        config,
        dtype=computing.dtype,
        generation_dtype=computing.generation_dtype,
        threads=computing.threads,
        generation_threads=computing.generation_threads,
    )
    if config.time_budget is None and best_device() != "cpu":
        return RunPlan(config, {}, 0.0, LanguageModels(config, len(problems), bases))

    def fits(size: TrainConfig) -> bool:
        return available is None or _memory(size, computing.dtype, folder) <= available

    tell(0.0)
    models = LanguageModels(config, len(problems), bases)
    budget = config.time_budget
    speed = measure_speed(config, models, problems, tell)
    if config.time_budget is not None:
        config = _within(config, speed, problems, time.perf_counter() - started, fits)
    number = min(len(problems), config.max_problems or len(problems))
    plan = RunPlan(
        config,
        phases_of_step(speed, config),
        seconds_of_measurement(speed, config, number),
        LanguageModels(config, number, bases),
    )
    say(_summary(plan, number))
    total = time.perf_counter() - started + plan.seconds
    if budget is not None and total > 60 * budget:
        say(
            f"That is more than the {budget:g} minutes asked for, and the smallest run in which something can be "
            "learned: this machine is slow, or busy with something else."
        )
    return plan


def _role(config: TrainConfig) -> str:
    """Whose model stands for both."""
    return "coder" if config.coder.player == "llm" else "tester"


def _check_memory(config: TrainConfig, dtype: Dtype, folder: Path, available: int | None) -> None:
    """Refuse a run that does not fit into memory, before anything is loaded.

    Raises:
        RunError: It does not.
    """
    smallest = config
    if config.time_budget is not None:  # smaller ones are among those that may be chosen
        smallest = next(_sizes(config, config.problems_per_step))
    needed = _memory(smallest, dtype, folder)
    if available is not None and needed > available:
        raise RunError(
            f"Expect {needed / 1e9:.1f} GB of free memory for {config.model_of(_role(config))} with {smallest.problems_per_step} "
            f"problems a step in {dtype}, actually: {available / 1e9:.1f} GB. Close other programs, "
            "raise the limit of the container, lower problems_per_step or generation_batch, or play without "
            "language models: make train PRESET=tabular"
        )


def _memory(config: TrainConfig, dtype: Dtype, folder: Path) -> float:
    """Bytes that a run of this size needs on a processor."""
    shape = shape_of(folder)
    if shape is None:  # its loading will say what is wrong with it
        return 0.0
    shapes = {config.model_of(role): shape for role in ("coder", "tester")}
    here = Devices(1, math.inf, gpu=False)
    plan = plan_memory(dataclasses.replace(config, dtype=dtype), shapes, here, _FULL)
    return plan.needed(plan.peak)


def _within(
    config: TrainConfig,
    speed: Speed,
    problems: Sequence[Problem],
    spent: float,
    fits: Callable[[TrainConfig], bool] = lambda _: True,
) -> TrainConfig:
    """The largest run that fits into the time, and into memory; the smallest if that takes but little longer.

    Raises:
        RunError: Not even the smallest does.
    """
    seconds = 60 * (config.time_budget or 0.0)
    best: tuple[float, int] | None = None
    least, chosen, smallest = float("inf"), config, config
    for each in filter(fits, _sizes(config, len(problems))):
        fitted = _with_measurements(each, speed, seconds)
        steps = sum(phases_of_step(speed, fitted).values()) * fitted.max_steps
        number = fitted.max_problems or len(problems)
        needed = spent + _ENDING + steps + 2 * seconds_of_measurement(speed, fitted, number)
        if needed < least:
            least, smallest = needed, fitted
        length = fitted.coder.sampling.max_completion_length
        whole = length == config.coder.sampling.max_completion_length
        worth = fitted.problems_per_step * fitted.max_steps * (1.0 if whole else _WORTH_OF_SHORT)
        if needed <= seconds and (best is None or (worth, fitted.max_steps) > best):
            best, chosen = (worth, fitted.max_steps), fitted
    if best is not None:
        return chosen
    if least <= _STRETCH * seconds:
        return smallest
    raise RunError(
        f"Expect a time budget that suits this machine, actually: {seconds / 60:g} minutes, and the smallest run in "
        f"which something can be learned takes about {least / 60:.0f}. Give it more time (--time-budget "
        f"{1.25 * least // 60 + 2:.0f}), or play without language models: make train PRESET=tabular"
    )


def _sizes(config: TrainConfig, problems: int) -> Iterator[TrainConfig]:
    """All sizes that a run may have."""
    longest = config.coder.sampling.max_completion_length
    for length in sorted({longest, min(longest, _SHORT)}):
        for count in range(min(config.problems_per_step, 2), config.problems_per_step + 1):
            for steps in range(_LEAST_STEPS, _MOST_STEPS + 1, _QUARTERS):
                yield _sized(config, count, steps, length, problems)


def _sized(config: TrainConfig, count: int, steps: int, length: int, problems: int) -> TrainConfig:
    changes = {
        "time_budget": None,
        "problems_per_step": count,
        "max_problems": min(
            problems, config.max_problems or problems, max(1, count * steps // _QUARTERS)
        ),
        "max_steps": steps,
        "eval_steps": steps,
        "save_steps": max(1, steps // 2),
    }
    for role in ("coder", "tester"):
        longest = config.player(role).sampling.max_completion_length
        changes[f"{role}.sampling.max_completion_length"] = min(length, longest)
    return replaced(config, changes)


def _with_measurements(config: TrainConfig, speed: Speed, seconds: float) -> TrainConfig:
    """As many samples in measurements as their time allows."""
    for samples in range(config.eval_samples, 1, -1):
        tried = dataclasses.replace(config, eval_samples=samples)
        needed = seconds_of_measurement(speed, tried, config.max_problems or 1)
        if needed <= _SHARE_OF_MEASURING * seconds:
            return tried
    return dataclasses.replace(config, eval_samples=1)


def _summary(plan: RunPlan, problems: int) -> str:
    config = plan.config
    words = (
        f"{config.max_steps} steps of {config.problems_per_step} of {problems} problems, answers of at most "
        f"{config.coder.sampling.max_completion_length} tokens"
    )
    return f"{words}: about {plan.seconds / 60:.0f} minutes."
