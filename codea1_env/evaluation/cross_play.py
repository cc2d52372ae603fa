"""Every coder against every tester: who beats whom.

Ratings follow the model of Bradley and Terry (1952): each player has a strength, and a coder beats a tester with the
probability s_coder / (s_coder + s_tester). Strengths are found by the iteration of Hunter 2004, "MM algorithms for
generalized Bradley-Terry models", and given on the scale of Elo: 400 points more are odds of ten to one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codea1_env.evaluation.statistics import Estimate, estimate_of
from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.problems import Problem
from codea1_env.referee import Referee
from codea1_env.rollout import Agent, ask
from codea1_env.sandbox import Outcome
from codea1_env.spaces import observe

Floats = NDArray[np.float64]
_PRIOR = 0.5
"""Wins that every player is given against every opponent: who never lost would have no finite rating."""
_ITERATIONS = 500
_REPETITIONS = 300
_SCALE = 400 / math.log(10)


def bradley_terry(coder_wins: ArrayLike, games: ArrayLike) -> tuple[Floats, Floats]:
    """Ratings of coders and testers from all their games.

    Example:
        >>> coders, testers = bradley_terry([[9.5], [0.5]], [[10.0], [10.0]])
        >>> coders.round().tolist(), testers.round().tolist()
        ([400.0, -400.0], [0.0])
    """
    won = np.asarray(coder_wins, dtype=np.float64)
    wins, losses = won + _PRIOR, np.asarray(games, dtype=np.float64) - won + _PRIOR
    played = wins + losses
    coders = np.ones(played.shape[:-1])
    testers = np.ones((*played.shape[:-2], played.shape[-1]))
    for _ in range(_ITERATIONS):
        shared = played / (coders[..., :, None] + testers[..., None, :])
        coders = wins.sum(axis=-1) / shared.sum(axis=-1)
        shared = played / (coders[..., :, None] + testers[..., None, :])
        testers = losses.sum(axis=-2) / shared.sum(axis=-2)
        scale = np.exp(np.log(np.concatenate([coders, testers], axis=-1)).mean(axis=-1))[..., None]
        coders, testers = coders / scale, testers / scale
    return _SCALE * np.log(coders), _SCALE * np.log(testers)


def rating_intervals(
    coder_wins: ArrayLike, games: ArrayLike, rng: np.random.Generator
) -> tuple[list[Estimate], list[Estimate]]:
    """Ratings with 95% intervals from problems drawn with replacement."""
    wins, played = np.asarray(coder_wins, dtype=float), np.asarray(games, dtype=float)
    drawn = rng.integers(len(wins), size=(_REPETITIONS, len(wins)))
    values = bradley_terry(wins.sum(axis=0), played.sum(axis=0))
    samples = bradley_terry(wins[drawn].sum(axis=1), played[drawn].sum(axis=1))
    coders, testers = (
        [estimate_of(one, each) for one, each in zip(value, sample.T, strict=True)]
        for value, sample in zip(values, samples, strict=True)
    )
    return coders, testers


@dataclass(frozen=True)
class CrossPlay:
    """What came of all pairs. Arrays have the shape (problems, coders, testers)."""

    coders: tuple[str, ...]
    testers: tuple[str, ...]
    problems: tuple[str, ...]
    tests: Floats
    """Tests that are right as written."""
    wins: Floats
    """Programs that run and that no right test of the suite broke; a suite without a right test breaks none."""
    games: Floats
    """Programs that were judged."""

    @property
    def right_tests(self) -> Floats:
        """Right tests in a suite, on average."""
        number: Floats = self.tests.sum(axis=0) / self.games.sum(axis=0).clip(1)
        return number

    @property
    def win_rates(self) -> Floats:
        """Share of its programs that each coder gets past a suite of each tester."""
        rates: Floats = self.wins.sum(axis=0) / self.games.sum(axis=0).clip(1)
        return rates

    def ratings(self) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
        """Ratings of coders and of testers, on the scale of Elo."""
        coders, testers = rating_intervals(self.wins, self.games, np.random.default_rng(0))
        return (
            dict(zip(self.coders, coders, strict=True)),
            dict(zip(self.testers, testers, strict=True)),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it. The matrices have a row for each coder."""
        coders, testers = (
            {name: dataclasses.asdict(each) for name, each in side.items()}
            for side in self.ratings()
        )
        return {
            "coders": list(self.coders),
            "testers": list(self.testers),
            "problems": list(self.problems),
            "games": self.games.sum(axis=0).tolist(),
            "win_rates": self.win_rates.tolist(),
            "right_tests": self.right_tests.tolist(),
            "ratings": {"coders": coders, "testers": testers},
        }


def cross_play(
    coders: Mapping[str, Agent],
    testers: Mapping[str, Agent],
    problems: Sequence[Problem],
    referee: Referee,
    num_samples: int = 4,
    told: Callable[[int], None] = lambda coders: None,
) -> CrossPlay:
    """Let every coder play against every tester.

    A coder writes `num_samples` programs for each problem once; each tester writes one suite against each of them. The tester
    wins if the program does not run, or if a test that is right as written breaks it; otherwise the coder wins. A program that
    the sandbox cannot judge is no game. `told` hears how many coders have played.
    """
    shape = (len(problems), len(coders), len(testers))
    tests, wins, games = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    asked = [problem for problem in problems for _ in range(num_samples)]
    for number, coder in enumerate(coders.values()):
        answers = ask(coder, "coder", list(map(observe, asked)))
        programs = referee.read_programs(asked, answers)
        seen = [
            observe(problem, code=program.code, turn=1)
            for problem, program in zip(asked, programs, strict=True)
        ]
        attacks = [ask(tester, "tester", seen) for tester in testers.values()]
        parts = [
            AttackAnswers(problem, [program], suites, ())
            for problem, program, *suites in zip(asked, programs, *attacks, strict=True)
        ]
        for place, (_, verdict) in enumerate(referee.judge_parts(parts)):
            if verdict.load.outcome is Outcome.UNJUDGED:
                continue
            for column, suite in enumerate(verdict.suites):
                kept = [test for test in suite.tests if test.status == "kept"]
                pair = (place // num_samples, number, column)
                games[pair] += 1
                tests[pair] += len(kept)
                wins[pair] += verdict.code_executes and all(test.passed for test in kept)
        told(number + 1)
    names = (tuple(coders), tuple(testers), tuple(each.task_id for each in problems))
    return CrossPlay(*names, tests, wins, games)
