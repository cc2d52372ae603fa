"""Scores of a benchmark: arrays of the same problems with the controls, ranks with ties, and how soon an entry got there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from codea1_env.baselines.bench.results import UNSEEN_PREFIX, Result, Scores
from codea1_env.baselines.bench.suite import BenchConfig
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
    """Scores of all entries, as arrays of the same problems."""

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
        return _within(0.0, mean_over_runs(means), _most(measure))

    def difference(self, entry: str, other: str, measure: str) -> Estimate | None:
        """By how much one entry scores more than another, paired by seed; None with less than two seeds of both."""
        ours, theirs = self.by_seed(entry, measure), self.by_seed(other, measure)
        pairs = [(ours[seed] - theirs[seed]).mean() for seed in ours if seed in theirs]
        most = _most(measure)
        return _within(-most, mean_over_runs(pairs), most) if len(pairs) > 1 else None


def _most(measure: str) -> float:
    return 2.0 if measure.startswith(GAME_FIGURES[0]) else 1.0  # the gains of two, or a share


def _within(least: float, found: Estimate, most: float) -> Estimate:
    return Estimate(found.value, max(least, found.low), min(most, found.high))


def _of(entry: str, result: Result) -> Scores:
    if entry == START:
        return result.start
    return _copied(result.end) if entry == COPIER else result.end


def _copied(scores: Scores) -> Scores:
    """Scores of the copier on the same mutants. By definition it kills no new one."""
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


GOAL = 0.8
"""Share at which the steps of a run are counted."""
SKILLS = {"pass_rate": "coder: pass rate", "new_kill_rate": "tester: new kill rate"}
"""What is ranked."""


@dataclass(frozen=True)
class Standing:
    """Where an entry stands by one measure."""

    entry: str
    rank: tuple[int, int]
    """Best and worst rank that its differences to the others leave open: paired by seed, with an interval without 0."""
    area: Estimate | float | None
    """Mean of the measure over the steps of a run: the area under its curve, from 0 to 1."""
    steps: float | None
    """Median of the steps after which runs first had `GOAL`; None if less than half of them ever had."""
    runs: int

    @property
    def rank_text(self) -> str:
        """The rank, as `2` or `1-3`."""
        best, worst = self.rank
        return str(best) if best == worst else f"{best}-{worst}"


def standings(table: Table, measure: str) -> list[Standing]:
    """Rank all entries by a key of `SKILLS`, the best first. Problems that are not trained on decide where they were measured."""
    measure = f"{UNSEEN_PREFIX}{measure}" if table.measures_unseen else measure
    names = [name for name in table.entries if table.mean(name, measure) is not None]
    found = []
    for name in names:
        above = below = 0
        for other in names:
            difference = table.difference(name, other, measure) if other != name else None
            above += difference is not None and difference.high < 0
            below += difference is not None and difference.low > 0
        runs = [result for result in table.results if result.entry == name]
        metric = measure if measure.startswith(UNSEEN_PREFIX) else f"held_out/{measure}"
        areas, steps = _curves(runs, metric)
        area: Estimate | float | None = None
        if areas:
            area = _within(0.0, mean_over_runs(areas), 1.0) if len(areas) > 1 else areas[0]
        reached = sorted(steps) + [np.inf] * (len(runs) - len(steps))
        middle = float(np.median(reached)) if reached else np.inf
        found.append(
            Standing(
                name,
                (above + 1, len(names) - below),
                area,
                middle if np.isfinite(middle) else None,
                len(runs),
            )
        )
    return sorted(found, key=lambda each: (each.rank, -(table.mean(each.entry, measure) or 0.0)))


ABOUT_GAME = (
    "Exploitability (NashConv): what both players together would gain by their best responses, in the game in which a broken",
    "program costs 1; of the last players, and of the average of the checkpoints. Cyclic share: how much of the game between",
    "checkpoints no rating explains. From payoffs of all pairs of pools; less is better. A dash: a player has no such table.",
)


def _curves(runs: Sequence[Result], metric: str) -> tuple[list[float], list[float]]:
    """Return the area of each run that was measured, and the steps to the goal of those that had it."""
    areas, steps = [], []
    for run in runs:
        points = [(row["step"], row[metric]) for row in run.curves if row.get(metric) is not None]
        if not points:
            continue
        at, values = np.array(points, dtype=float).T
        width = at[-1] - at[0]
        areas.append(float(np.trapezoid(values, at) / width) if width else float(values[0]))
        there = at[values >= GOAL]
        if there.size:
            steps.append(float(there[0]))
    return areas, steps


@dataclass(frozen=True)
class Claim:
    """That one entry scores higher than another."""

    measure: str
    better: str
    worse: str
    says: str


CLAIMS = (
    Claim("pass_rate", "code-a1", "golden-tests", "Code-A1 trains a better coder than golden tests"),
    Claim("pass_rate", "golden-tests", "self-play", "golden tests train a better coder than self-play"),
    Claim("pass_rate", "code-a1", "self-play", "Code-A1 trains a better coder than self-play"),
    Claim("pass_rate", "self-play", START, "self-play trains a better coder than none"),
    Claim("kill_rate", "code-a1", COPIER, "Code-A1 trains a better tester than one that copies"),
    Claim("new_kill_rate", "code-a1", START, "Code-A1 trains testers to find what copies do not"),
    Claim("kill_rate", "code-a1", "sft", "Code-A1 trains a better tester than imitation"),
    Claim("kill_rate", "code-a1", "self-play", "Code-A1 trains a better tester than self-play"),
    Claim("kill_rate", "code-a1", "alpha=0", "alpha 0.5 is better for the tester than 0"),
    Claim("kill_rate", "code-a1", "alpha=0.25", "alpha 0.5 is better for the tester than 0.25"),
    Claim("kill_rate", "code-a1", "alpha=0.75", "alpha 0.5 is better for the tester than 0.75"),
    Claim("kill_rate", "code-a1", "alpha=1", "alpha 0.5 is better for the tester than 1"),
    Claim("past_pass_rate", "code-a1", "no-book", "the Mistake Book prevents forgetting"),
    Claim("forgetting", "no-book", "code-a1", "without the Mistake Book more is forgotten"),
    Claim("pass_rate", "code-a1", "code-a1-no-reference", "the reference is needed for the coder"),
    Claim("pass_rate", "self-play", "self-collusion", "the reference is needed in self-play"),
)  # fmt: skip
"""Orderings that the paper reports or that its argument rests on."""


def command(config: BenchConfig) -> str:
    """Return the command that makes a benchmark."""
    words = ["codea1", "bench", "algorithms", "--algorithms", *config.algorithms]
    models = ("eval_problems",) if config.preset is not None else ()
    sizes = ("problems", "seeds", "max_problems", "max_steps", "num_iterations", "eval_steps")
    for name in ("preset", *sizes, *models, "sweep", "sweep_seeds"):
        value = getattr(config, name)
        if value is not None:
            shown = [f"{each:g}" for each in value] if name == "sweep" else [str(value)]
            words += [f"--{name.replace('_', '-')}", *shown]
    return shlex.join(words)


def nobody_learned(table: Table) -> tuple[str, str] | None:
    """Return the warning that no coder is told from the start, and what it means; None where one is, or none was measured."""
    kind = UNSEEN_PREFIX if table.measures_unseen else ""
    above = [_clearly_above(table, name, START, f"{kind}pass_rate") for name in table.entries]
    if any(above) or False not in above:
        return None
    where = ", on problems that are not trained on" if kind else ""
    return (
        f"No coder here is clearly above the players before training{where}.",
        "A benchmark that is too short for that, as `--quick` is, shows that everything works, and nothing about which "
        "algorithm is better.",
    )


def no_better_than_copies(table: Table, names: Mapping[str, str], measure: str) -> str:
    """Return which testers are not told from copying; "" if all are."""
    above = {name: _clearly_above(table, name, COPIER, measure) for name in table.entries}
    below = [names[name] for name, holds in above.items() if holds is False]
    if not below:
        return ""
    return f"Testers whose kill rate is not clearly above that of copies: {', '.join(below)}."


def _clearly_above(table: Table, name: str, control: str, measure: str) -> bool | None:
    """Whether a row is told from a control, which one seed never is. None for what was not measured."""
    if table.mean(name, measure) is None or table.mean(control, measure) is None:
        return None
    difference = table.difference(name, control, measure)
    return difference is not None and difference.low > 0


class Told(NamedTuple):
    """What became of a claim."""

    claim: Claim
    measure: str
    difference: Estimate

    @property
    def verdict(self) -> tuple[str, str]:
        """Whether it holds, and why not."""
        if self.difference.low > 0:
            return "holds", ""
        if self.difference.high < 0:
            return "does not hold", ": it is the other way round"
        return "cannot be told", ": the interval includes 0"

    @property
    def says(self) -> str:
        """The claim as a sentence begins."""
        return self.claim.says[0].upper() + self.claim.says[1:]


def told(table: Table) -> list[Told]:
    """Results of all claims about rows that were run."""
    found = []
    for claim in CLAIMS:
        of_models = table.measures_unseen and claim.measure in MEASURES
        for kind in (UNSEEN_PREFIX, "") if of_models else ("",):
            difference = table.difference(claim.better, claim.worse, f"{kind}{claim.measure}")
            if difference is not None:
                found.append(Told(claim, f"{kind}{claim.measure}", difference))
    return found


def by_chance(intervals: int) -> str:
    """Say how many of several intervals miss 0 by chance."""
    return f"Each of these {intervals} intervals stands for itself: of twenty that say nothing, one has no 0 in it by chance."
