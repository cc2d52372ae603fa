from __future__ import annotations

import functools
import math
import pickle
import subprocess
import sys
from typing import Any

import gymnasium
import pytest
from additions import PROBLEMS, RIGHT, SUITE, WRONG, play, start

from codea1_env import CODER, TESTER
from codea1_env.code_a1_v1 import parallel_env, raw_env
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox, SandboxError
from codea1_env.spaces import Observation, Text, action_space, observation_space, observe


@pytest.fixture
def make(sandbox):
    """A parallel environment over two small problems, in the sandbox of all tests."""
    return functools.partial(parallel_env, problems=PROBLEMS, sandbox=sandbox)


# The registry


@pytest.mark.slow
def test_both_forms_can_be_made_by_name_after_importing_the_package_only() -> None:
    program = """
import sys, random
state = random.getstate()
import codea1_env, pettingzoo
names = ("codea1_env/code_a1_v1", "codea1_env/code_a1-v1", "codea1_env/code_a1")
for name in names:
    print(type(pettingzoo.make("parallel", name)).__name__, type(pettingzoo.make("aec", name)).__name__)
print(pettingzoo.make("parallel", names[0], max_rounds=3).game.max_rounds)
assert not {"torch", "transformers", "datasets"} & set(sys.modules)
assert random.getstate() == state
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n") == ["parallel_env OrderEnforcingWrapper"] * 3 + ["3", ""]


def test_one_problem_alone_may_be_played(make):
    problem = next(iter(make().game.problems.values()))
    assert list(make(problems=problem).game.problems) == [problem.task_id]


# Errors of a programmer


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"max_rounds": 0}, ValueError, "Expect max_rounds to be a positive integer, actually: 0"),
        ({"render_mode": "rgb_array"}, ValueError, "Expect render_mode .*'ansi'.*'rgb_array'"),
        ({"problems": []}, ValueError, "Expect at least one problem"),
        ({"problems": "no/such/file.jsonl"}, OSError, "no/such/file.jsonl"),
    ],
)
def test_wrong_arguments_raise(make, settings, error, message):
    with pytest.raises(error, match=message):
        make(**settings)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": 1.5}, TypeError, "Expect seed to be an integer or None, actually: .*float"),
        ({"seed": -1}, ValueError, "Expect seed to be 0 or greater, actually: -1"),
        ({"options": {"problem": "test/add"}}, ValueError, "'problem'. Did you mean 'problem_id'"),
        ({"options": "add"}, TypeError, "Expect options to be a dict such as"),
        ({"options": {"problem_id": "test/ad"}}, ValueError, "'test/ad'. Did you mean 'test/add'"),
        ({"options": {"problem_id": "ad"}}, ValueError, "actually: 'ad'. Did you mean 'test/add'"),
        ({"options": {"problem_id": ["test/add"]}}, ValueError, r"actually: \['test/add'\]"),
    ],
)
def test_a_wrong_reset_raises_and_leaves_the_episode_alone(make, arguments, error, message):
    game = make(max_rounds=2)
    game.reset(seed=5)
    play(game, WRONG, SUITE)
    game.step({CODER: RIGHT})
    before = game.state(), game.mistake_book.state_dict()
    with pytest.raises(error, match=message):
        game.reset(**arguments)
    assert (game.state(), game.mistake_book.state_dict()) == before


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ({TESTER: SUITE}, ValueError, r"Expect the action of 'coder_0', .*\['tester_0'\]"),
        ({"coder_1": RIGHT}, ValueError, "Expect agent to be .*actually: 'coder_1'"),
        ({CODER: None}, TypeError, "Expect the action of coder_0 to be a str .*NoneType"),
    ],
)
def test_wrong_actions_raise_and_change_nothing(make, actions, error, message):
    game = make()
    start(game)
    with pytest.raises(error, match=message):
        game.step(actions)
    assert game.state()["turn"] == 0
    play(game, RIGHT, SUITE)


def test_the_other_agents_action_is_ignored(make: Any) -> None:
    game = make()
    start(game)
    observations, *_ = game.step({CODER: RIGHT, TESTER: SUITE})
    assert observations[TESTER]["turn"] == 1
    _, rewards, *_ = game.step({CODER: WRONG, TESTER: SUITE})
    assert rewards[CODER] == 1.0


def test_nothing_can_be_done_before_reset_and_after_the_end(make: Any, sandbox: Sandbox) -> None:
    game = make(render_mode="ansi")
    for call in (lambda: game.step({CODER: ""}), game.render, game.state):
        with pytest.raises(gymnasium.error.ResetNeeded, match="Expect reset"):
            call()
    start(game)
    play(game, RIGHT, SUITE)
    with pytest.raises(gymnasium.error.ResetNeeded, match="all of its 1 round"):
        game.step({CODER: RIGHT})
    turns = raw_env(problems=PROBLEMS, sandbox=sandbox)
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode was started"):
        turns.step(RIGHT)
    start(turns)
    turns.step(RIGHT)
    turns.step(SUITE)
    with pytest.raises(ValueError, match="Expect None as the action of coder_0"):
        turns.step(RIGHT)
    turns.step(None)
    turns.step(None)
    with pytest.raises(gymnasium.error.ResetNeeded, match="both have left"):
        turns.step(None)


def test_a_sandbox_that_fails_is_no_verdict_and_changes_nothing() -> None:
    with Sandbox(workers=1) as broken:
        game = parallel_env(problems=PROBLEMS, sandbox=broken)
        start(game)
        game.step({CODER: WRONG})
    before = game.state()
    with pytest.raises((SandboxError, RuntimeError)):
        game.step({TESTER: SUITE})
    assert game.state() == before
    _, rewards, *_ = pickle.loads(pickle.dumps(game)).step({TESTER: SUITE})
    assert not math.isnan(rewards[CODER])


PROBLEM = Problem(
    task_id="test/double",
    prompt='def double(n):\n    """Return 2 * n."""\n',
    entry_point="double",
    reference="def double(n):\n    return n + n\n",
    tests=("assert double(2) == 4",),
)


def test_any_text_up_to_the_length_is_in_the_space():
    space = action_space()
    for text in ("", "é 漢 🎉", "\x00", "\ud800", "\x1b[2J", "a" * 65_536):
        assert text in space
    for value in ("a" * 65_537, b"text", None, 3, ["a"]):
        assert value not in space
    assert pickle.loads(pickle.dumps(space)) == space != Text(5)


def test_samples_are_short_printable_and_repeat_with_the_seed() -> None:
    space = action_space()
    space.seed(3)
    first = [space.sample() for _ in range(200)]
    space.seed(3)
    assert [space.sample() for _ in range(200)] == first
    assert len(set(first)) > 150
    assert "" in first or min(map(len, first)) < 3
    assert max(map(len, first)) <= 32
    assert all(c == "\n" or (c.isprintable() and c.isascii()) for text in first for c in text)
    assert all(text in space for text in first)


def test_masks_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="Expect mask and probability to be None"):
        action_space().sample(mask=(1, None))


def test_the_observation_space_has_the_fields_of_an_observation() -> None:
    assert set(observation_space()) == set(Observation.__annotations__)
    # PettingZoo's api_test gives it another meaning.
    assert "observation" not in observation_space()


def test_observe_shows_the_problem_and_hides_the_solution() -> None:
    observation = observe(PROBLEM, code="pass", turn=1)
    assert observation == {
        "task_id": PROBLEM.task_id,
        "problem": PROBLEM.prompt,
        "entry_point": "double",
        "code": "pass",
        "tests": "",
        "feedback": "",
        "round": 0,
        "turn": 1,
    }
    assert observation in observation_space()
    assert PROBLEM.reference not in str(observation)
    assert "double(2)" not in str(observation)


def test_rounds_and_turns_outside_the_game_are_not_in_the_space() -> None:
    assert observe(PROBLEM, round=1) in observation_space(max_rounds=1)
    assert observe(PROBLEM, round=2) not in observation_space(max_rounds=1)
    assert observe(PROBLEM, turn=2) not in observation_space()
