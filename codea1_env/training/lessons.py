"""Who learns from what in a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from codea1_env.agents import Experience, Imitator
from codea1_env.agents.scripted import TEST_SEPARATOR, draw
from codea1_env.evaluation import train_tests
from codea1_env.problems import Problem
from codea1_env.rollout import Rollouts
from codea1_env.training.config import TrainConfig
from codea1_env.training.errors import PlayerError
from codea1_env.training.players import Players

Lesson = Callable[[], Mapping[str, float]]

_DEMONSTRATIONS = 2
"""Stream of random numbers, beside those of the two players."""


def lessons(
    config: TrainConfig,
    players: Players,
    coder: Sequence[Experience],
    tester: Sequence[Experience],
    demonstrations: Sequence[Experience],
) -> dict[str, Lesson]:
    """What is to be called so that everyone learns: prefix of the metrics -> function.

    Args:
        config: The run.
        players: Who plays.
        coder: What the coder's programs earned.
        tester: What the tester's suites earned.
        demonstrations: What a tester imitates that does not learn from rewards.
    """
    if config.self_play:
        return {"model": partial(_checked, players.coder.learn, [*coder, *tester])}
    found: dict[str, Lesson] = {}
    if players.coder_learns:
        found["coder"] = partial(_checked, players.coder.learn, coder)
    if players.tester_learns and config.tester.objective == "rewards":
        found["tester"] = partial(_checked, players.tester.learn, tester)
    elif players.tester_learns and isinstance(players.tester, Imitator):
        found["tester"] = partial(_checked, players.tester.imitate, demonstrations)
    return found


def _checked(
    learn: Callable[[Sequence[Experience]], Any], experience: Sequence[Experience]
) -> Mapping[str, float]:
    """What a player reports of its lesson, if it is numbers that a log can hold.

    Raises:
        PlayerError: It is something else: then the player itself is likely to be broken, too.
    """
    metrics = learn(experience)
    name = type(getattr(learn, "__self__", learn)).__name__
    if not isinstance(metrics, Mapping):
        raise PlayerError(
            f"Expect {name}.{learn.__name__} to return metrics, a mapping of str to float, actually: "
            f"{type(metrics)}. Return {{}} if there are none."
        )
    for key, value in metrics.items():
        number = isinstance(value, (int, float, np.number))
        if not (isinstance(key, str) and number and math.isfinite(value)):
            raise PlayerError(
                f"Expect {name}.{learn.__name__} to return finite numbers by name, actually: "
                f"{key!r}: {value!r}"
            )
    return {
        key: value if isinstance(value, int) else float(value) for key, value in metrics.items()
    }


def demonstrations(config: TrainConfig, played: Rollouts, step: int) -> list[Experience]:
    """Suites of golden tests for what the tester was shown: one for each suite that it learns from.

    Only tests that training may know are in them.
    """
    if config.tester.objective != "golden-tests":
        return []
    rng = np.random.default_rng([config.seed, step, _DEMONSTRATIONS])

    def known(problem: Problem) -> list[str]:
        tests = train_tests(problem, config.seed)[: config.golden_tests]
        return [test for test in tests if TEST_SEPARATOR not in test]

    return [
        Experience(
            episode.tester_observation,
            TEST_SEPARATOR.join(draw(known(episode.problem), config.num_tests, rng)),
            None,
            group=episode.problem.task_id,
        )
        # Not for problems that took the place of others: their number differs from step to step.
        for episode in played.max_variance_episodes()[: config.problems_per_step]
        for _ in range(config.num_suites)
    ]
