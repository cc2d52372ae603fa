"""pass@k: how likely it is that at least one of k programs is right.

From n programs, of which c are right, the unbiased estimate is 1 - C(n - c, k) / C(n, k): equation 1 of Chen
et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.evaluation.statistics import Estimate, bootstrap

_SEED = 0
"""Of the bootstrap: equal counts always give equal intervals."""


@dataclass(frozen=True)
class Count:
    """Programs for one problem."""

    samples: int
    correct: int


def pass_at_k(count: Count, k: int) -> float:
    """Estimate the probability that at least one of k programs for a problem is right.

    Example:
        >>> pass_at_k(Count(samples=4, correct=1), k=1), pass_at_k(Count(samples=4, correct=1), k=2)
        (0.25, 0.5)
    """
    if not 1 <= k <= count.samples:
        raise ValueError(f"Expect k between 1 and {count.samples} (the samples), actually: {k}")
    if k == 1:
        return count.correct / count.samples  # the product would round
    wrong = count.samples - count.correct
    if wrong < k:
        return 1.0
    missed = 1.0 - k / np.arange(wrong + 1, count.samples + 1)
    return float(1.0 - np.prod(missed))


def mean_over_problems(values: Sequence[float]) -> Estimate:
    """Mean of a figure that each problem has, with a 95% bootstrap interval over problems.

    The interval says how far the figure would move with other problems of the same kind.

    Example:
        >>> print(mean_over_problems([1.0, 1.0]))
        1.000 (all equal)
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return bootstrap(column, lambda it: it.mean(axis=(1, 2)), np.random.default_rng(_SEED))
