"""The settings for prime-rl, read by its own loader. It is not on the package index: install prime-rl-configs of its repository."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers")
rl: Any = pytest.importorskip("prime_rl.configs.rl")

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = EXAMPLES / "prime_rl.toml"


@pytest.mark.parametrize(
    ("name", "side", "opponent", "algorithm"),
    [
        ("prime_rl", "tester", "mutant", "grpo"),
        ("prime_rl_both", "both", None, "rae"),
        ("prime_rl_pinned", "both", None, "grpo"),
    ],
)
def test_the_examples_are_valid(name: str, side: str, opponent: str | None, algorithm: str) -> None:
    text = (EXAMPLES / f"{name}.toml").read_text()
    settings = rl.RLConfig.model_validate(tomllib.loads(text)).orchestrator
    [source] = settings.train.source
    found = (source.env.side, source.env.opponent, source.env.taskset.split)
    assert found == (side, opponent, "train")
    assert settings.algo.type == algorithm
    assert (settings.group_size > 1) == (algorithm == "grpo")
    for seat in (source.env.coder, source.env.tester):
        assert (seat.runtime.type, seat.max_turns) == ("subprocess", 1)
    assert (source.env.tester.model is not None) == (name == "prime_rl_pinned")


def test_a_side_that_does_not_exist() -> None:
    text = SETTINGS.read_text().replace('side = "tester"', 'side = "judge"')
    with pytest.raises(ValueError, match=r"env\.side"):
        rl.RLConfig.model_validate(tomllib.loads(text))
