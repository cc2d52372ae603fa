from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from codea1_env.training.config import TrainConfig
from codea1_env.training.run_folder import to_toml


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


def test_toml_gives_the_configuration_back():
    config = TrainConfig(
        problems='a "strange" \\ path\x7f\n\u00e9\U0001f600.jsonl',
        split=None,
        learning_rate=1e-6,
        seed=2**60,
    )
    table = tomllib.loads(to_toml(config))
    assert TrainConfig(**{"split": None, **table}) == config


def test_the_folder_is_no_part_of_the_configuration():
    assert to_toml(TrainConfig(output_dir=Path("here"))) == to_toml(TrainConfig())


def test_every_field_is_documented():
    source = Path(TrainConfig.__init__.__globals__["__file__"]).read_text(encoding="utf-8")
    lines = source.splitlines()
    for field in dataclasses.fields(TrainConfig):
        line = next(i for i, text in enumerate(lines) if text.startswith(f"    {field.name}: "))
        assert lines[line + 1].startswith('    """'), f"{field.name} has no docstring"


def test_the_output_folder_may_be_text():
    assert TrainConfig(output_dir="runs/one").output_dir == Path("runs/one")
