"""How many steps of language models fit into a time budget: a small step is measured first, and the run corrects itself.

The smallest step of a run is played and learned from once, with a player that is thrown away. From what it took follows
the size of the run. While the run goes on, it plans fewer steps as soon as its own steps say that it would be late.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from codea1_env.agents.llm.completions import part_of_work
from codea1_env.agents.llm.trainer_drive import TrainingRow
from codea1_env.problems import Problem
from codea1_env.spaces import observe
from codea1_env.training.batches import roles_of, sizes, update_shape
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import LanguageModels

_STRETCH = 2.5
"""Beside other work a run may take so many times its budget rather than not begin."""
_SHARE_OF_MEASURING = 0.1
"""Of a run's time that the measurement before the first step may take at most."""
_ENDING = 10.0
"""Seconds for checkpoints, and until the last table stands."""
_JUDGING = 0.01
"""Seconds to judge a suite; a guess, and never much of a step."""

Seconds = Mapping[str, float]
"""Phase of a step -> seconds."""


def measure_step(
    config: TrainConfig,
    models: LanguageModels,
    problems: Sequence[Problem],
    tell: Callable[[float], None] = lambda _: None,
) -> Seconds:
    """Play and learn from the smallest step of a run, with a player that is thrown away, and tell the share that is done."""
    small = sizes(config, len(problems))[-1]
    role: Literal["coder", "tester"] = "tester" if config.tester.player == "llm" else "coder"
    size = config.num_suites if role == "tester" else config.num_generations
    trial = models.trial(role, size, updates=2)
    agent, found = trial.agent, {}
    played = problems[: small.problems_per_step]
    programs = [(each, i) for each in played for i in range(config.num_generations)]
    asked = {
        "coder": [observe(each) for each, _ in programs],
        # Programs that differ, as those of a coder do.
        "tester": [
            observe(each, code=f"{each.reference}\n# {i}", turn=1)
            for each, i in programs
            for _ in range(config.num_suites)
        ],
    }
    short = dataclasses.replace(small.tester.sampling, max_completion_length=1)
    with part_of_work(0.0, 0.1):
        agent.backend.generate(
            [agent.chat(each) for each in asked[role][:size]], short, 0, agent.adapter
        )
    answers = {}
    for name, observations in asked.items():
        begin, end = (0.1, 0.4) if name == "coder" else (0.4, 0.8)
        tell(begin)
        if config.player(name).player == "llm":
            chats = [prompt.messages for prompt in agent.fitted(observations)]
            started = time.perf_counter()
            sampling = small.player(name).sampling
            with part_of_work(begin, end):
                answers[name] = agent.backend.generate(chats, sampling, 0, agent.adapter)
            found[name] = time.perf_counter() - started
    tell(0.8)
    found["judge"] = len(programs) * config.num_suites * _JUDGING
    of_token = _update(trial, answers[role][:size])
    for each in roles_of(config):
        if not config.player(each).freeze:
            rows = answers["coder" if each == "coder" else "tester"]
            group = rows[: update_shape(small, each, len(played))[1]]
            groups = update_shape(small, each, len(played))[0]
            found[f"learn_{each}"] = groups * _tokens(group) * of_token
    tell(1.0)
    return found


def _tokens(group: Sequence[Any]) -> int:
    """Tokens that an update computes of a group: its prompt once."""
    return len(group[0].prompt_ids) + sum(len(each.completion_ids) for each in group)


def _update(trial: Any, group: Sequence[Any]) -> float:
    """Make two updates; return the seconds for each token of the faster one."""
    rows = [
        TrainingRow(each.prompt_ids, each.completion_ids, each.logprobs, float(i % 2))
        for i, each in enumerate(group)
    ]
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        trial.drive.update(rows)
        seconds.append(time.perf_counter() - started)
    return min(seconds) / _tokens(group)


def phases_of(config: TrainConfig, small: TrainConfig, measured: Seconds) -> dict[str, float]:
    """Estimate the phases of a step from those of the smallest step."""
    more = config.problems_per_step / small.problems_per_step
    longer = {
        role: config.player(role).sampling.max_completion_length
        / small.player(role).sampling.max_completion_length
        for role in ("coder", "tester")
    }
    return {name: more * longer.get(name, 1.0) * each for name, each in measured.items()}


def measurement(config: TrainConfig, small: TrainConfig, measured: Seconds, problems: int) -> float:
    """Estimate the seconds to measure both players on what is held back."""
    programs = (min(problems, config.eval_trained) + config.eval_problems) * config.eval_samples
    step = phases_of(dataclasses.replace(config, problems_per_step=1), small, measured)
    written = step.get("coder", 0.0) + step.get("tester", 0.0) / config.num_suites
    return programs * (written / config.num_generations + 4 * _JUDGING)


def within(
    config: TrainConfig,
    measured: Seconds,
    problems: int,
    spent: float,
    fits: Callable[[TrainConfig], bool] = lambda _: True,
) -> TrainConfig:
    """Return the largest run that fits into its time; the smallest if that takes but little longer.

    Args:
        config: The run.
        measured: What `measure_step` returned.
        problems: Number of problems that it may train on.
        spent: Seconds that have passed.
        fits: Whether a size can be had for other reasons.

    Raises:
        RunError: Not even the smallest fits.
    """
    seconds = 60 * (config.time_budget or 0.0)
    all_sizes = sizes(config, problems)
    small = all_sizes[-1]
    least = float("inf")
    for each in filter(fits, all_sizes):
        sized = _with_samples(each, small, measured, seconds)
        steps = sum(phases_of(sized, small, measured).values()) * sized.max_steps
        measuring = measurement(sized, small, measured, sized.max_problems or problems)
        needed = spent + _ENDING + steps + 2 * measuring
        if needed <= seconds:
            return sized
        if needed < least:
            least, smallest = needed, sized
    if least <= _STRETCH * seconds:
        return smallest
    if least == float("inf"):
        raise RunError(
            "Expect room for one of the sizes of this run, actually: none fits into the free memory. Close other "
            "programs, or lower max_completion_length or per_device_train_batch_size."
        )
    raise RunError(
        f"Expect a time budget that suits this machine, actually: {seconds / 60:g} minutes, and the smallest run in "
        f"which something can be learned takes about {least / 60:.0f}. Give it more time (--time-budget "
        f"{1.25 * least // 60 + 2:.0f}), or play without language models: make train PRESET=tabular"
    )


def _with_samples(
    config: TrainConfig, small: TrainConfig, measured: Seconds, seconds: float
) -> TrainConfig:
    """As many samples in measurements as their time allows."""
    for samples in range(config.eval_samples, 1, -1):
        tried = dataclasses.replace(config, eval_samples=samples)
        needed = measurement(tried, small, measured, config.max_problems or 1)
        if needed <= _SHARE_OF_MEASURING * seconds:
            return tried
    return dataclasses.replace(config, eval_samples=1)


@dataclass
class Deadline:
    """When a run has to end, and how fast it goes."""

    ends: float
    """By `time.perf_counter`, as all times here."""
    measuring: float = 0.0
    """Seconds of a measurement."""
    _began: float | None = None
    _first: int = 0

    def steps(self, done: int, planned: int, now: float) -> int:
        """Return the steps that there is time for: as planned, or fewer, but at least one more."""
        if self._began is None:
            self._began, self._first = now, done
        if done - self._first < 2:
            return planned
        pace = (now - self._began) / (done - self._first)
        left = self.ends - now - self.measuring - _ENDING
        return min(planned, done + max(1, int(left / pace)))
