"""How a run is made as large as the machine and the time allow."""

from __future__ import annotations

import dataclasses

import pytest

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.training.config import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.settings import replaced
from codea1_env.training.time_budget import (
    Prompts,
    Speed,
    phases_of_step,
    seconds_of_measurement,
    within,
)

SAMPLING = SamplingConfig(max_completion_length=96)
CONFIG = TrainConfig(
    coder=PlayerConfig("llm", learning_rate=2e-4, sampling=SAMPLING),
    tester=TesterConfig("llm", learning_rate=2e-4, sampling=SAMPLING),
    max_problems=12,
    problems_per_step=4,
    num_generations=4,
    num_suites=4,
    time_budget=10,
)
XEON = Speed(0.0017, 0.17, 0.0027, 0.006, Prompts(130, 70), Prompts(290, 196))
"""Two cores of a Xeon at 2.5 GHz without units for bfloat16, as it was measured."""


def slower(factor: float) -> Speed:
    return Speed(
        XEON.token_of_prompt * factor,
        XEON.step * factor,
        XEON.answer * factor,
        XEON.token_of_update * factor,
        XEON.coder,
        XEON.tester,
    )


def fitted(speed: Speed, spent: float = 30.0, **changes: object) -> TrainConfig:
    return within(dataclasses.replace(CONFIG, **changes), speed, [None] * 12, spent)


def seconds(speed: Speed, config: TrainConfig) -> float:
    measuring = 2 * seconds_of_measurement(speed, config, config.max_problems or 0)
    return sum(phases_of_step(speed, config).values()) * config.max_steps + measuring


@pytest.mark.parametrize("factor", [0.05, 0.2, 0.5, 1.0, 1.5])
def test_it_fits_and_uses_the_time(factor: float) -> None:
    speed = slower(factor)
    config = fitted(speed)
    assert seconds(speed, config) + 30 <= 600
    if factor >= 0.5:
        assert seconds(speed, config) >= 350
    assert config.time_budget is None  # decided
    assert config.problems_per_step <= 4
    assert (config.max_problems or 99) <= 12
    assert config.max_steps % 4 == 0
    assert config.eval_steps == config.max_steps


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 1.5])
def test_every_quarter_plays_every_problem(factor: float) -> None:
    config = fitted(slower(factor))
    played = config.max_steps // 4 * config.problems_per_step
    assert config.max_problems is not None
    assert played % config.max_problems == 0 or config.max_problems == 12


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 1.5])
def test_the_first_measurement_takes_a_tenth_at_most(factor: float) -> None:
    speed = slower(factor)
    config = fitted(speed)
    needed = seconds_of_measurement(speed, config, config.max_problems or 0)
    assert needed <= 60 or config.eval_samples == 1


def test_a_faster_machine_does_more() -> None:
    sizes = [fitted(slower(factor)) for factor in (1.5, 1.0, 0.5, 0.2)]
    work = [each.max_steps * each.problems_per_step for each in sizes]
    assert work == sorted(work)
    assert work[-1] > 2 * work[0]


def test_a_machine_that_is_too_slow_is_told_what_would_fit() -> None:
    with pytest.raises(RunError, match=r"about \d+\. Give it more time.*PRESET=tabular") as error:
        fitted(slower(20.0))
    text = str(error.value)
    more = int(text.split("--time-budget ")[1].split(")")[0])
    assert fitted(slower(20.0), time_budget=more).max_steps >= 8


def test_a_minute_is_too_little() -> None:
    with pytest.raises(RunError, match="1 minutes"):
        fitted(XEON, time_budget=1)


@pytest.mark.parametrize(
    ("changes", "phases"),
    [
        ({}, {"coder", "tester", "judge", "learn_coder", "learn_tester"}),
        ({"self_play": True}, {"coder", "tester", "judge", "learn_model"}),
        ({"tester.freeze": True}, {"coder", "tester", "judge", "learn_coder"}),
        ({"tester.player": "golden"}, {"coder", "tester", "judge", "learn_coder"}),
    ],
)
def test_phases(changes: dict[str, object], phases: set[str]) -> None:
    config = replaced(CONFIG, changes)
    assert set(phases_of_step(XEON, config)) == phases


def test_it_is_for_language_models() -> None:
    for changes in ({"coder.player": "tabular", "tester.player": "tabular"}, {"backend": "vllm"}):
        with pytest.raises(ValueError, match="time_budget with language models"):
            replaced(CONFIG, changes)
    with pytest.raises(ValueError, match="time_budget to be greater than 0"):
        dataclasses.replace(CONFIG, time_budget=0)
