"""How fast language models write and learn on this machine, and the largest run that fits into a time budget."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from codea1_env.agents.llm.completions import encode_chat
from codea1_env.agents.llm.fast_on_cpu import common_beginning
from codea1_env.agents.llm.trainer_drive import TrainingRow
from codea1_env.problems import Problem
from codea1_env.spaces import observe
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.settings import replaced

_QUARTERS = 4
"""A run plays every problem as often as this: what is earned at its start and at its end can be compared."""
_LEAST_STEPS, _MOST_STEPS = 8, 48
_SHORT = 64
"""Tokens of an answer on slow machines; nine of ten answers have fewer."""
_WORTH_OF_SHORT = 0.85
"""What an answer is worth that may not be longer."""
_STRETCH = 2.5
"""Beside other work a run may take so many times as long rather than not begin."""
_SHARE_OF_MEASURING = 0.1
"""Of a run's time that the measurement before the first step may take at most."""
_RESERVE = 1.15
"""A machine is measured for seconds, and may be slower for minutes: a run took 1.3 times what was measured."""
_ENDING = 10.0
"""Seconds for checkpoints, and until the last table stands."""
_ANSWER = 0.45
"""Length of an answer as a share of what it may have: about 42 of 96 tokens (docs/results.md)."""
_LONGEST = 0.8
"""Length of the longest answer of a batch, as a share of what it may have."""
_FEW, _MANY = 16, 64
_TOKENS = 8
_JUDGING = 0.01
"""Seconds to judge a suite; a guess, and never much of a step."""


@dataclass(frozen=True)
class Prompts:
    """Lengths of a role's prompts, in tokens."""

    tokens: float
    """Mean length."""
    shared: int
    """What all of them begin with."""


@dataclass(frozen=True)
class Speed:
    """Times of the parts that work is made of."""

    token_of_prompt: float
    """Seconds to read a token of a prompt, before writing."""
    step: float
    """Seconds to write one token of each answer, however few they are."""
    answer: float
    """Seconds more for each answer."""
    token_of_update: float
    """Seconds to learn from a token."""
    coder: Prompts
    tester: Prompts

    def writing(self, role: Prompts, prompts: int, answers: int, length: int, batch: int) -> float:
        """Return the seconds to write answers to different prompts, of at most so many tokens."""
        read = role.shared + prompts * (role.tokens - role.shared)
        steps = -(-answers // batch) * length * _LONGEST
        written = answers * length * _ANSWER
        return read * self.token_of_prompt + steps * self.step + written * self.answer

    def learning(self, role: Prompts, groups: int, size: int, length: int) -> float:
        """Return the seconds of an update, in which a group computes its prompt once."""
        return groups * (role.tokens + size * length * _ANSWER) * self.token_of_update


def phases_of_step(speed: Speed, config: TrainConfig) -> dict[str, float]:
    """Estimate the seconds of each phase of a step."""
    count, size, suites = config.problems_per_step, config.num_generations, config.num_suites
    coder, tester = (each.sampling.max_completion_length for each in (config.coder, config.tester))
    batch = config.generation_batch
    attacked = count * (size if config.suite_selection == "all" else 1)
    writing = {
        "coder": speed.writing(speed.coder, count, count * size, coder, batch),
        "tester": speed.writing(speed.tester, count * size, count * size * suites, tester, batch),
    }
    learning = {
        "coder": speed.learning(speed.coder, count, size, coder),
        "tester": speed.learning(speed.tester, attacked, suites, tester),
    }
    llm = [role for role in ("coder", "tester") if config.player(role).player == "llm"]
    seconds = {role: value if role in llm else 0.0 for role, value in writing.items()}
    seconds["judge"] = count * size * suites * _JUDGING
    if config.self_play:
        seconds["learn_model"] = sum(learning.values())
    else:
        learn = [role for role in llm if not config.player(role).freeze]
        seconds |= {f"learn_{role}": learning[role] for role in learn}
    return seconds


def seconds_of_measurement(speed: Speed, config: TrainConfig, problems: int) -> float:
    """Estimate the seconds to measure both players on what is held back."""
    problems = min(problems, config.eval_trained) + config.eval_problems
    answers, batch = problems * config.eval_samples, config.generation_batch
    coder, tester = config.coder.sampling, config.tester.sampling
    return sum(
        (
            speed.writing(speed.coder, problems, answers, coder.max_completion_length, batch),
            speed.writing(speed.tester, answers, answers, tester.max_completion_length, batch),
            4 * answers * _JUDGING,
        )
    )


def measure_speed(
    config: TrainConfig,
    models: LanguageModels,
    problems: Sequence[Problem],
    tell: Callable[[float], None] = lambda _: None,
) -> Speed:
    """Write a few tokens and make two updates with a player that is thrown away.

    Args:
        config: The run, with number formats and threads.
        models: The language models of the run; the player shares the weights of theirs.
        problems: What the run is about.
        tell: Is told the share that is done.
    """
    role: Literal["coder", "tester"] = "tester" if config.tester.player == "llm" else "coder"
    size = config.num_suites if role == "tester" else config.num_generations
    few = problems[:4]
    trial = models.trial(role, size, updates=2)
    agent = trial.agent
    seen = [agent.chat(observe(problem)) for problem in few]
    chats = [agent.chat(observe(each, code=each.reference, turn=1)) for each in few]
    encoded = [[encode_chat(trial.tokenizer, each) for each in all_] for all_ in (seen, chats)]
    coder, tester = (_prompts(every) for every in encoded)

    def written(answers: int, tokens: int) -> float:
        sampling = dataclasses.replace(
            config.tester.sampling, max_completion_length=tokens, stop=()
        )
        asked = [chats[i % len(chats)] for i in range(answers)]
        started = time.perf_counter()
        agent.backend.generate(asked, sampling, 0, agent.adapter)
        return time.perf_counter() - started

    written(_FEW, 1)  # warms up
    tell(0.2)
    read = written(_FEW, 1)
    tell(0.27)
    few_step = max(written(_FEW, 1 + _TOKENS) - read, 1e-6) / _TOKENS
    tell(0.42)
    many_step = max(written(_MANY, 1 + _TOKENS) - read, few_step) / _TOKENS
    tell(0.68)
    answer = max(many_step - few_step, 0.0) / (_MANY - _FEW)

    length = int(config.tester.sampling.max_completion_length * _ANSWER)
    of_token = _time_updates(trial, encoded[1][0], size, length, tell)
    return Speed(
        token_of_prompt=read / (tester.shared + len(few) * (tester.tokens - tester.shared)),
        step=max(few_step - _FEW * answer, 0.2 * few_step),
        answer=answer,
        token_of_update=of_token,
        coder=coder,
        tester=tester,
    )


def _prompts(every: Sequence[tuple[int, ...]]) -> Prompts:
    shared = common_beginning(min(every), max(every))
    mean = float(np.mean([len(ids) for ids in every]))
    return Prompts(mean, min(shared, min(map(len, every)) - 1))


def _time_updates(
    trial: Any, prompt: tuple[int, ...], size: int, length: int, tell: Callable[[float], None]
) -> float:
    """Make two updates with answers of a length; return the seconds for each token of the faster one."""
    # Answers that are alike in nothing but their length, as drawn ones are.
    answers = [prompt[i : i + 1] + prompt[:length][1:] for i in range(size)]
    rows = [
        TrainingRow(prompt, ids, (-1.0,) * len(ids), float(i % 2)) for i, ids in enumerate(answers)
    ]
    tokens = len(prompt) + sum(len(row.completion_ids) for row in rows)
    updates = []
    for count in range(2):
        started = time.perf_counter()
        trial.drive.update(rows)
        updates.append(time.perf_counter() - started)
        tell(0.84 + 0.16 * count)
    return min(updates) / tokens


def within(
    config: TrainConfig,
    speed: Speed,
    problems: Sequence[Problem],
    spent: float,
    fits: Callable[[TrainConfig], bool] = lambda _: True,
) -> TrainConfig:
    """Return the largest run that fits into the time, and into memory; the smallest if that takes but little longer.

    Raises:
        RunError: Not even the smallest does.
    """
    seconds = 60 * (config.time_budget or 0.0)
    tried: list[tuple[float, tuple[float, int], TrainConfig]] = []
    for each in filter(fits, sizes(config, len(problems))):
        fitted = _with_measurements(each, speed, seconds)
        steps = sum(phases_of_step(speed, fitted).values()) * fitted.max_steps
        number = fitted.max_problems or len(problems)
        work = steps + 2 * seconds_of_measurement(speed, fitted, number)
        needed = spent + _ENDING + _RESERVE * work
        length = fitted.coder.sampling.max_completion_length
        whole = length == config.coder.sampling.max_completion_length
        worth = fitted.problems_per_step * fitted.max_steps * (1.0 if whole else _WORTH_OF_SHORT)
        tried.append((needed, (worth, fitted.max_steps), fitted))
    if in_time := [each for each in tried if each[0] <= seconds]:
        return max(in_time, key=lambda each: each[1])[2]
    least, _, smallest = min(tried, key=lambda each: each[0])
    if least <= _STRETCH * seconds:
        return smallest
    raise RunError(
        f"Expect a time budget that suits this machine, actually: {seconds / 60:g} minutes, and the smallest run in "
        f"which something can be learned takes about {least / 60:.0f}. Give it more time (--time-budget "
        f"{1.25 * least // 60 + 2:.0f}), or play without language models: make train PRESET=tabular"
    )


def sizes(config: TrainConfig, problems: int) -> Iterator[TrainConfig]:
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
