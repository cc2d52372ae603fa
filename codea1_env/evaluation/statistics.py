"""Means of a few runs, or of many problems, with their intervals.

Runs are few, and the problems of a run have one learner in common: `mean_over_runs` takes one figure of each, and Student's
t distribution. A bootstrap of two to five runs would say too narrow an interval. Problems are many: a bootstrap draws them
with replacement. pass@k is 1 - C(n - c, k) / C(n, k), where c of n programs are right: equation 1 of Chen et al. 2021,
"Evaluating Large Language Models Trained on Code" (arXiv 2107.03374).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

REPETITIONS = 2000
"""Bootstrap samples."""
SEED = 0
"""Of the bootstrap: equal values always give equal intervals."""
_EQUAL = 1e-9
"""Width of an interval below which only rounding tells its figures apart."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} {self.interval()}"

    def interval(self, write: Callable[[float], str] = "{:.3f}".format) -> str:
        """Return the interval as a text. Equal figures have none: it would look certain.

        Example:
            >>> print(Estimate(0.5, 0.25, 0.75), mean_over_runs([0.5, 0.5]))
            0.500 [0.250, 0.750] 0.500 (all equal)
        """
        if self.high - self.low < _EQUAL:
            return "(all equal)"
        return f"[{write(self.low)}, {write(self.high)}]"


def written(estimate: Estimate | Mapping[str, float] | float | None) -> str:
    """Return an estimate, also one of a report, or a mean, as a text; "-" for none.

    Example:
        >>> written({"value": 0.5, "low": 0.25, "high": 0.75}), written(None)
        ('0.500 [0.250, 0.750]', '-')
    """
    if isinstance(estimate, Mapping):
        estimate = Estimate(**estimate)
    if isinstance(estimate, float):
        return f"{estimate:.3f}"
    return "-" if estimate is None else str(estimate)


def figures_in(figures: Mapping[str, Any], before: str = "") -> dict[str, Estimate | None]:
    """Return the figures of a report by name, also those that stand in groups, as those of base tests do.

    Example:
        >>> figure = {"value": 0.5, "low": 0.25, "high": 0.75}
        >>> list(figures_in({"all": {"pass@1": figure}, "base": {"pass@1": figure}}))
        ['pass@1', 'base: pass@1']
    """
    found: dict[str, Estimate | None] = {}
    for name, value in figures.items():
        match value:
            case {"value": float(middle), "low": float(low), "high": float(high)}:
                found[f"{before}{name}"] = Estimate(middle, low, high)
            case dict():
                found |= figures_in(value, "" if name == "all" else f"{name}: ")
            case None:
                found[f"{before}{name}"] = None
    return found


def mean_over_runs(means: ArrayLike) -> Estimate:
    """Return the mean of one figure per run with its 95% interval, by Student's t distribution.

    It is about other runs on the same problems: at least two, with which it is wide. For a paired comparison, give differences.

    Example:
        >>> print(mean_over_runs([0.4, 0.5, 0.6]))
        0.500 [0.252, 0.748]
    """
    figures = np.asarray(means, dtype=np.float64).ravel()
    if figures.size < 2:
        raise ValueError(f"Expect the figures of at least two runs, actually: {figures.size}")
    middle = float(figures.mean())
    error = float(figures.std(ddof=1)) / math.sqrt(figures.size)
    margin = _quantile_of_t(figures.size - 1) * error
    return Estimate(middle, middle - margin, middle + margin)


def estimate_of(value: float, samples: Floats) -> Estimate:
    """Return a value with the 95% interval of its bootstrap samples.

    Example:
        >>> print(estimate_of(0.5, np.linspace(0, 1, 41)))
        0.500 [0.025, 0.975]
    """
    low, high = np.quantile(samples, [0.025, 0.975])
    return Estimate(float(value), float(low), float(high))


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Estimate the probability that at least one of k programs for a problem is right, from a number of samples.

    Example:
        >>> pass_at_k(4, right=1, k=1), pass_at_k(4, right=1, k=2)
        (0.25, 0.5)
    """
    if not 1 <= k <= samples:
        raise ValueError(f"Expect k between 1 and {samples} (the samples), actually: {k}")
    if k == 1:
        return right / samples  # the product would round
    wrong = samples - right
    if wrong < k:
        return 1.0
    missed = 1.0 - k / np.arange(wrong + 1, samples + 1)
    return float(1.0 - np.prod(missed))


def mean_over_problems(values: Sequence[float]) -> Estimate:
    """Mean of a figure that each problem has, with a 95% bootstrap interval over problems.

    The interval says how far the figure would move with other problems of the same kind.

    Example:
        >>> print(mean_over_problems([1.0, 1.0]))
        1.000 (all equal)
    """
    column: Floats = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(len(column), size=(REPETITIONS, len(column)))
    return estimate_of(column.mean(), column[drawn].mean(axis=1))


def figure_of(values: Sequence[float]) -> dict[str, float]:
    """Return `mean_over_problems`, as JSON has it."""
    return asdict(mean_over_problems(values))


_Z = 1.959964
"""The 97.5% quantile of the normal distribution."""
_T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5% quantiles of Student's t with 1 to 10 degrees of freedom."""


def _quantile_of_t(freedom: int) -> float:
    if freedom <= len(_T_QUANTILES):
        return _T_QUANTILES[freedom - 1]
    z = _Z  # and the next terms of its expansion
    first = (z**3 + z) / (4 * freedom)
    return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def share(hits: int, of: int) -> Estimate:
    """Return a share with its 95% interval, by Wilson's score (Wilson 1927), which is not empty at 0 and 1.

    Example:
        >>> print(share(0, 24), share(12, 24))
        0.000 [0.000, 0.138] 0.500 [0.314, 0.686]
    """
    if not 0 <= hits <= of or of < 1:
        raise ValueError(f"Expect 0 <= hits <= of and of >= 1, actually: {hits} of {of}")
    p, z = hits / of, _Z
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    margin = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return Estimate(p, max(0.0, middle - margin), min(1.0, middle + margin))
