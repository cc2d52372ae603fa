"""How a run is made as large as the machine and the time allow."""

from __future__ import annotations

import dataclasses

import pytest

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.training.batches import sizes
from codea1_env.training.config import PlayerConfig, RunError, TesterConfig, TrainConfig
from codea1_env.training.settings import replaced
from codea1_env.training.time_budget import Deadline, measurement, phases_of, within

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
XEON = {"coder": 8.0, "tester": 12.0, "judge": 0.3, "learn_coder": 2.0, "learn_tester": 4.0}
"""The smallest step on two cores of a Xeon at 2.5 GHz without units for bfloat16, about."""
SMALL = sizes(CONFIG, 12)[-1]


def slower(factor: float) -> dict[str, float]:
    return {name: factor * each for name, each in XEON.items()}


def fitted(step: dict[str, float], spent: float = 30.0, **changes: object) -> TrainConfig:
    return within(dataclasses.replace(CONFIG, **changes), step, 12, spent)


def seconds(step: dict[str, float], config: TrainConfig) -> float:
    measuring = 2 * measurement(config, SMALL, step, config.max_problems or 0)
    return sum(phases_of(config, SMALL, step).values()) * config.max_steps + measuring


@pytest.mark.parametrize("factor", [0.05, 0.5, 1.5])
def test_it_fits_and_uses_the_time(factor: float) -> None:
    step = slower(factor)
    config = fitted(step)
    assert seconds(step, config) + 30 <= 600
    if factor >= 0.5:
        assert seconds(step, config) >= 480
    assert config.time_budget is None  # decided
    assert config.problems_per_step <= 4
    assert (config.max_problems or 99) <= 12
    assert config.max_steps * config.problems_per_step % 4 == 0
    assert config.eval_steps == config.max_steps
    first = measurement(config, SMALL, step, config.max_problems or 0)
    assert first <= 60 or config.eval_samples == 1, "a tenth at most"


def test_a_machine_that_is_too_slow_is_told_what_would_fit() -> None:
    with pytest.raises(RunError, match=r"about \d+\. Give it more time.*PRESET=tabular") as error:
        fitted(slower(20.0))
    text = str(error.value)
    more = int(text.split("--time-budget ")[1].split(")")[0])
    assert fitted(slower(20.0), time_budget=more).max_steps >= 8


def test_a_run_that_would_be_late_plans_fewer_steps() -> None:
    deadline = Deadline(ends=600.0, measuring=40.0)
    assert deadline.steps(0, 12, now=100.0) == 12
    assert deadline.steps(1, 12, now=130.0) == 12, "one step says too little"
    assert deadline.steps(2, 12, now=160.0) == 12, "14 would fit"
    assert deadline.steps(4, 12, now=340.0) == 4 + 3, "210 s are left, at 60 a step"
    assert deadline.steps(6, 7, now=700.0) == 7, "at least one more"


def test_a_run_of_a_slow_machine_keeps_its_time() -> None:
    now, planned, done = 50.0, 40, 0
    deadline = Deadline(ends=600.0, measuring=30.0)
    while done < planned:
        planned = deadline.steps(done, planned, now)
        now, done = now + 25.0, done + 1
    assert 0.85 * 600 <= now + 30 <= 600


def test_it_is_for_language_models() -> None:
    for changes in ({"coder.player": "tabular", "tester.player": "tabular"}, {"backend": "vllm"}):
        with pytest.raises(ValueError, match="time_budget with language models"):
            replaced(CONFIG, changes)
    with pytest.raises(ValueError, match="time_budget to be greater than 0"):
        dataclasses.replace(CONFIG, time_budget=0)
