"""Opponents by name, wrong names, and what threads ask at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chat_server import chat_server

from codea1_env import Sandbox
from codea1_env.integrations.opponents import PastPlayers, find_opponent
from codea1_env.integrations.side import OneSide, SideAnswer, Together
from codea1_env.integrations.verl_reward import compute_score
from codea1_env.problems import load_problems
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
