"""One side of the game as an environment of gymnasium's, with the opponent inside."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from codea1_env import CODER, TESTER, MistakeBook, Sandbox, parallel_env
from codea1_env.agents import FixedAgent, Pool
from codea1_env.integrations.one_side import (
    OneSideEnv,
    OneSideVectorEnv,
    PoolEnv,
    PoolParallelEnv,
    PoolVectorEnv,
    PoolView,
)
from codea1_env.problems import load_problems
from codea1_env.spaces import Observation

PROBLEMS = load_problems("starter", "train")[:3]
EVEN = next(p for p in load_problems("starter", "train") if p.entry_point == "is_even")
WRONG, RIGHT = "def is_even(n): return True", "def is_even(n): return n % 2 == 0"
BREAKS = "assert is_even(3) == False"


class Repeats(FixedAgent):
    """Says the same thing whatever it sees, and counts the batches that it is asked for."""

    def __init__(self, answer: str) -> None:
        self.answer, self.batches = answer, []

    def act(self, observations: Sequence[Observation]) -> list[str]:
        self.batches.append(len(observations))
        return [self.answer] * len(observations)


@pytest.mark.parametrize("side", ["coder", "tester"])
@pytest.mark.filterwarnings("ignore")
def test_gymnasium_finds_nothing_wrong(side, sandbox: Sandbox) -> None:
    opponent = "golden" if side == "coder" else "reference"
    env = OneSideEnv(side, opponent, problems=PROBLEMS, sandbox=sandbox)
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("max_rounds", [1, 2])
def test_both_sides_get_what_the_environment_pays(sandbox: Sandbox, max_rounds) -> None:
    settings = {"problems": [EVEN], "sandbox": sandbox, "max_rounds": max_rounds}
    env = parallel_env(**settings)
    env.reset(seed=0)
    expected: dict[str, list[float]] = {CODER: [], TESTER: []}
    while env.agents:
        env.step({CODER: WRONG})
        _, rewards, *_ = env.step({TESTER: BREAKS})
        for agent, reward in rewards.items():
            expected[agent].append(reward)
    for side, opponent, action, agent in (
        ("coder", Repeats(BREAKS), WRONG, CODER),
        ("tester", Repeats(WRONG), BREAKS, TESTER),
    ):
        one = OneSideEnv(side, opponent, **settings)
        observation, info = one.reset(seed=0)
        assert info["active_agent"] == agent
        assert observation["code"] == ("" if side == "coder" else WRONG)
        paid, over = [], False
        while not over:
            observation, reward, over, truncated, info = one.step(action)
            assert not truncated
            paid.append(reward)
        assert paid == expected[agent]
        assert len(paid) == max_rounds
        with pytest.raises(gymnasium.error.ResetNeeded):
            one.step(action)


def test_a_vector_is_judged_together_and_begins_anew(sandbox: Sandbox) -> None:
    opponent = Repeats(BREAKS)
    env = OneSideVectorEnv(3, "coder", opponent, problems=[EVEN], sandbox=sandbox)
    observations, infos = env.reset(seed=0)
    assert env.observation_space.contains(observations)
    assert list(infos["active_agent"]) == [CODER] * 3
    observations, rewards, terminated, truncated, infos = env.step([WRONG, RIGHT, "no program"])
    assert opponent.batches == [3]
    assert rewards.tolist() == [0.0, 1.0, 0.0]
    assert terminated.all()
    assert not truncated.any()
    assert [seen["code"] for seen in infos["final_obs"]][:2] == [WRONG, RIGHT]
    assert set(observations["code"]) == {""}  # of the next episodes
    assert list(env.mistake_book.tests(EVEN.task_id)) == [BREAKS]
    # A lone game with the same book says the same.
    alone = OneSideEnv("coder", Repeats(BREAKS), problems=[EVEN], sandbox=sandbox)
    alone.reset(seed=0, options={"mistake_book": env.mistake_book})
    assert alone.step(RIGHT)[1] == 1.0


def test_a_tester_meets_the_next_program_at_once_and_games_may_share_a_book(sandbox) -> None:
    settings = {"problems": [EVEN], "sandbox": sandbox}
    opponent, book = Repeats(WRONG), MistakeBook()
    env = OneSideVectorEnv(2, "tester", opponent, **settings)
    env.reset(seed=0)
    observations, rewards, _, _, _ = env.step([BREAKS, ""])
    assert rewards[0] > rewards[1]
    assert opponent.batches == [2, 2]
    assert observations["code"] == (WRONG, WRONG)
    env = OneSideVectorEnv(2, "coder", Repeats(BREAKS), **settings, mistake_book=book)
    env.reset(options={"mistake_book": "keep"})
    env.step([WRONG, WRONG])
    assert env.mistake_book is book
    assert book.frequency(EVEN.task_id, BREAKS) == 2, "updated once a step"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"side": "referee"}, 'side to be "coder" or "tester", actually: \'referee\''),
        ({"opponent": "goldn"}, "Did you mean 'golden'"),
        ({"opponent": "no_such_file.py:Player"}, "no_such_file.py"),
        ({"side": "tester", "opponent": "golden"}, "coder to be one of mutant, planted, reference"),
        ({"max_rounds": 0}, "max_rounds to be a positive integer"),
    ],
)
def test_wrong_arguments_raise_at_once(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        OneSideEnv(**arguments)


PROGRAMS = [Pool(EVEN, (WRONG, RIGHT))]
TESTS = [Pool(EVEN, ("assert is_even(2) == True", BREAKS))]


def test_numbers_choose_from_a_pool(sandbox: Sandbox) -> None:
    games = OneSideVectorEnv(2, "coder", Repeats(BREAKS), problems=[EVEN], sandbox=sandbox)
    env = PoolVectorEnv(games, PoolView(PROGRAMS, PROGRAMS))
    seen, _ = env.reset(seed=0)
    assert seen.shape == (2, 4)
    assert env.observation_space.contains(seen)
    assert env.single_action_space == gymnasium.spaces.Discrete(2)
    seen, rewards, terminated, _, infos = env.step(np.array([0, 1]))
    assert rewards.tolist() == [0.0, 1.0]
    assert terminated.all()
    # The last observation shows the program as one of two, the next one none.
    assert [row.tolist() for row in infos["final_obs"]] == [[1, 1, 0, 1], [1, 0, 1, 1]]
    assert seen.tolist() == [[1, 0, 0, 0]] * 2


def test_both_players_of_the_parallel_environment_may_be_numbers(sandbox: Sandbox) -> None:
    views = {CODER: PoolView(PROGRAMS, PROGRAMS), TESTER: PoolView(TESTS, PROGRAMS, draws=2)}
    env = PoolParallelEnv(parallel_env(problems=[EVEN], sandbox=sandbox), views)
    parallel_api_test(env, num_cycles=4)
    env.reset(seed=0)
    seen, *_ = env.step({CODER: 0})
    assert seen[TESTER].tolist() == [1, 1, 0, 0]
    _, rewards, *_ = env.step({TESTER: [0, 1]})
    assert rewards[CODER] == 0.5


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([9999, 0], r"Discrete\(2\), actually: .*9999"),
        ([0.5, 0], r"Discrete\(2\), actually: .*0.5"),
    ],
)
def test_actions_outside_the_space_change_nothing(sandbox: Sandbox, actions, expected) -> None:
    games = OneSideVectorEnv(2, "coder", Repeats(BREAKS), problems=[EVEN], sandbox=sandbox)
    env = PoolVectorEnv(games, PoolView(PROGRAMS, PROGRAMS))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=expected):
        env.step(np.array(actions))
    assert not len(games.mistake_book)
    assert games.games[0].actor == CODER


def test_views_that_do_not_fit_are_refused(sandbox: Sandbox) -> None:
    others = [Pool(PROBLEMS[0], (WRONG,))]
    for side, opponent, view, said in (
        ("coder", BREAKS, PoolView(others, PROGRAMS), "Expect a pool for every problem"),
        ("coder", BREAKS, PoolView(TESTS, PROGRAMS), "actually those for 'starter/is_even' hold"),
        ("tester", WRONG, PoolView(PROGRAMS, PROGRAMS), "actually those for 'starter/is_even'"),
    ):
        games = OneSideVectorEnv(1, side, Repeats(opponent), problems=[EVEN], sandbox=sandbox)
        with pytest.raises(ValueError, match=said):
            PoolVectorEnv(games, view)
    for nothing in ([], [Pool(EVEN, ())]):
        with pytest.raises(ValueError, match="Expect"):
            PoolView(nothing, PROGRAMS)


@pytest.mark.slow
def test_ppo_by_hand_learns_from_what_it_sees(monkeypatch, capsys) -> None:
    """The program of docs/tutorials/one_side.md."""
    pytest.importorskip("torch")
    example = Path(__file__).parents[2] / "examples" / "ppo_one_side.py"
    main, rates = runpy.run_path(str(example))["main"], []
    for options in (["--updates", "75"], ["--updates", "50", "--blind"]):
        monkeypatch.setattr(sys, "argv", [example.name, *options])
        main()
        rates.append(float(capsys.readouterr().out.split()[-1]))
    seeing, blind = rates
    assert seeing > 0.85
    assert blind < seeing - 0.1


@pytest.mark.parametrize(
    ("seed", "error", "said"),
    [
        ([1], ValueError, "Expect 2 seeds, one for each game, actually: 1"),
        ([1, 2, 3], ValueError, "Expect 2 seeds, one for each game, actually: 3"),
        ((1, 2), TypeError, r"an integer or a list of 2 seeds, actually: \(1, 2\)"),
        ("1", TypeError, "an integer or a list of 2 seeds, actually: '1'"),
    ],
)
def test_seeds_that_are_none(seed, error, said, sandbox):
    games = OneSideVectorEnv(2, "coder", Repeats(BREAKS), problems=[EVEN], sandbox=sandbox)
    with pytest.raises(error, match=said):
        games.reset(seed=seed)
    games.reset(seed=np.int64(3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("side", ["coder", "tester"])
def test_gymnasium_makes_one_side_by_its_id(side: str, sandbox: Sandbox) -> None:
    settings = {"side": side, "problems": PROBLEMS[:2], "sandbox": sandbox}
    texts = gymnasium.make("codea1_env/OneSide-v1", **settings)
    seen, _ = texts.reset(seed=1)
    assert texts.observation_space.contains(seen)
    numbers = gymnasium.make("codea1_env/OneSidePool-v1", **settings)
    check_env(numbers.unwrapped, skip_render_check=True)
    for name in ("OneSide", "OneSidePool"):
        many = gymnasium.make_vec(f"codea1_env/{name}-v1", num_envs=2, **settings)
        seen, _ = many.reset(seed=1)
        assert many.observation_space.contains(seen)
        _, rewards, terminated, *_ = many.step(many.action_space.sample())
        assert (len(rewards), list(terminated)) == (2, [True, True])


def test_one_environment_of_numbers(sandbox: Sandbox) -> None:
    env = OneSideEnv("coder", Repeats(BREAKS), problems=[EVEN], sandbox=sandbox)
    numbers = PoolEnv(env, PoolView(PROGRAMS, PROGRAMS))
    seen, info = numbers.reset(seed=0)
    assert (seen.tolist(), info["active_agent"]) == ([1, 0, 0, 0], CODER)
    seen, reward, over, _, _ = numbers.step(1)
    assert (seen.tolist(), reward, over) == ([1, 0, 1, 1], 1.0, True)
