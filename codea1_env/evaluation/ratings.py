"""Ratings of players who never meet their own kind: the model of Bradley and Terry.

Each player has a strength, and a coder beats a tester with the probability s_coder / (s_coder + s_tester)
(Bradley and Terry 1952). Strengths are found by the iteration of Hunter 2004, "MM algorithms for generalized
Bradley-Terry models", and given on the scale of Elo: 400 points more are odds of ten to one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codea1_env.evaluation.statistics import Estimate, estimate_of

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
    played = np.asarray(games, dtype=np.float64)
    wins = np.asarray(coder_wins, dtype=np.float64) + _PRIOR
    losses = played - np.asarray(coder_wins, dtype=np.float64) + _PRIOR
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
    coder_wins: ArrayLike,
    games: ArrayLike,
    rng: np.random.Generator,
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
