from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from codea1_env import Sandbox
from codea1_env.agents import FixedAgent, ReferenceCoder
from codea1_env.evaluation import HeldOut, hold_out, pass_rates
from codea1_env.problems import load_problems
from codea1_env.spaces import Observation
from codea1_env.training.solved import OverheardCoder, solved_metrics


@pytest.fixture(scope="module")
def held_out(sandbox: Sandbox) -> list[HeldOut]:
    return hold_out(load_problems("starter", "train")[:3], sandbox)


class Sometimes(FixedAgent):
    """Answers right so many times of four for each problem."""

    def __init__(self, held_out: Sequence[HeldOut], right: Sequence[int], lazy: bool) -> None:
        self.lazy = lazy
        self.answers = [
            f"```python\n{item.problem.reference if number < times else 'def nothing(): pass'}\n```"
            for item, times in zip(held_out, right, strict=True)
            for number in range(4)
        ]

    def act(self, observations: Sequence[Observation]) -> Any:
        return iter(self.answers) if self.lazy else self.answers


@pytest.mark.parametrize("lazy", [False, True])
def test_pass_at_k(held_out: list[HeldOut], sandbox: Sandbox, lazy: bool) -> None:
    coder = OverheardCoder(Sometimes(held_out, [4, 1, 0], lazy))
    rates = pass_rates(coder, held_out, sandbox, 4)
    assert [each.held_out for each in rates.values()] == [1.0, 0.25, 0.0]
    found = solved_metrics(coder, held_out, sandbox, 4)
    assert found == {
        "held_out/pass@1": pytest.approx(5 / 12),
        "held_out/pass@4": pytest.approx(2 / 3),
    }


def test_one_sample_has_one_k(held_out: list[HeldOut], sandbox: Sandbox) -> None:
    coder = OverheardCoder(ReferenceCoder([item.problem for item in held_out]))
    pass_rates(coder, held_out, sandbox, 1)
    assert solved_metrics(coder, held_out, sandbox, 1) == {"held_out/pass@1": 1.0}


def test_what_is_unknown_is_none(held_out: list[HeldOut], sandbox: Sandbox) -> None:
    coder = OverheardCoder(ReferenceCoder([]))
    assert solved_metrics(coder, held_out, sandbox, 2) == {
        "held_out/pass@1": None,
        "held_out/pass@2": None,
    }


def test_it_is_the_coder_in_all_else(tmp_path: Any) -> None:
    class Learns(FixedAgent):
        seen: tuple[str, ...] = ()

        def act(self, observations: Sequence[Observation]) -> Iterator[str]:
            return iter(())

        def learn(self, experience: Any) -> dict[str, float]:
            return {"loss": 1.0}

        def save(self, path: Any) -> None:
            self.seen += ("save",)

        def load(self, path: Any) -> None:
            self.seen += ("load",)

    own = Learns()
    coder = OverheardCoder(own)
    assert coder.learn([]) == {"loss": 1.0}
    coder.save(tmp_path)
    coder.load(tmp_path)
    assert own.seen == ("save", "load")
