"""The suite for libraries: the official tests of PettingZoo and Gymnasium, seeds, and actions outside the space."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from codea1_env import suite
from codea1_env.suite import IDS, SuiteError
from codea1_env.suite.tasks import find_task


@pytest.mark.parametrize("id", IDS["v1"])
def test_the_official_tests_pass(id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(suite.make(id, 1000, api="aec"), num_cycles=12)
        parallel_api_test(suite.make(id, 1000), num_cycles=12)
        seed_test(lambda: suite.make(id, 1000, api="aec"), num_cycles=6)
        parallel_seed_test(lambda: suite.make(id, 1000), num_cycles=6)
        for side in ("coder", "tester"):
            if side in find_task(id).tracks:
                check_env(suite.make(id, 1000, api="gym", side=side))


def test_a_seed_given_to_reset_reaches_the_opponent_and_not_the_world() -> None:
    env = suite.make("rare-faults/0", 1000, api="gym", side="tester")
    table = env.games.rounds.world.table.copy()
    shown = {}
    for seed in (1, 2, 1):
        seen = [env.reset(seed=seed)[0]]
        for _ in range(40):
            env.step([0, 1])
            seen.append(env.reset()[0])
        if seed in shown:
            assert (shown[seed] == seen).all()
        shown[seed] = np.array(seen)
    assert (shown[1] != shown[2]).any()
    assert (env.games.rounds.world.table == table).all()


def test_many_games_at_once_are_the_games_one_by_one() -> None:
    games = suite.make("reading/2", 1001, api="vector", num_envs=64)
    env, rng = suite.make("reading/2", 1001), np.random.default_rng(0)
    for _ in range(3):
        programs, tests = rng.integers(16, size=64), rng.integers(256, size=(64, 4))
        coder_sees, tester_sees = games.begin(), games.show(programs)
        coder, tester = games.end(tests)
        for number in range(64):
            seen, _ = env.reset()
            assert (seen["coder_0"] == coder_sees[number]).all()
            seen, *_ = env.step({"coder_0": programs[number]})
            assert (seen["tester_0"] == tester_sees[number]).all()
            _, rewards, *_ = env.step({"tester_0": tests[number]})
            assert rewards == {"coder_0": coder[number], "tester_0": tester[number]}


def test_one_side_of_many_games_is_that_of_one() -> None:
    one = suite.make("rare-faults/0", 1000, api="gym", side="coder")
    many = suite.make("rare-faults/0", 1000, api="gym", side="coder", num_envs=32)
    first, _ = one.reset(seed=3)
    seen, _ = many.reset(seed=3)
    assert (seen[0] == first).all()
    actions = np.random.default_rng(0).integers(16, size=32)
    _, rewards, terminated, truncated, infos = many.step(actions)
    assert terminated.all()
    assert not truncated.any()
    assert infos["final_obs"].shape == (32, 9)
    for number, action in enumerate(actions):
        if number:
            one.reset()
        assert one.step(action)[1] == rewards[number]


def test_gymnasium_knows_one_side() -> None:
    env = gymnasium.make("codea1_env/Suite-v1", task="reading/2", seed=1000, side="tester")
    games = gymnasium.make_vec(
        "codea1_env/Suite-v1", 16, task="reading/2", seed=1000, side="tester"
    )
    assert (env.reset(seed=1)[0] == games.reset(seed=1)[0][0]).all()
    assert env.step(np.array([1, 2, 3, 4]))[1] == games.step(np.tile([1, 2, 3, 4], (16, 1)))[1][0]


def test_a_copy_is_a_game_of_its_own() -> None:
    env = suite.make("rare-faults/0", 1000)
    env.reset()
    env.step({"coder_0": 3})
    other = copy.deepcopy(env)
    ended = [each.step({"tester_0": [5, 6]})[1] for each in (env, other)]
    assert ended[0] == ended[1]
    assert env.games.rounds.ended == other.games.rounds.ended == 1


def test_each_episode_ends_once(tmp_path: Path) -> None:
    games = suite.make("cycling/0", 0, record=tmp_path, api="vector", num_envs=4)
    with pytest.raises(SuiteError, match="Expect begin"):
        games.show([1] * 4)
    for _ in range(2):
        games.begin()
        with pytest.raises(SuiteError, match="Expect show"):
            games.end([[1]] * 4)
        games.show([1] * 4)
        twin = copy.copy(games)
        games.end([[1]] * 4)
        with pytest.raises(SuiteError, match="Expect show"):
            games.end([[1]] * 4)
        with pytest.raises(SuiteError, match="is over"):
            twin.end([[1]] * 4)
    for number in (None, 2):
        env = suite.make("cycling/0", 0, record=tmp_path, api="gym", side="coder", num_envs=number)
        action = 1 if number is None else [1, 1]
        with pytest.raises(SuiteError, match="Expect reset"):
            env.step(action)
        env.reset()
        env.step(action)
    one = suite.make("cycling/0", 0, api="gym", side="coder")
    one.reset()
    one.step(1)
    with pytest.raises(SuiteError, match="Expect reset"):
        one.step(1)


def test_a_copy_of_an_environment_with_a_record_writes_nothing(tmp_path: Path) -> None:
    env = suite.make("cycling/0", 0, record=tmp_path)
    env.reset()
    env.step({"coder_0": 3})
    for cell in range(16):
        copy.deepcopy(env).step({"tester_0": [cell]})
    assert env.games.rounds.ended == 0
    twin = copy.copy(env)
    env.step({"tester_0": [1]})
    assert env.games.rounds.ended == 1
    with pytest.raises(SuiteError, match="before end"):
        twin.step({"tester_0": [1]})


def test_a_closed_record_does_not_go_on(tmp_path: Path) -> None:
    env = suite.make("cycling/0", 0, record=tmp_path)
    env.reset()
    env.close()
    with pytest.raises(SuiteError, match="it was closed"):
        env.reset()


def test_with_a_record_no_seed_chooses_the_opponent(tmp_path: Path) -> None:
    games = suite.make("rare-faults/2", 0, api="gym", side="tester", num_envs=64)
    first = games.reset(seed=0)[0]
    assert (games.reset(seed=5)[0] != first).any()
    env = suite.make("rare-faults/2", 0, record=tmp_path, api="gym", side="tester", num_envs=64)
    assert (env.reset(seed=5)[0] == first).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "reading/9"}, "Did you mean reading/2"),
        ({"id": "reading/2", "version": "v7"}, "Expect one of v1"),
        ({"id": "reading/2", "api": "gym", "side": "coder"}, "Expect a track of reading/2: both, tester"),
        ({"id": "reading/2", "api": "gym"}, "Expect a side, coder or tester, with api='gym' alone"),
        ({"id": "cycling/0", "api": "gym", "side": "both"}, "Expect a side, coder or tester"),
        ({"id": ["cycling/0"]}, "Expect an id of codea1-suite"),
        ({"id": "reading/2", "api": "rllib"}, "Expect api to be parallel"),
        ({"id": "reading/2", "seed": -1}, "Expect a seed of 0 or more"),
        ({"id": "reading/2", "num_envs": 4}, "Expect num_envs"),
        ({"id": "reading/2", "num_envs": 1.5, "api": "vector"}, "Expect num_envs"),
        ({"id": "reading/2", "num_envs": "3", "api": "vector"}, "Expect num_envs"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_and_begin_no_record(
    arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError, match=message):
        suite.make(**arguments, record=tmp_path)
    assert not [*tmp_path.iterdir()]


def test_actions_outside_the_space_are_named_and_play_nothing() -> None:
    env = suite.make("rare-faults/0", 1000)
    env.reset()
    for action in (16, -1, 1.5, "1", None, [1]):
        with pytest.raises(SuiteError, match="Expect "):
            env.step({"coder_0": action})
    with pytest.raises(SuiteError, match="whose turn it is"):
        env.step({"tester_0": [1, 2]})
    env.step({"coder_0": 15})
    for tests in ([1, 256], [1], [1, 2, 3], [-1, 2], [0.5, 1.0], 3):
        with pytest.raises(SuiteError, match="Expect "):
            env.step({"tester_0": tests})
    assert env.games.rounds.ended == 0
    _, _, ended, _, _ = env.step({"tester_0": [1, 255]})
    assert all(ended.values())
    with pytest.raises(SuiteError, match="the episode is over"):
        env.step({"coder_0": 1})
