"""Which of several programs for a problem to choose, by tests that may be wrong themselves.

A choice is made from a matrix alone: which program passes which test. Where programs are tied, all are equally likely
to be chosen; a score is the chance that the chosen one is right, so that no draw adds noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RANDOM = "random"
CHOSEN = {
    RANDOM: "any program (pass@1)",
    "codet": "by CodeT",
    "codet_released": "by CodeT as released",
    "most_tests": "by tests passed",
    "best": "best program (pass@n)",
}
"""How choices are shown."""


@dataclass(frozen=True)
class Matrix:
    """What programs for one problem, at least one, make of tests of it."""

    right: tuple[bool, ...]
    """For each program, whether it is right: what the choice is measured by."""
    passed: tuple[str, ...]
    """For each program, a "1" for each test that it passes and a "0" for each other."""
    weights: tuple[int, ...]

    def tests_passed(self, row: str) -> int:
        """How many tests a program passes; one that was written twice counts twice."""
        return sum(n for sign, n in zip(row, self.weights, strict=True) if sign == "1")


def random_choice(matrix: Matrix) -> float:
    """Return the chance that any program is right: pass@1."""
    return sum(matrix.right) / len(matrix.right)


def best_program(matrix: Matrix) -> float:
    """1 if one of the programs is right: pass@n, which no choice can exceed."""
    return float(any(matrix.right))


def codet(matrix: Matrix) -> float:
    """Dual execution agreement (Chen et al. 2022, CodeT, arXiv 2207.10397).

    Programs that pass the same tests are a consensus set S; its score is |programs of S| x |tests that they pass|.
    Programs and tests that were written twice count twice, as in the released code.

    Example:
        >>> two_agree = Matrix((True, True, False), ("110", "110", "111"), (1, 1, 1))
        >>> codet(two_agree), most_tests(two_agree)
        (1.0, 0.0)
    """
    return _by_consensus(matrix, lambda programs, tests: programs * tests)


def codet_released(matrix: Matrix) -> float:
    """As `codet`, with the score of the released code: sqrt(|programs of S|) x |tests that they pass|."""
    # Squared, so that ties are exact.
    return _by_consensus(matrix, lambda programs, tests: programs * tests**2)


def most_tests(matrix: Matrix) -> float:
    """Choose the program that passes the most tests, whoever they were written against."""
    return _of_best(matrix.right, [matrix.tests_passed(row) for row in matrix.passed])


CHOICES: dict[str, Callable[[Matrix], float]] = {
    RANDOM: random_choice,
    "codet": codet,
    "codet_released": codet_released,
    "most_tests": most_tests,
    "best": best_program,
}
"""Name, as reports have it -> chance that the chosen program of a problem is right."""


def _by_consensus(matrix: Matrix, score: Callable[[int, int], int]) -> float:
    sets: defaultdict[str, int] = defaultdict(int)
    for row in matrix.passed:
        sets[row] += 1
    scores = {row: score(size, matrix.tests_passed(row)) for row, size in sets.items()}
    return _of_best(matrix.right, [scores[row] for row in matrix.passed])


def _of_best(right: Sequence[bool], scores: Sequence[int]) -> float:
    best = max(scores)
    chosen = [each for each, score in zip(right, scores, strict=True) if score == best]
    return sum(chosen) / len(chosen)
