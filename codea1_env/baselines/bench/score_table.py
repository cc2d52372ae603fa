"""Scores of a benchmark as arrays of the same problems, with the controls, and what is compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from codea1_env.baselines.bench.results import UNSEEN_PREFIX, Result, Scores
from codea1_env.baselines.payoffs import GAME_FIGURES
from codea1_env.evaluation.statistics import Estimate, mean_over_runs

Floats = NDArray[np.float64]

START = "start"
"""Stands for the players before the first step."""
COPIER = "copied examples"
"""Stands for a tester that copies the examples of the problem's text, as every run measures it."""
CONTROLS = {START: "start (control)", COPIER: "copier (control)"}
"""What a learned figure must be above to be one, and how it is shown."""

MEASURES = ("pass_rate", "kill_rate", "new_kill_rate")
"""What is compared of every entry."""
OF_END = ("only_book", "past_pass_rate", "forgetting")
"""What there is at the end only."""


class Table:
    """Scores of all entries, as arrays of the same problems.

    Args:
        results: What came of the runs.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = [result for result in results if result.status == "ok"]
        self.entries = list(dict.fromkeys(result.entry for result in results))

    @property
    def measures_unseen(self) -> bool:
        """Whether problems were measured that are not trained on."""
        return any(name.startswith(UNSEEN_PREFIX) for r in self.results for row in r.end.values() for name in row)  # fmt: skip

    def scores(self, entry: str, measure: str) -> Floats | None:
        """Score of shape (runs, problems); None if there are none."""
        found = self.by_seed(entry, measure)
        return np.array(list(found.values())) if found else None

    def by_seed(self, entry: str, measure: str) -> dict[int, Floats]:
        """Seed -> the scores of its run, of the same problems for all entries; empty if there are none.

        The controls are the same in all entries with the same kind of players: they are taken from the first entry that
        has them. Only problems that every run has a score for are used.
        """
        for ran in [entry] if entry not in CONTROLS else self.entries:
            rows = {each.seed: _of(entry, each) for each in self.results if each.entry == ran}
            # A seed whose problems have none of what is measured, such as mutants that copies leave alive, has no score.
            rows = {
                seed: row
                for seed, row in rows.items()
                if any(_value(row, task, measure) is not None for task in row)
            }
            first = next(iter(rows.values()), {})
            tasks = [task for task in sorted(first) if self._known(task, measure)]
            if tasks and _value(first, tasks[0], measure) is not None:
                return {
                    seed: np.array([row[task][measure] for task in tasks], dtype=float)
                    for seed, row in rows.items()
                }
        return {}  # nothing of the kind was measured, such as the book where there is none

    def _known(self, task: str, measure: str) -> bool:
        return all(
            _value(scores, task, measure) is not None
            for result in self.results
            for scores in (
                [result.end] if measure in (*OF_END, *GAME_FIGURES) else [result.start, result.end]
            )
            # A run that has no score at all for a measure has no say in which problems count.
            if any(_value(scores, each, measure) is not None for each in scores)
        )

    def mean(self, entry: str, measure: str) -> float | None:
        """Mean over runs and problems."""
        scores = self.scores(entry, measure)
        return None if scores is None else float(scores.mean())

    def estimate(self, entry: str, measure: str) -> Estimate | float | None:
        """Mean over runs and problems with its interval over runs; without one from one seed."""
        scores = self.scores(entry, measure)
        if scores is None:
            return None
        means = scores.mean(axis=1)
        if len(means) < 2:
            return float(means[0])
        found = mean_over_runs(means)
        most = 2.0 if measure.startswith(GAME_FIGURES[0]) else 1.0  # the gains of two, or a share
        return Estimate(found.value, max(0.0, found.low), min(most, found.high))

    def difference(self, entry: str, other: str, measure: str) -> Estimate | None:
        """By how much one entry scores more than another, paired by seed; None with less than two seeds of both."""
        ours, theirs = self.by_seed(entry, measure), self.by_seed(other, measure)
        pairs = [(ours[seed] - theirs[seed]).mean() for seed in ours if seed in theirs]
        return mean_over_runs(pairs) if len(pairs) > 1 else None


def _of(entry: str, result: Result) -> Scores:
    """Return what a run says of an entry, or of a control."""
    if entry == START:
        return result.start
    return _copied(result.end) if entry == COPIER else result.end


def _copied(scores: Scores) -> Scores:
    """Return what the control scores on the same mutants: none of those that it does not kill."""
    return {
        task: {
            f"{kind}{name}": value
            for kind in ("", UNSEEN_PREFIX)
            if row.get(f"{kind}kill_rate") is not None  # no tester of language was measured
            for name, value in (
                ("kill_rate", row[f"{kind}copier_kill_rate"]),
                ("new_kill_rate", None if row[f"{kind}new_kill_rate"] is None else 0.0),
            )
        }
        for task, row in scores.items()
    }


def _value(scores: Scores, task: str, measure: str) -> float | None:
    return scores.get(task, {}).get(measure)
