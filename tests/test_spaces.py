from __future__ import annotations

import pickle

import pytest

from codea1_env.problems import Problem
from codea1_env.spaces import (
    Observation,
    Text,
    action_space,
    observation_space,
    observe,
)

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
