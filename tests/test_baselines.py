"""Every baseline is a valid setting of the loop, and says what sets it apart."""

from __future__ import annotations

import dataclasses

import pytest

from codea1_env.baselines import BASELINES
from codea1_env.training.config import TrainConfig


@pytest.mark.parametrize("name", BASELINES)
def test_baseline_changes_only_what_it_names(name: str) -> None:
    before = TrainConfig(seed=3, max_steps=7)
    after = BASELINES[name].apply(before)
    changed = {
        field.name
        for field in dataclasses.fields(TrainConfig)
        if getattr(before, field.name) != getattr(after, field.name)
    }
    assert changed <= set(BASELINES[name].overrides)
    assert changed or name == "code-a1"


def test_code_a1_is_the_default() -> None:
    assert BASELINES["code-a1"].apply(TrainConfig()) == TrainConfig()


def test_baselines_differ_from_each_other() -> None:
    configs = [baseline.apply(TrainConfig()) for baseline in BASELINES.values()]
    assert all(a != b for i, a in enumerate(configs) for b in configs[:i])
