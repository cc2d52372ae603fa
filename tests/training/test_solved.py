"""pass@k while a run goes on: of the programs that a measurement asks for, which pass all held-out golden tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env import Sandbox
from codea1_env.agents import FixedAgent
from codea1_env.evaluation import HeldOut, hold_out, pass_rates
from codea1_env.problems import load_problems
from codea1_env.spaces import Observation
from codea1_env.training.measuring import _solved


@pytest.fixture(scope="module")
def held_out(sandbox: Sandbox) -> list[HeldOut]:
    return hold_out(load_problems("starter", "train")[:3], sandbox)


class Sometimes(FixedAgent):
    """Answers right so many times of four for each problem."""

    def __init__(self, held_out: Sequence[HeldOut], right: Sequence[int]) -> None:
        self.answers = [
            f"```python\n{item.problem.reference if number < times else 'def nothing(): pass'}\n```"
            for item, times in zip(held_out, right, strict=True)
            for number in range(4)
        ]

    def act(self, observations: Sequence[Observation]) -> Any:
        return self.answers


def test_pass_at_k(held_out: list[HeldOut], sandbox: Sandbox) -> None:
    rates = pass_rates(Sometimes(held_out, [4, 1, 0]), held_out, sandbox, 4)
    assert [each.held_out for each in rates.values()] == [1.0, 0.25, 0.0]
    assert _solved(rates.values(), 4) == {
        "held_out/pass@1": pytest.approx(5 / 12),
        "held_out/pass@4": pytest.approx(2 / 3),
    }
