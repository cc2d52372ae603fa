"""An opponent that fails: no turn of its is left to the other side, and nobody else's answer suffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from gymnasium.error import ResetNeeded

from codea1_env.agents.llm.completions import BackendError
from codea1_env.integrations.one_side import OneSideEnv, OneSideVectorEnv
from codea1_env.integrations.side import OneSide, Side, SideAnswer
from codea1_env.integrations.trl_training import AnswerRewards, GameFactory, episode_rewards
from codea1_env.spaces import Observation

NAME = "starter/add_numbers"
TESTS = "\n".join(f"assert add_numbers({n}, 1) == {n + 1}" for n in range(8))
WRONG, RIGHT = "def add_numbers(a, b): return 0", "def add_numbers(a, b): return a + b"
LONG = WRONG + "".join(f"\nx{n} = {n}" for n in range(400))
OWN = "\n".join(f"assert add_numbers({n}, {-n}) == 0" for n in range(8))


class Limited:
    """Fails at long programs, and when told to."""

    def __init__(self, role: str = "tester") -> None:
        self.role, self.fails, self.asked = role, False, 0

    def act(self, observations: Sequence[Observation]) -> list[str]:
        self.asked += 1
        if self.fails or any(len(each["code"]) > 1000 for each in observations):
            raise BackendError("the prompt is longer than the context")
        return [TESTS if self.role == "tester" else RIGHT for _ in observations]


def side(role: Side = "coder", **settings: Any) -> tuple[OneSide, Limited]:
    opponent = Limited("tester" if role == "coder" else "coder")
    return OneSide(role, opponent, **settings), opponent


@pytest.mark.slow
def test_a_coder_cannot_play_the_turn_of_a_tester_that_failed() -> None:
    game, opponent = side()
    environment = GameFactory(game)()
    environment.reset(NAME)
    for _ in range(2):
        with pytest.raises(BackendError):
            environment.submit(LONG)
    environment.submit(OWN)  # a program that does not run
    assert episode_rewards([""], [environment]) == [0.0]

    env = OneSideEnv("coder", opponent)
    env.reset(options={"problem_id": NAME})
    with pytest.raises(BackendError):
        env.step(LONG)
    _, reward, over, _, _ = env.step(RIGHT)  # the step is repeated
    assert (reward, over) == (1.0, True)


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_tester_cannot_write_the_program_that_it_attacks(rounds: int) -> None:
    game, opponent = side("tester", max_rounds=rounds)
    environment = GameFactory(game)()
    if rounds == 2:
        environment.reset(NAME)
    opponent.fails = True
    with pytest.raises(BackendError):
        environment.submit(OWN) if rounds == 2 else environment.reset(NAME)
    opponent.fails = False
    with pytest.raises(ResetNeeded):
        environment.submit(WRONG)
    environment.reset(NAME)
    environment.submit(OWN)
    assert environment._rewards[-1] is not None


def test_one_failing_answer_leaves_the_others_alone() -> None:
    game, _ = side()
    scores = game.judge([SideAnswer(NAME, text) for text in (RIGHT, LONG, WRONG)])
    assert [score.reward for score in scores] == [1.0, None, 0.0]
    assert "context" in scores[1].info["error"]
    with pytest.raises(BackendError):
        game.judge([SideAnswer(NAME, LONG)])
    with pytest.raises(ValueError, match="Expect the task_id"):
        game.judge_one(SideAnswer("starter/nothing", RIGHT))
    pay = AnswerRewards(game, "passed")
    assert pay([RIGHT, LONG], [NAME, NAME]) == [1.0, None]


def test_games_of_a_vector_are_as_before_if_the_opponent_fails() -> None:
    env = OneSideVectorEnv(2, "coder", Limited())
    env.reset(options={"problem_id": NAME})
    with pytest.raises(BackendError):
        env.step([RIGHT, LONG])
    rewards = env.step([RIGHT, WRONG])[1]
    assert rewards.tolist() == [1.0, 0.0]


def test_an_opponent_that_is_gone_is_not_asked_for_each_answer() -> None:
    game, opponent = side()
    opponent.fails = True
    with pytest.raises(BackendError):
        game.judge([SideAnswer(NAME, RIGHT)] * 50)
    assert opponent.asked < 6


def test_wrong_use_of_a_reward_function() -> None:
    game, _ = side()
    with pytest.raises(ValueError, match="part to be one of reward, executes"):
        AnswerRewards(game, "pased")
    with pytest.raises(ValueError, match="column code"):
        AnswerRewards(OneSide("tester", "mutant"))(["assert add_numbers(1, 1) == 2"], [NAME])
