from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import random
from typing import Any

import numpy as np
import pytest
from additions import ADD, PROBLEMS, RIGHT, SUITE, WRONG, play, start

from codea1_env import CODER, TESTER
from codea1_env.code_a1_v1 import env, parallel_env, raw_env
from codea1_env.mistake_book import MistakeBook
from codea1_env.referee import RefereeConfig
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Sandbox

ACTIONS = {
    CODER: [RIGHT, WRONG, "def add(a, b):\n    return 3", "", "def is_even(n):\n    return not n % 2"],
    TESTER: [SUITE, "assert add(1, 2) == 4", "assert is_even(3) == False\nassert is_even(8)", "", "("],
}  # fmt: skip


@pytest.fixture
def make(sandbox):
    """A parallel environment over two small problems, in the sandbox of all tests."""
    return functools.partial(parallel_env, problems=PROBLEMS, sandbox=sandbox)


# Turns and rewards


def test_the_tester_sees_the_program_of_this_turn(make: Any) -> None:
    game = make(max_rounds=2)
    observations = start(game)
    assert observations[TESTER]["code"] == ""
    for program in (WRONG, RIGHT):
        observations, rewards, _, _, infos = game.step({CODER: program})
        assert observations[TESTER]["code"].strip() == program.strip()
        assert observations[TESTER]["turn"] == 1
        assert infos[TESTER]["active_agent"] == TESTER
        assert rewards == {CODER: 0.0, TESTER: 0.0}
        game.step({TESTER: SUITE})


def test_both_are_paid_in_the_testers_step(make: Any) -> None:
    config = RefereeConfig(rewards=RewardConfig(num_tests=4))
    game = make(referee=config)
    start(game)
    observations, rewards, terminations, truncations, infos = play(game, WRONG, SUITE)
    # WRONG passes add(0, 0) only; four valid tests of four, three of which break it, no history.
    assert rewards == {CODER: 0.25, TESTER: 0.5 * 1 + 0.5 * 0.75}
    assert terminations == {CODER: True, TESTER: True}
    assert truncations == {CODER: False, TESTER: False}
    assert game.agents == []
    for agent in (CODER, TESTER):
        info = infos[agent]
        assert info["active_agent"] is None
        assert info["task_id"] == "test/add"
        assert info["scorable"] is True
        ran = {"problem": None, "executes": True, "outcome": "pass", "message": ""}
        assert info["program"] == ran
        assert [test["outcome"] for test in info["tests"]] == ["fail", "pass", "fail", "fail"]
        assert [test["status"] for test in info["tests"]] == ["kept"] * 4
        paid = {"code": 0.25, "test": 0.875, "validity": 1.0, "adversarial": 0.75}
        assert info["rewards"] == paid
        assert info["book"] == {"size": 3, "problem_size": 3, "cleared": False}
        assert observations[agent]["round"] == 1
    assert infos[CODER]["tests"] is not infos[TESTER]["tests"]


def test_the_turn_based_form_pays_the_same(sandbox: Sandbox, make: Any) -> None:
    parallel = make()
    start(parallel)
    expected = play(parallel, WRONG, SUITE)[1]
    game = env(problems=PROBLEMS, sandbox=sandbox)
    game.reset(options={"problem_id": ADD.task_id})
    game.step(WRONG)
    game.step(SUITE)
    paid = {}
    for agent in game.agent_iter():
        observation, reward, terminated, _, info = game.last()
        paid[agent] = reward
        assert terminated
        assert observation["round"] == 1
        assert info["scorable"] is True
        game.step(None)
    assert paid == expected
    assert game.agents == []


def test_rewards_accumulate_over_rounds_in_the_turn_based_form(sandbox: Sandbox) -> None:
    game = raw_env(problems=PROBLEMS, sandbox=sandbox, max_rounds=2)
    game.reset(options={"problem_id": ADD.task_id})
    game.step(RIGHT)
    game.step("assert add(1, 2) == 3")
    assert game.agent_selection == CODER
    assert game.last()[1] == 1.0  # the coder's reward of round 1, before it acts again
    game.step(RIGHT)
    assert game.rewards == {CODER: 0.0, TESTER: 0.0}
    assert game.last()[1] == pytest.approx(1 / 16)  # the tester's: validity 1/8, nothing broken


def test_the_coder_sees_in_round_two_what_broke_its_program(make: Any) -> None:
    game = make(max_rounds=2)
    start(game)
    observations, _, terminations, _, infos = play(game, WRONG, SUITE + "\nassert add(5) > 0")
    seen = observations[CODER]
    assert terminations == {CODER: False, TESTER: False}
    assert infos[CODER]["active_agent"] == CODER
    assert (seen["round"], seen["turn"]) == (1, 0)
    assert seen["code"].strip() == WRONG.strip()
    assert seen["tests"] == "assert add(1, 2) == 3"  # half of three, rounded down
    assert "assert add(0, 0) == 0" not in seen["tests"]
    line = next(row for row in seen["feedback"].split("\n") if "add(1, 2)" in row)
    assert "3" in line.split(":", 1)[1], "the expected value"
    assert "-1" in line.split(":", 1)[1], "the actual value"
    assert "add(5) > 0" in seen["feedback"]
    observations, rewards, terminations, _, infos = play(game, RIGHT, SUITE)
    assert rewards[CODER] == 1.0
    assert terminations == {CODER: True, TESTER: True}
    assert observations[CODER]["tests"] == ""
    assert [test["outcome"] for test in infos[CODER]["history"]] == ["pass"] * 2
    assert len(game.mistake_book) == 1  # the one that was shown


def test_nothing_of_the_reference_or_the_golden_tests_is_shown(make: Any) -> None:
    game = make(max_rounds=3, render_mode="ansi")
    shown = [start(game)]
    for program in (WRONG, "def add(a, b):\n    raise ValueError", ""):
        shown.append(game.step({CODER: program}))
        shown.append(
            game.step({TESTER: SUITE + "\nassert add(1, 1) == 3\nassert add(None, 1) == 0"})
        )
        shown.append(game.render())
        shown.append(game.state())
    assert "add(1, 1)" in repr(shown)
    assert "secret_of_the_reference" not in repr(shown)
    assert "17, 25" not in repr(shown)


# Spaces


def test_observations_lie_in_their_spaces_at_every_step(make: Any) -> None:
    rng = np.random.default_rng(1)
    game = make(max_rounds=3)
    observations, infos = game.reset(seed=1)
    steps = 0
    while game.agents:
        assert all(
            observations[agent] in game.observation_space(agent) for agent in (CODER, TESTER)
        )
        assert game.state() in game.state_space
        actor = infos[CODER]["active_agent"]
        observations, rewards, _, _, infos = game.step({actor: str(rng.choice(ACTIONS[actor]))})
        assert all(type(reward) is float and -1 <= reward <= 1 for reward in rewards.values())
        steps += 1
    assert all(observations[agent] in game.observation_space(agent) for agent in (CODER, TESTER))
    assert steps == 6


# Seeds, options and the Mistake Book


def episodes(game: Any, seed: int, steps: int) -> list[Any]:
    """What happens in ``steps`` steps of episodes that go on without a new seed."""
    rng = np.random.default_rng(seed)
    log: list[Any] = [game.reset(seed=seed)]
    infos = log[0][1]
    for _ in range(steps):
        if not game.agents:
            log.append(game.reset())
            infos = log[-1][1]
        actor = infos[CODER]["active_agent"]
        log.append(game.step({actor: str(rng.choice(ACTIONS[actor]))}))
        infos = log[-1][4]
    return log


def test_the_same_seed_gives_the_same_episodes_for_thirty_steps(make: Any) -> None:
    first, second = make(max_rounds=2), make(max_rounds=2)
    second.reset(seed=99)
    play(second, WRONG, SUITE)  # what came before a seed must not matter
    log = episodes(first, seed=7, steps=30)
    assert log == episodes(second, seed=7, steps=30)
    assert log == episodes(first, seed=7, steps=30)
    assert log != episodes(first, seed=8, steps=30)
    # The book took part.
    assert any(step[4][CODER].get("history") for step in log if len(step) == 5)


def test_seeds_choose_among_all_problems(make: Any) -> None:
    game = make()
    drawn = [game.reset(seed=seed)[1][CODER]["task_id"] for seed in range(20)]
    assert set(drawn) == {"test/add", "test/is_even"}
    game.reset(seed=0)
    assert len({game.reset()[1][CODER]["task_id"] for _ in range(20)}) == 2


def test_the_book_survives_a_reset_and_is_cleared_by_a_seed(make: Any) -> None:
    game = make()
    start(game)
    play(game, WRONG, SUITE)
    assert len(game.mistake_book) == 3
    _, infos = game.reset(options={"problem_id": "add"})
    assert infos[CODER]["task_id"] == "test/add", "a name that only one problem has is enough"
    assert infos[CODER]["book"] == {"size": 3, "problem_size": 3, "cleared": False}
    _, infos = game.reset(seed=1)
    assert infos[CODER]["book"] == {"size": 0, "problem_size": 0, "cleared": True}
    *_, infos = game.step({CODER: RIGHT})
    assert not infos[CODER]["book"]["cleared"], "it is said once"
    _, infos = game.reset(seed=1)
    assert not infos[CODER]["book"]["cleared"], "there was nothing to lose"


def test_a_name_that_two_problems_have_is_no_name(sandbox):
    twins = [ADD, dataclasses.replace(ADD, task_id="other/add")]
    game = parallel_env(problems=twins, sandbox=sandbox)
    with pytest.raises(ValueError, match="'add' is that of: test/add, other/add"):
        game.reset(options={"problem_id": "add"})
    game.reset(options={"problem_id": "other/add"})


def test_the_book_can_be_kept_cleared_and_given(make: Any) -> None:
    mine = MistakeBook()
    game = make(mistake_book=mine)
    start(game)
    play(game, WRONG, SUITE)
    assert len(mine) == 3
    game.reset(seed=1, options={"mistake_book": "keep"})
    assert len(mine) == 3
    game.reset(options={"mistake_book": "clear"})
    assert len(mine) == 0
    other = MistakeBook()
    other.update("test/add", failed=["assert add(5, 5) == 10"])
    game.reset(seed=1, options={"mistake_book": other, "problem_id": "test/add"})
    assert game.mistake_book is other
    *_, infos = play(game, WRONG, "")
    assert [test["text"] for test in infos[CODER]["history"]] == ["assert add(5, 5) == 10"]
    assert infos[CODER]["scorable"] is True


def test_the_global_random_state_is_left_alone(make: Any) -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    episodes(make(), seed=1, steps=4)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


# Copies


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
def test_a_copy_in_mid_episode_goes_on_as_the_original(make: Any, clone: Any) -> None:
    game = make(max_rounds=2)
    episodes(game, seed=3, steps=5)
    game.action_space(CODER).seed(3)
    assert game.game.actor == TESTER  # in the middle of a round
    twin = clone(game)
    assert twin.state() == game.state()
    played = [play_on(each) for each in (game, twin)]
    assert played[0] == played[1]
    assert game.mistake_book is not twin.mistake_book
    assert game.mistake_book.state_dict() == twin.mistake_book.state_dict()


def play_on(game: Any) -> list[Any]:
    log = [game.step({TESTER: SUITE})]
    while game.agents:
        log.append(play(game, WRONG, SUITE))
    return [*log, *(game.reset() for _ in range(5)), game.action_space(CODER).sample()]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
def test_turn_based_copies_go_on_too(sandbox, clone):
    game = env(problems=PROBLEMS, sandbox=sandbox)
    game.reset(seed=2)
    game.step(WRONG)
    twin = clone(game)
    for action in (SUITE, None):
        for each in (game, twin):
            each.step(action)
        assert twin.last() == game.last()


def test_a_copy_shares_problems_and_sandbox_and_a_pickle_holds_no_processes(make: Any) -> None:
    game = make()
    start(game)
    play(game, RIGHT, SUITE)
    twin = copy.deepcopy(game)
    assert twin.game.sandbox is game.game.sandbox
    assert twin.game.problems["test/add"] is ADD
    assert pickle.loads(pickle.dumps(game)).game.__dict__["_sandbox"] is None
