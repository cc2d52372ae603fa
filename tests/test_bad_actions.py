"""Whatever the players write is scored and explained; it never raises."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from additions import ADD, RIGHT

from codea1_env import CODER, TESTER
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.referee import RefereeConfig
from codea1_env.rendering import terminal as rendering
from codea1_env.sandbox import Limits, Sandbox

SUITE = "assert add(1, 2) == 3\nassert add(0, 0) == 0"
LIMITS = Limits(call_cpu_time=0.15, call_wall_time=3.0, run_cpu_time=0.5, run_wall_time=6.0)

ANY_TEXT = {
    "empty": "",
    "blank": " \n\t\n",
    "10 MB": "x = 1\n" * (10_000_000 // 6),
    "10 MB in one line": "assert add(1, 2) == " + "9" * 10_000_000,
    "null bytes": "\x00\x00\x00",
    "null byte inside": "def add(a, b):\n    return '\x00'\nassert add(1, 2) == '\x00'",
    "lone surrogates": "\ud800\udfff",
    "lone surrogate inside": "def add(a, b):\n    return '\ud800'\nassert add(1, 2) == '\ud800'",
    "deep nesting": "(" * 100_000,
    "deep nesting within the limit": "(" * 30_000 + ")" * 30_000,
    "deep lists": "assert add(" + "[" * 20_000 + "]" * 20_000 + ", 1) == 2",
    "deep operators": "assert add(1, 2) == " + "-" * 60_000 + "3",
    "long sum": "assert add(1, 2) == " + "+".join(["1"] * 30_000),
    "not Python": "I am sorry, but I cannot do that.",
    "unclosed block": "```python\ndef add(a, b",
    "escape sequences": "\x1b[2J\x1b]0;title\x07",
    "mixed line ends": "def add(a, b):\r\n    return a\rassert add(1, 2) == 3\x0c",
    "exit": "exit()",
    "huge number": "assert add(1, 2) == 10 ** 10 ** 10",
}
PROGRAMS = {
    "another function": "def sub(a, b):\n    return a - b",
    "name without function": "add = 3",
    "raises": "raise RuntimeError('no')",
    "exits": "import os\nos._exit(0)\n",
    "exits politely": "raise SystemExit(0)",
    "exits in a call": "def add(a, b):\n    raise SystemExit(0)",
    "interrupts": "def add(a, b):\n    raise KeyboardInterrupt",
    "recursion": "def add(a, b):\n    return add(a, b)",
    "returns itself": "def add(a, b):\n    return add",
    "always equal": "class Yes:\n    def __eq__(self, other): return True\ndef add(a, b):\n    return Yes()",
    "huge value": "def add(a, b):\n    return 'x' * 50_000_000",
    "prints a lot": "def add(a, b):\n    print('x' * 10_000_000)\n    return 'x'",
    "endless when loaded": "while True:\n    pass\ndef add(a, b):\n    return a + b",
    "endless in a call": "def add(a, b):\n    while True:\n        pass",
}
SUITES = {
    "exit in an argument": "assert add(exit(), 1) == 2",
    "exit in the expected value": "assert add(1, 1) == exit()",
    "os._exit": "import os\nassert add(os._exit(0), 1) == 2",
    "another function": "assert sub(2, 1) == 1",
    "never calls it": "assert True",
    "shadows it": "def add(a, b):\n    return 3\nassert add(1, 2) == 3",
    "wrong value": "assert add(1, 2) == 4",
    "raises on the reference": "assert add(None, 1) == 4",
    "the same eight times": "assert add(1, 2) == 3\n" * 8,
    "a thousand": "\n".join(f"assert add({n}, 1) == {n + 1}" for n in range(1000)),
    "endless": "while True:\n    add(1, 2)",
    "names of the judge": "assert add(__file__, __builtins__) is None",
}


@pytest.fixture
def game(sandbox: Sandbox) -> Iterator[Any]:
    game = parallel_env(
        problems=[ADD], sandbox=sandbox, referee=RefereeConfig(limits=LIMITS), max_rounds=2
    )
    game.reset(seed=1)
    yield game
    game.close()


def check(game: Any, step: Any) -> dict[str, Any]:
    """What must hold after any action; returns the infos of one agent."""
    observations, rewards, _, _, infos = step
    for agent in (CODER, TESTER):
        assert observations[agent] in game.observation_space(agent)
        assert type(rewards[agent]) is float
        assert math.isfinite(rewards[agent])
        json.dumps(infos[agent])  # plain data
    assert len(repr(infos[CODER])) < 1_000_000
    episode = game.game.episode
    rendering.ansi(episode).encode()
    return infos[CODER]


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [*ANY_TEXT.values(), *PROGRAMS.values()], ids=[*ANY_TEXT, *PROGRAMS]
)
def test_any_program_is_scored_and_explained(game: Any, program: str) -> None:
    start = time.monotonic()
    check(game, game.step({CODER: program}))
    step = game.step({TESTER: SUITE})
    info = check(game, step)
    assert step[1][CODER] < 1.0
    assert info["scorable"] is True
    if info["program"]["problem"] is None and info["program"]["executes"]:
        assert all(test["outcome"] != "pass" and test["message"] for test in info["tests"])
    else:
        assert info["program"]["problem"] or info["program"]["outcome"] != "pass"
        assert step[1][TESTER] == 0.0
    assert step[0][CODER]["feedback"]
    # And the game goes on.
    check(game, game.step({CODER: RIGHT}))
    assert game.step({TESTER: SUITE})[1][CODER] == 1.0
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("suite", [*ANY_TEXT.values(), *SUITES.values()], ids=[*ANY_TEXT, *SUITES])
def test_any_suite_is_scored_and_explained(game: Any, suite: str) -> None:
    game.step({CODER: RIGHT})
    step = game.step({TESTER: suite})
    info = check(game, step)
    assert step[1][TESTER] <= 0.5  # a right program is not broken
    if info["scorable"]:
        assert step[1][CODER] == 1.0
    else:
        assert step[1] == {CODER: 0.0, TESTER: pytest.approx(min(step[1][TESTER], 0.0))}
    for test in info["tests"]:
        assert test["status"] == "kept" or test["reason"]
    for dropped in info["dropped"]:
        assert dropped["reason"]
    check(game, game.step({CODER: RIGHT}))
    assert game.step({TESTER: SUITE})[1][CODER] == 1.0


def test_exit_in_a_tests_argument_wins_nothing(game: Any) -> None:
    game.step({CODER: "def add(a, b):\n    return a - b"})
    *_, infos = game.step({TESTER: "assert add(exit(), 1) == 2\nassert add(1, 2) == 3"})
    outcomes = [test["outcome"] for test in infos[TESTER]["tests"] if test["status"] != "invalid"]
    assert outcomes == ["fail"]
    assert infos[TESTER]["rewards"]["validity"] == pytest.approx(1 / 8)
