from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from codea1_env.training.config import TrainConfig


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": 0}, "max_steps to be greater than 0, actually: 0"),
        ({"num_generations": 1}, "num_generations to be at least 2"),
        ({"num_suites": 1}, "num_suites to be at least 2"),
        ({"seed": -1}, "seed not to be negative"),
        ({"alpha": 1.5}, "alpha to be between 0 and 1"),
        ({"decay": "never"}, "decay to be one of 'per-program', 'per-step', actually: 'never'"),
        ({"coder": "human"}, "coder to be one of"),
        (
            {"algorithm": "ppo"},
            "algorithm to be one of grpo, rloo, or module:Class, actually: 'ppo'",
        ),
    ],
)
def test_wrong_values_say_what_was_expected(change, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**change)


def test_every_field_is_documented():
    source = Path(TrainConfig.__init__.__globals__["__file__"]).read_text(encoding="utf-8")
    lines = source.splitlines()
    for field in dataclasses.fields(TrainConfig):
        line = next(i for i, text in enumerate(lines) if text.startswith(f"    {field.name}: "))
        assert lines[line + 1].startswith('    """'), f"{field.name} has no docstring"


def test_the_output_folder_may_be_text():
    assert TrainConfig(output_dir="runs/one").output_dir == Path("runs/one")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_steps": "3"}, "max_steps to be an integer, actually: '3'"),
        ({"max_steps": 3.5}, "max_steps to be an integer, actually: 3.5"),
        ({"seed": None}, "seed to be an integer, actually: None"),
        ({"split": 5}, "split to be None or a str, actually: 5"),
        ({"use_book": 1}, "use_book to be True or False, actually: 1"),
        ({"alpha": True}, "alpha to be a number, actually: True"),
        ({"problems": len}, "problems to be a str, actually"),
        ({"coder": object}, r"coder to be a str.*train\(config, coder="),
    ],
)
def test_wrong_types_say_what_was_expected(change, message):
    with pytest.raises(TypeError, match=message):
        TrainConfig(**change)


def test_numbers_of_numpy_are_numbers():
    assert TrainConfig(seed=np.int64(3), alpha=np.float64(0.25)).seed == 3
