"""Plays the game through both of PettingZoo's interfaces with players that choose at random.

    python examples/random_play.py --seed 1

First the turn-based interface (AEC) with texts drawn from the action spaces: no program, no tests, and
still every turn is scored and explained. Then the parallel interface with a few programs and tests for
one problem, over three rounds, so that the Mistake Book has something to remember.
"""

from __future__ import annotations

import argparse

import numpy as np

import codea1_env
from codea1_env import CODER, TESTER

PROGRAMS = [
    "def is_even(n):\n    return n % 2 == 0",
    "def is_even(n):\n    return n % 2 == 1",
    "def is_even(n):\n    return True",
    "def is_even(n):\n    return n in (0, 2, 4, 6, 8)",
]
TESTS = [
    "assert is_even(2)",
    "assert not is_even(7)",
    "assert is_even(10)",
    "assert is_even(-4)",
    "assert is_even(3)  # wrong: does not count",
]


def play_turns(seed: int) -> None:
    """Random texts through the turn-based interface."""
    env = codea1_env.env()
    env.reset(seed=seed)
    for agent in (CODER, TESTER):
        env.action_space(agent).seed(seed)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        if terminated or truncated:
            program = info["program"]["message"] or "the program runs"
            print(
                f"{agent}: reward {reward:.2f} ({program}; dropped texts: {len(info['dropped'])})"
            )
            env.step(None)
        else:
            env.step(env.action_space(agent).sample())
    env.close()


def play_rounds(seed: int) -> None:
    """Chosen texts through the parallel interface, for three rounds."""
    rng = np.random.default_rng(seed)
    env = codea1_env.parallel_env(max_rounds=3, render_mode="ansi")
    _, infos = env.reset(seed=seed, options={"problem_id": "starter/is_even"})
    total = {CODER: 0.0, TESTER: 0.0}
    while env.agents:
        actor = infos[CODER]["active_agent"]
        if actor == CODER:
            action = str(rng.choice(PROGRAMS))
        else:
            action = "\n".join(rng.choice(TESTS, size=3, replace=False))
        _, rewards, _, _, infos = env.step({actor: action})
        for agent, reward in rewards.items():
            total[agent] += reward
    print(env.render())
    print(f"Sums over three rounds: {total}. Tests in the Mistake Book: {len(env.mistake_book)}")
    env.close()


def main() -> None:
    """Read the seed and play both games."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same games")
    seed = parser.parse_args().seed
    print("== Turn-based interface, random texts")
    play_turns(seed)
    print("\n== Parallel interface, three rounds of is_even")
    play_rounds(seed)


if __name__ == "__main__":
    main()
