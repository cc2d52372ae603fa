"""Who learns from what in a step: one after the other, or at the same time where players compute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from codea1_env.agents import Experience, Imitator
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.policy import check_metrics
from codea1_env.agents.scripted import TEST_SEPARATOR, draw
from codea1_env.evaluation import train_tests
from codea1_env.problems import Problem
from codea1_env.rollout import Rollouts
from codea1_env.support.plugins import explained
from codea1_env.training.config import PlayerError, TrainConfig
from codea1_env.training.metrics import Row, prefixed
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
    """The update of each player that learns: prefix of its metrics -> function."""
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
    """Update a player and return the metrics that it reports, if they are numbers that a log can hold.

    Raises a PlayerError if not: the player itself is likely to be broken, too. What a player of the user's raises becomes an UpdateError.
    """
    kind = type(getattr(learn, "__self__", learn))
    name = kind.__name__
    with explained(kind, learn.__name__, UpdateError):
        metrics = learn(experience)
    check_metrics(f"{name}.{learn.__name__}", metrics, PlayerError)
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


@dataclass(frozen=True)
class Taught:
    """What came of the lessons of a step."""

    metrics: Row
    """Metrics of all roles."""
    seconds: Mapping[str, float]
    """Phase -> seconds: `learn_ROLE`, or `learn` for all that learned at the same time."""
    of_roles: Mapping[str, float]
    """`learn_ROLE` -> seconds."""


def teach(
    lessons: Mapping[str, Lesson],
    phase: Callable[[str], AbstractContextManager[None]],
    elsewhere: Collection[str] = (),
) -> Taught:
    """Let everyone learn: players `elsewhere` at the same time, others one after the other in this thread.

    Example:
        >>> from contextlib import nullcontext
        >>> taught = teach({"coder": lambda: {"loss": 0.5}}, lambda name: nullcontext())
        >>> taught.metrics, list(taught.seconds)
        ({'coder/loss': 0.5}, ['learn_coder'])
    """
    metrics: dict[str, Mapping[str, float]] = {}
    seconds: dict[str, float] = {}
    of_roles: dict[str, float] = {}

    def learn(role: str) -> None:
        with timed(of_roles, f"learn_{role}"):
            metrics[role] = lessons[role]()

    together = [role for role in lessons if role in elsewhere]
    if len(together) > 1:
        # If one fails, the others are not waited for, nor after Ctrl-C: who ends the run ends them, too.
        threads = ThreadPoolExecutor(len(together), "learn")
        try:
            with timed(seconds, "learn"), phase("learn"):
                for future in [threads.submit(learn, role) for role in together]:
                    future.result()
        finally:
            threads.shutdown(wait=False)
    for role in lessons:
        if role not in metrics:
            with phase(f"learn_{role}"):
                learn(role)
            seconds[f"learn_{role}"] = of_roles[f"learn_{role}"]
    return Taught(
        {name: value for role in lessons for name, value in prefixed(role, metrics[role]).items()},
        seconds,
        of_roles,
    )


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Write down how long what is done inside takes."""
    started = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - started
