"""Figures of suites of tests: what each problem contributes, and how problems make a figure.

Every problem has values, of which some may not exist (a mutation score of right tests, where no test is right).
A figure is made of the means of values over the problems that have them; its interval comes from problems
drawn with replacement. docs/evaluation.md has the definitions and where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from codea1_env.evaluation.statistics import REPETITIONS, SEED, Estimate, estimate_of
from codea1_env.evaluation.suites.scores import SuiteScore, fails, is_right

Floats = NDArray[np.float64]
Values = Mapping[str, float | None]
"""Name -> value of one problem, from 0 to 1; None where it has none."""

OF_WHOLE_SUITES = {"all pass@1": None, "any pass@1": "any-pass", "mutation score": "mut"}
"""Figures of whole suites, by the names of arXiv 2410.00752 -> the same for the first k tests; the first one is of its own."""
WORDS = {
    "pass": "right tests",
    "mut": "mutants killed by right tests",
    "Mul": "right tests x mutants killed by answers with one",
    "any-pass": "answers with a right test",
    "all-pass": "answers with right tests only",
    "p_u": "a test is right",
    "p_01": "a wrong program slips through a right test",
    "p_00": "a wrong program passes a wrong test",
    "mu": "Youden's J of one drawn test; above 0 one can learn from tests",
    "all pass@1": "whole answers with right tests only, however many",
    "any pass@1": "whole answers with a right test",
    "mutation score": "mutants killed by right tests of the whole answer",
}
"""What figures say; `in_words` adds which tests of an answer count, and of which answers a figure is."""


def in_words(name: str) -> str:
    """Words for a figure, with its name: no two have the same words.

    Example:
        >>> in_words("mut@5@pass")
        'mutants killed by right tests among the first 5, of answers with a right one (mut@5@pass)'
        >>> in_words("any pass@1"), in_words("own figure")
        ('whole answers with a right test (any pass@1)', 'own figure')
    """
    figure, *at = [name] if name in WORDS else name.split("@")
    if figure not in WORDS:
        return name
    k = at[0] if at else "pass"
    first = {"pass": "", "1": ", first test only"}.get(k, f" among the first {k}")
    of_right = ", of answers with a right one" if "pass" in at else ""
    return f"{WORDS[figure]}{first}{of_right} ({name})"


def names(ks: Sequence[int]) -> list[str]:
    """All figures for these k, in the order in which they are shown."""
    at_k = ["pass@{}", "mut@{}", "mut@{}@pass", "Mul@{}", "any-pass@{}", "all-pass@{}"]
    return [pattern.format(k) for pattern in at_k for k in ks] + [
        *("p_u", "p_01", "p_00", "mu"),
        *OF_WHOLE_SUITES,
    ]


def values_of(scores: Sequence[SuiteScore], ks: Sequence[int]) -> dict[str, float | None]:
    """Values of one problem: means over its suites."""
    values: dict[str, float | None] = {}
    for k in ks:
        values |= _at(scores, k)
    tests = [test for score in scores for test in score.tests]
    right, failing = sum(map(is_right, tests)), sum(map(fails, tests))
    values["p_u"] = _share(right, right + failing)
    pools = [score.pool for score in scores]
    values["p_01"] = _share(sum(p.right_passed for p in pools), sum(p.right_runs for p in pools))
    values["p_00"] = _share(sum(p.wrong_passed for p in pools), sum(p.wrong_runs for p in pools))
    size = len(scores[0].killed)
    whole = _at(scores, size)
    values |= {name: whole[f"{own}@{size}"] for name, own in OF_WHOLE_SUITES.items() if own}
    # Of as many tests as there are, not as many as were asked for.
    all_right = [bool(score.tests) and all(map(is_right, score.tests)) for score in scores]
    values["all pass@1"] = _mean(list(map(float, all_right)))
    return values


def _at(scores: Sequence[SuiteScore], k: int) -> dict[str, float | None]:
    kills = [_share(sum(score.killed[:k]), score.mutants) for score in scores]
    of_right = [share for share, each in zip(kills, scores, strict=True) if each.right(k)]
    return {
        f"pass@{k}": _mean([score.right(k) / k for score in scores]),
        f"any-pass@{k}": _mean([float(score.right(k) > 0) for score in scores]),
        f"all-pass@{k}": _mean([float(score.right(k) == k) for score in scores]),
        f"mut@{k}": _mean(kills),
        f"mut@{k}@pass": _mean(of_right),
    }


def estimate(problems: Sequence[Values], name: str) -> Estimate | None:
    """Figure with its 95% bootstrap interval over problems; None where no problem has its values.

    Example:
        >>> print(estimate([{"pass@1": 1.0}, {"pass@1": 1.0}], "pass@1"))
        1.000 (all equal)
    """
    parts, combine = _made_of(name)
    return _bootstrap(_table(problems, parts), combine)


def difference(ours: Sequence[Values], theirs: Sequence[Values], name: str) -> Estimate | None:
    """Figure of theirs minus that of ours, with a paired 95% bootstrap interval over the same problems."""
    parts, combine = _made_of(name)
    size = len(parts)
    table = np.concatenate([_table(ours, parts), _table(theirs, parts)], axis=1)
    return _bootstrap(table, lambda means: combine(means[size:]) - combine(means[:size]))


def _made_of(name: str) -> tuple[tuple[str, ...], Callable[[Floats], Floats]]:
    """Values that a figure is made of, and how: their means, shape (parts, n), to n figures."""
    if name.startswith("Mul@"):
        k = name.removeprefix("Mul@")
        return (f"pass@{k}", f"mut@{k}@pass"), _mul
    if name == "mu":
        return ("p_u", "p_01", "p_00"), _mu
    return (name,), lambda means: means[0]


def _table(problems: Sequence[Values], parts: Sequence[str]) -> Floats:
    rows = [[values.get(part) for part in parts] for values in problems]
    return np.asarray(rows, dtype=np.float64).reshape(len(problems), len(parts))


def _bootstrap(table: Floats, combine: Callable[[Floats], Floats]) -> Estimate | None:
    count = len(table)
    value = float(combine(_means(table, np.ones((1, count))))[0])
    if not np.isfinite(value):
        return None
    # How often each problem is drawn, which is all that means depend on.
    drawn = np.random.default_rng(SEED).multinomial(
        count, np.full(count, 1 / count), size=REPETITIONS
    )
    found = combine(_means(table, drawn.astype(np.float64)))
    # Not finite: no problem that has the value was drawn.
    return estimate_of(value, found[np.isfinite(found)])


def _mul(means: Floats) -> Floats:
    """0 where no test is right; there is no score of right tests then."""
    product: Floats = np.where(means[0] == 0, 0.0, means[0] * means[1])
    return product


def _mu(means: Floats) -> Floats:
    """Youden's J; a term is 0 if there is no test of its kind."""
    right, wrong = (
        np.where(share == 0, 0.0, share * factor)
        for share, factor in ((means[0], 1 - means[1]), (1 - means[0], means[2]))
    )
    difference: Floats = right - wrong
    return difference


def _means(table: Floats, drawn: Floats) -> Floats:
    """Weighted means of the columns over the rows that have a value, shape (columns, len(drawn))."""
    known = np.isfinite(table)
    with np.errstate(invalid="ignore"):
        means: Floats = (drawn @ np.where(known, table, 0.0) / (drawn @ known)).T
    return means


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
