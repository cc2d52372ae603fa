"""Speed of codea1-suite on one core, with given actions: steps of the parallel environment, and turns of many games at once.

python benchmarks/suite_speed.py rare-faults/1 reading/2
"""

from __future__ import annotations

import sys
import time

import numpy as np

from codea1_env import suite

EPISODES, GAMES, BATCHES = 4_000, 1024, 30


def main() -> None:
    """Print a table. Time is that of this process: other work on the machine does not count."""
    print("id | first use, s | steps/s | turns/s of 1,024 games")
    for id in sys.argv[1:] or suite.IDS["v1"]:
        started = time.process_time()
        env = suite.make(id, seed=1000)
        first = time.process_time() - started
        task, rng = env.games.task, np.random.default_rng(0)
        programs = rng.integers(task.programs, size=(BATCHES, GAMES))
        tests = rng.integers(task.C, size=(BATCHES, GAMES, task.K))
        started = time.process_time()
        for program, suite_of_tests in zip(programs.ravel()[:EPISODES], tests.reshape(-1, task.K), strict=False):  # fmt: skip
            env.reset()
            env.step({"coder_0": program})
            env.step({"tester_0": suite_of_tests})
        steps = 2 * EPISODES / (time.process_time() - started)
        games = suite.make(id, seed=1000, api="vector", num_envs=GAMES)
        started = time.process_time()
        for program, suites in zip(programs, tests, strict=True):
            games.begin()
            games.show(program)
            games.end(suites)
        turns = 2 * GAMES * BATCHES / (time.process_time() - started)
        print(f"{id} | {first:.2f} | {steps:,.0f} | {turns:,.0f}")


if __name__ == "__main__":
    main()
