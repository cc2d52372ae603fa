"""Exact measures of a game between pools or checkpoints: payoffs, exploitability, and how much of it is cyclic.

Nothing is sampled: strategies are probabilities, and a payoff matrix says how often a program is broken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GAME_FIGURES = ("exploitability", "exploitability/average", "cyclic_share")
"""What `game_figures` returns; less is better."""


class Gains(NamedTuple):
    """What each player would gain by its best response to the other, who does not move."""

    coder: float
    tester: float

    @property
    def nash_conv(self) -> float:
        """Their sum: 0 in a Nash equilibrium and nowhere else (Lanctot et al. 2017, arXiv 1711.00832)."""
        return self.coder + self.tester


def gains(breaks: Floats, coder: Floats, tester: Floats) -> Gains:
    """Gains of best responses in the zero-sum game in which a broken program costs 1.

    Args:
        breaks: For each program (row) and each test or suite (column) the probability that it breaks the program.
        coder: Probability of each program.
        tester: Probability of each test; or one row for each program, of a tester that sees the program.

    Example:
        >>> rock_paper_scissors = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])
        >>> even = np.full(3, 1 / 3)
        >>> round(gains(rock_paper_scissors, even, even).nash_conv, 9)
        0.0
        >>> gains(rock_paper_scissors, np.array([1.0, 0.0, 0.0]), even)
        Gains(coder=0.0, tester=0.5)
    """
    answers = np.broadcast_to(tester, breaks.shape)
    broken = (breaks * answers).sum(axis=1)
    now = float(coder @ broken)
    seeing = tester.ndim == 2
    best = coder @ breaks.max(axis=1) if seeing else (coder @ breaks).max()
    return Gains(now - float(broken.min()), float(best) - now)


def cross_play(breaks: Floats, coders: Floats, testers: Floats) -> Floats:
    """Return how often each coder (row) is broken by each tester (column), of checkpoints for example."""
    if testers.ndim == 2:
        return np.asarray(coders @ breaks @ testers.T)
    return np.asarray(np.einsum("ki,ic,lic->kl", coders, breaks, testers))


class Decomposition(NamedTuple):
    """A game of pairs of checkpoints as the sum of a transitive part and a cyclic one."""

    ratings: Floats
    """Rating of each checkpoint: one that is rated higher by d wins d more, as far as the game is transitive."""
    cyclic: Floats
    """What ratings cannot say; each of its rows sums to 0."""
    cyclic_share: float
    """Share of the squared payoffs in the cyclic part, from 0 (ratings say all) to 1 (rock, paper, scissors)."""


def decomposition(broken: Floats) -> Decomposition:
    """Divide the game between checkpoints as Balduzzi et al. 2018 (arXiv 1806.02643) do.

    A checkpoint is a coder and a tester of the same moment; `broken` says how often coder k (row) is broken by tester l
    (column), as `cross_play` returns it. What k wins against l is how often l's program is broken by k's tester, less how often
    k's is by l's: an antisymmetric matrix, whose transitive part is the difference of row means.

    Example:
        >>> better_and_better = np.array([[0.5, 0.7, 0.9], [0.3, 0.5, 0.7], [0.1, 0.3, 0.5]])
        >>> found = decomposition(better_and_better)
        >>> round(found.cyclic_share, 9), bool(np.all(np.diff(found.ratings) > 0))
        (0.0, True)
    """
    wins = broken.T - broken
    ratings = wins.mean(axis=1)
    cyclic = wins - (ratings[:, None] - ratings[None, :])
    total = float((wins**2).sum())
    share = float((cyclic**2).sum()) / total if total > 1e-18 else 0.0
    return Decomposition(ratings, cyclic, share)


def game_figures(breaks: Floats, coders: Floats, testers: Floats) -> dict[str, float]:
    """Return `GAME_FIGURES` of checkpoints: NashConv of the last and of the average, and the cyclic share. Arguments as of `cross_play`."""
    average = gains(breaks, coders.mean(axis=0), testers.mean(axis=0))
    values = (
        gains(breaks, coders[-1], testers[-1]).nash_conv,
        average.nash_conv,
        decomposition(cross_play(breaks, coders, testers)).cyclic_share,
    )
    return dict(zip(GAME_FIGURES, values, strict=True))
