"""Sparring: beside the coder's programs a tester meets planted faults, in a share of the groups that it learns from.

Once a coder is right, its programs teach a tester nothing; a planted fault always can be found. Groups of sparring read and
write no Mistake Book, and no mean of rewards counts them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codea1_env.agents.planted import PlantedCoder
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import Agent, Experience, RolloutConfig, Rollouts, rollout
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row, mean

_STREAM = 6
"""Of random numbers, beside those of players and of what a step needs."""


class Sparring:
    """Plays the sparring groups of a run, on the training half of the set `planted`."""

    def __init__(self, config: TrainConfig, referee: Referee) -> None:
        self._config, self._referee = config, referee
        self._problems = load_problems("planted", "train") if config.spars else []
        self._coder = PlantedCoder(self._problems, referee.sandbox)

    def play(self, tester: Agent, step: int, groups: int) -> Rollouts:
        """Let a tester write `num_suites` suites against each of so many planted programs."""
        rng = np.random.default_rng([self._config.seed, step, _STREAM])
        self._coder.random.seed(int(rng.integers(2**63)))
        order = [self._problems[i] for i in rng.permutation(len(self._problems))]
        each = -(-groups // len(order))  # more than one where there are more groups than problems
        numbers = RolloutConfig(
            num_generations=each,
            num_suites=self._config.num_suites,
            use_book=False,
            black_box=self._config.black_box,
        )
        asked = order[: -(-groups // each)]
        return rollout(asked, self._coder, tester, self._referee, MistakeBook(), numbers)

    def experience(self, played: Rollouts, groups: int) -> list[Experience]:
        """Return what a tester learns from so many groups. Their names differ from those of the coder's programs."""
        found = played.tester_experience("all")[: groups * self._config.num_suites]
        return [replace(each, group=f"sparring {each.group}") for each in found]


def sparring_metrics(played: Rollouts) -> Row:
    """Measure the sparring groups of a step: reward and validity of a suite, and the share that finds the fault."""
    suites = [suite for episode in played.episodes for suite in episode.verdict.suites]
    return {
        "sparring/reward": mean(suite.rewards.test for suite in suites),
        "sparring/found": mean(bool(suite.failed) for suite in suites),
        "sparring/validity": mean(suite.rewards.validity for suite in suites),
    }
