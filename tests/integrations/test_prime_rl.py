"""The settings for prime-rl, read by its own loader. It is not on the package index: install prime-rl-configs of its repository."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers")
rl: Any = pytest.importorskip("prime_rl.configs.rl")

SETTINGS = Path(__file__).parents[2] / "examples" / "prime_rl.toml"


@pytest.mark.parametrize(
    ("side", "opponent"), [("coder", "golden"), ("tester", "mutant"), ("both", "mutant")]
)
def test_the_example_is_valid(side: str, opponent: str) -> None:
    text = SETTINGS.read_text().replace('side = "tester"', f'side = "{side}"')
    text = text.replace('opponent = "mutant"', f'opponent = "{opponent}"')
    [source] = rl.RLConfig.model_validate(tomllib.loads(text)).orchestrator.train.source
    found = (source.env.side, source.env.opponent, source.env.taskset.split)
    assert found == (side, opponent, "train")


def test_a_side_that_does_not_exist() -> None:
    text = SETTINGS.read_text().replace('side = "tester"', 'side = "judge"')
    with pytest.raises(ValueError, match=r"env\.side"):
        rl.RLConfig.model_validate(tomllib.loads(text))
