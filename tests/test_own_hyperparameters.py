"""Ranges of hyperparameters, settings that have no effect, and presets made short: said before anything runs."""

from __future__ import annotations

import pytest

from codea1_env.agents import make_algorithm
from codea1_env.cli.app import run as main
from codea1_env.training import TrainConfig

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("ppo", {"entropy": -1.0}),
        ("reinforce", {"entropy": float("inf")}),
    ],
)
def test_hyperparameters_out_of_range_are_refused(name, own):
    with pytest.raises(ValueError, match=next(iter(own))):
        make_algorithm(name, {"learning_rate": 1.0}, own=own)


def test_rounds_of_the_tester_need_rounds():
    with pytest.raises(ValueError, match="max_rounds"):
        TrainConfig(tester_rounds="first")
    assert TrainConfig(tester_rounds="first", max_rounds=2).tester_rounds == "first"


def test_a_preset_made_short_divides_its_batches(capsys):
    assert main(["train", "--preset", "qwen2.5-coder-7b", "--quick", "--dry-run"]) == 0
    assert "max_steps = 4" in capsys.readouterr().out
