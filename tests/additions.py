"""Two small problems, programs and tests for them, and how a game of them is played: for tests of the environment."""

from __future__ import annotations

from typing import Any

from codea1_env import CODER, TESTER
from codea1_env.problems import Problem

ADD = Problem(
    task_id="test/add",
    prompt='def add(a, b):\n    """Return the sum of a and b."""\n',
    entry_point="add",
    reference="def add(a, b):\n    secret_of_the_reference = a + b\n    return secret_of_the_reference\n",
    tests=("assert add(17, 25) == 42",),
    metadata={"split": "train"},
)
EVEN = Problem(
    task_id="test/is_even",
    prompt='def is_even(n):\n    """Return whether n is even."""\n',
    entry_point="is_even",
    reference="def is_even(n):\n    return n % 2 == 0\n",
    tests=("assert is_even(4)",),
    metadata={"split": "eval"},
)
PROBLEMS = [ADD, EVEN]
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
SUITE = "\n".join(f"assert add({a}, {b}) == {a + b}" for a, b in ((1, 2), (0, 0), (2, 2), (-1, 1)))


def start(game: Any, **options: Any) -> Any:
    """Resets to a known problem; returns the observations, where all act at once."""
    seen = game.reset(options={"problem_id": ADD.task_id, **options})
    return seen and seen[0]


def play(game: Any, program: str, tests: str) -> Any:
    """One round; returns what the tester's step returned."""
    game.step({CODER: program})
    return game.step({TESTER: tests})
