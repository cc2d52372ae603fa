"""Opponents by name, wrong names, and what threads ask at the same time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_server import chat_server
from gymnasium.error import ResetNeeded

from codea1_env import Sandbox
from codea1_env.agents.llm.completions import BackendError
from codea1_env.integrations.one_side import OneSideEnv, OneSideVectorEnv
from codea1_env.integrations.opponents import PastPlayers, find_opponent
from codea1_env.integrations.side import OneSide, Side, SideAnswer, Together
from codea1_env.integrations.trl_training import AnswerRewards, GameFactory, episode_rewards
from codea1_env.integrations.verl_reward import compute_score
from codea1_env.problems import load_problems
from codea1_env.spaces import Observation
from codea1_env.support.extras import MissingExtraError, check_version
from codea1_env.training import TrainConfig, train

ADD = "starter/add_numbers"
RIGHT = SideAnswer(ADD, "def add_numbers(a, b): return a + b")


@pytest.mark.slow
def test_a_model_behind_a_server_is_the_opponent(sandbox: Sandbox) -> None:
    asked = []

    def answer(chat: list) -> str:
        asked.append(chat[-1]["content"])
        return "assert add_numbers(1, 2) == 3\nassert add_numbers(1, 2) == 4"

    with chat_server(answer) as server:
        side = OneSide("coder", f"{server.url}#prepared", sandbox=sandbox)
        [score] = side.judge([RIGHT])
    assert score.reward == 1.0
    assert "Write 8 assert statements" in asked[0]
    assert "return a + b" in asked[0]


@pytest.mark.slow
def test_players_of_a_run_and_of_its_earlier_steps(tmp_path: Path, sandbox: Sandbox) -> None:
    run = tmp_path / "run"
    sizes = dict.fromkeys(("max_problems", "problems_per_step"), 3)
    sizes |= dict.fromkeys(("max_steps", "num_generations", "num_suites", "eval_samples"), 2)
    train(TrainConfig(output_dir=run, save_steps=1, **sizes), sandbox=sandbox)
    problems = load_problems("starter", "train")[:3]
    every = run / "checkpoints"
    for side, name in (("coder", run), ("tester", every / "step_1"), ("tester", every)):
        game = OneSide(side, str(name), problems=problems, sandbox=sandbox)
        questions = game.questions()
        assert [bool(each.code) for each in questions] == [side == "tester"] * 3
        answers = [SideAnswer(each.task_id, "x", each.code) for each in questions]
        assert len(game.judge(answers)) == 3
    past = find_opponent(str(run / "checkpoints"), "coder", problems, sandbox)
    assert isinstance(past, PastPlayers)
    assert len(past.players) >= 2
    with pytest.raises(ValueError, match="a tabular player knows no others"):
        OneSide("coder", str(run), sandbox=sandbox)
    with pytest.raises(ValueError, match="expect step to be one of"):
        OneSide("coder", str(run / "checkpoints" / "step_9"), problems=problems, sandbox=sandbox)


def test_a_wrong_task_and_a_wrong_wording(sandbox: Sandbox) -> None:
    side = OneSide("coder", "copier", sandbox=sandbox)
    with pytest.raises(ValueError, match="Did you mean 'starter/add_numbers'"):
        side.judge([SideAnswer("starter/add_number", "")])
    with pytest.raises(ValueError, match="Expect prompts to be one of few-shot, detailed"):
        OneSide(prompts="loud")


def test_an_answer_of_10_mb_is_judged(sandbox: Sandbox) -> None:
    side = OneSide("coder", "copier", sandbox=sandbox)
    [score] = side.judge([SideAnswer(ADD, "x" * 10_000_000)])
    assert (score.reward, score.parts["executes"]) == (0.0, 0.0)


def test_threads_are_judged_together(sandbox: Sandbox) -> None:
    side = OneSide("coder", "copier", sandbox=sandbox)
    sizes, judge, started = [], side.judge, threading.Barrier(40)
    side.judge_one = Together(lambda answers: sizes.append(len(answers)) or judge(answers))

    def ask(number: int) -> float | None:
        started.wait()
        return side.judge_one(RIGHT if number % 2 else SideAnswer(ADD, "nothing")).reward

    with ThreadPoolExecutor(40) as threads:
        assert list(threads.map(ask, range(40))) == [0.0, 1.0] * 20
    assert sum(sizes) == 40
    assert len(sizes) < 20


def test_an_error_reaches_everybody_and_the_next_batch_is_judged() -> None:
    def work(numbers: list[int]) -> list[int]:
        if 0 in numbers:
            raise ValueError("zero")
        return numbers

    together = Together(work)
    with pytest.raises(ValueError, match="zero"):
        together(0)
    assert together(1) == 1


def test_verl_pays_rows_of_ours_only() -> None:
    with pytest.raises(ValueError, match="data_source"):
        compute_score("gsm8k", "", "{}")


def test_a_library_that_is_missing_or_old() -> None:
    with pytest.raises(MissingExtraError, match=r"codea1-env\[verifiers\]"):
        check_version("no-such-package", "1.0", "verifiers")
    with pytest.raises(MissingExtraError, match=r"Expect numpy 99.1 or newer, actually: \d"):
        check_version("numpy", "99.1", "verifiers")


NAME = "starter/add_numbers"
TESTS = "\n".join(f"assert add_numbers({n}, 1) == {n + 1}" for n in range(8))
WRONG, GOOD = "def add_numbers(a, b): return 0", "def add_numbers(a, b): return a + b"
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
        return [TESTS if self.role == "tester" else GOOD for _ in observations]


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
    _, reward, over, _, _ = env.step(GOOD)  # the step is repeated
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
    scores = game.judge([SideAnswer(NAME, text) for text in (GOOD, LONG, WRONG)])
    assert [score.reward for score in scores] == [1.0, None, 0.0]
    assert "context" in scores[1].info["error"]
    with pytest.raises(BackendError):
        game.judge([SideAnswer(NAME, LONG)])
    with pytest.raises(ValueError, match="Expect the task_id"):
        game.judge_one(SideAnswer("starter/nothing", GOOD))
    pay = AnswerRewards(game, "passed")
    assert pay([GOOD, LONG], [NAME, NAME]) == [1.0, None]


def test_games_of_a_vector_are_as_before_if_the_opponent_fails() -> None:
    env = OneSideVectorEnv(2, "coder", Limited())
    env.reset(options={"problem_id": NAME})
    with pytest.raises(BackendError):
        env.step([GOOD, LONG])
    rewards = env.step([GOOD, WRONG])[1]
    assert rewards.tolist() == [1.0, 0.0]


def test_an_opponent_that_is_gone_is_not_asked_for_each_answer() -> None:
    game, opponent = side()
    opponent.fails = True
    with pytest.raises(BackendError):
        game.judge([SideAnswer(NAME, GOOD)] * 50)
    assert opponent.asked < 6


def test_wrong_use_of_a_reward_function() -> None:
    game, _ = side()
    with pytest.raises(ValueError, match="part to be one of reward, executes"):
        AnswerRewards(game, "pased")
    with pytest.raises(ValueError, match="column code"):
        AnswerRewards(OneSide("tester", "mutant"))(["assert add_numbers(1, 1) == 2"], [NAME])
