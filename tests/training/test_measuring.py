"""Measuring: problems that nobody is trained on, and pass@k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from codea1_env.agents import CopierTester, FixedAgent, GoldenTester, ReferenceCoder
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.evaluation import HeldOut, hold_out, pass_rates
from codea1_env.problems import load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import Agent
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.training import PlayerConfig, TesterConfig
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import Unseen, _solved, unseen_problems
from codea1_env.training.players import Players

TRAINED = load_problems("starter", "train")[30:50]


def config(**changes: Any) -> TrainConfig:
    models = {
        "coder": PlayerConfig("llm", learning_rate=1e-5),
        "tester": TesterConfig("llm", learning_rate=1e-5),
    }
    return TrainConfig(**({"eval_problems": 5, "eval_samples": 3} | models | changes))


class StandIn(LanguagePlayer):
    """A stand-in for a language model: another player's answers."""

    def __init__(self, player: Agent) -> None:
        self._player = player

    def act(self, observations: Sequence[Observation]) -> list[str]:
        return list(self._player.act(observations))


def players(coder: Any, tester: Any) -> Players:
    return Players(coder, tester, coder_learns=False, tester_learns=False)


def test_they_are_others_as_hard_and_bounded_in_number() -> None:
    found = unseen_problems(config(), TRAINED)
    assert len(found) == 5
    assert {problem.metadata["split"] for problem in found} == {"eval"}
    levels = {problem.metadata["difficulty"] for problem in TRAINED}
    assert {problem.metadata["difficulty"] for problem in found} <= levels
    assert found == unseen_problems(config(seed=1), TRAINED), "seeds have the same problems"
    assert unseen_problems(config(eval_problems=0), TRAINED) == []
    assert unseen_problems(TrainConfig(eval_problems=5), TRAINED) == []  # tables answer no others


def test_without_a_split_they_are_what_is_left() -> None:
    everything = load_problems("starter")
    found = unseen_problems(config(split=None, eval_problems=200), everything[:10])
    assert found
    assert not {each.task_id for each in found} & {each.task_id for each in everything[:10]}


def test_who_knows_everything_gets_everything(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    whole = RefereeConfig(RewardConfig(num_tests=64))
    unseen = Unseen(problems, Referee(sandbox, whole), settings)
    golden = StandIn(GoldenTester(problems, None))
    row, rows = unseen.measure(players(StandIn(ReferenceCoder(problems)), golden))
    assert [each["task_id"] for each in rows] == [problem.task_id for problem in problems]
    assert {each["pass_rate"] for each in rows} == {1.0}
    assert {each["kill_rate"] for each in rows} - {None} == {1.0}, "None: it has no mutants"
    for name in ("pass_rate", "kill_rate", "new_kill_rate"):
        assert row[f"unseen/{name}"] == 1.0
    assert row["unseen/copier_kill_rate"] < 1.0


def test_a_copier_gets_nothing_beyond_itself(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    unseen = Unseen(problems, Referee(sandbox), settings)
    row, _ = unseen.measure(players(ReferenceCoder(problems), StandIn(CopierTester(None))))
    assert row["unseen/kill_rate"] == row["unseen/copier_kill_rate"]
    assert row["unseen/new_kill_rate"] == 0.0
    assert row["unseen/pass_rate"] is None  # no language model


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
