"""The table of a benchmark, and which orderings hold in it: those of the paper, and those its argument needs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.baselines.bench.results import Result
from codea1_env.baselines.bench.run_result import Scores
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.bench.sweep import Swept, sweep_lines
from codea1_env.evaluation.names import short_names
from codea1_env.evaluation.statistics import (
    Estimate,
    interval_of_iqm,
    probability_of_improvement,
)
from codea1_env.rendering.markdown import in_line

Floats = NDArray[np.float64]

START = "start"
"""Stands for the players before the first step."""
COPIER = "copied examples"
"""Stands for a tester that copies the examples of the problem's text, as every run measures it."""
CONTROLS = {START: "start (control)", COPIER: "copier (control)"}
"""What a learned figure must be above to be one, and how it is shown."""

_MAX_ERROR = 500
"""Characters of an error that are shown; result.json of the run has them all."""

_MEASURES = ("pass_rate", "kill_rate", "new_kill_rate")


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
    Claim("pass_rate", "code-a1", "code-a1-no-reference", "the reference is needed for the coder"),
    Claim("pass_rate", "self-play", "self-collusion", "the reference is needed in self-play"),
)  # fmt: skip
"""Orderings that the paper reports or that its argument rests on."""


class Table:
    """Scores of all entries, as arrays of the same problems.

    Args:
        results: What came of the runs.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = [result for result in results if result.status == "ok"]
        self.entries = list(dict.fromkeys(result.entry for result in results))

    def scores(self, entry: str, measure: str) -> Floats | None:
        """Score of shape (runs, problems); None if there are none.

        The controls are the same in all entries with the same kind of players: they are taken from the first entry.
        Only problems that every run has a score for are used.
        """
        rows = [r.end for r in self.results if r.entry == entry]
        if entry in CONTROLS and self.results:
            first = next(name for name in self.entries if self._ran(name))
            ran = [r for r in self.results if r.entry == first]
            rows = [r.start if entry == START else _copied(r.end) for r in ran]
        tasks = [task for task in sorted(rows[0]) if self._known(task, measure)] if rows else []
        if not rows or not tasks or _value(rows[0], tasks[0], measure) is None:
            return None  # nothing of the kind was measured, such as the book where there is none
        return np.array([[row[task][measure] for task in tasks] for row in rows], dtype=float)

    def _ran(self, entry: str) -> bool:
        return any(result.entry == entry for result in self.results)

    def _known(self, task: str, measure: str) -> bool:
        return all(
            _value(scores, task, measure) is not None
            for result in self.results
            for scores in ([result.start, result.end] if measure in _MEASURES else [result.end])
            # A run that has no score at all for a measure has no say in which problems count.
            if any(_value(scores, each, measure) is not None for each in scores)
        )

    def iqm(self, entry: str, measure: str) -> Estimate | None:
        """Interquartile mean with its interval; None from one seed, which has none."""
        scores = self.scores(entry, measure)
        if scores is None or len(scores) < 2:
            return None
        return interval_of_iqm(scores, np.random.default_rng(0))

    def mean(self, entry: str, measure: str) -> float | None:
        """Mean over runs and problems."""
        scores = self.scores(entry, measure)
        return None if scores is None else float(scores.mean())

    def improvement(self, better: str, worse: str, measure: str) -> Estimate | None:
        """Probability that one entry scores higher than another; None if either has less than two seeds."""
        ours, theirs = self.scores(better, measure), self.scores(worse, measure)
        if ours is None or theirs is None or min(len(ours), len(theirs)) < 2:
            return None
        return probability_of_improvement(ours, theirs, np.random.default_rng(0))


def _copied(scores: Scores) -> Scores:
    """What the control scores on the same mutants: none of those that it does not kill."""
    return {
        task: {
            "kill_rate": row["copier_kill_rate"],
            "new_kill_rate": None if row["new_kill_rate"] is None else 0.0,
        }
        for task, row in scores.items()
    }


def _value(scores: Scores, task: str, measure: str) -> float | None:
    return scores.get(task, {}).get(measure)


def leaderboard(
    config: BenchConfig,
    results: Sequence[Result],
    swept: Sequence[Swept],
    machine: str,
    plots: Sequence[str],
) -> str:
    """LEADERBOARD.md.

    Args:
        config: The benchmark.
        results: What came of the runs.
        swept: What the sweep found.
        machine: What it ran on.
        plots: Files of plots, to be shown.
    """
    table = Table(results)
    names = short_names(table.entries)
    first = table.entries[0] if table.entries else ""
    wanted = config.seeds * len(config.algorithms)
    new = table.scores(first, "new_kill_rate")
    remark = _nobody_learned(table)
    order = sorted(table.entries, key=lambda name: -(table.mean(name, "pass_rate") or -1.0))
    lines = [
        "# Leaderboard",
        "",
        f"{config.seeds} seeds, {config.max_problems} problems of {config.problems}, {config.max_steps} steps, {config.num_iterations} updates "
        f"per batch of algorithms that clip; {len(results)} of {wanted} runs done, {sum(r.status == 'failed' for r in results)} failed. {machine}.",
        "",
        f"    {command(config)}",
        "",
        *([remark, ""] if remark else []),
        "Pass rate: share of held-back golden tests that the coder's programs pass. Kill rate: share of held-back",
        "mutants that the tester's suites kill; new kill rate: the same of those that copies of the examples in the problem's text",
        f"do not kill, of the {0 if new is None else new.shape[1]} problems that have some with every seed. No reward uses any of them. IQM is the interquartile mean over seeds and",
        "problems with its 95% stratified bootstrap interval, P the probability that a run scores higher than one",
        f"of {names.get(first, first)} on a random problem. Only book: held-back mutants that only tests of the Mistake Book kill.",
        "Past: tests that once broke a program and that programs pass at the end. Controls: the players before training, and a",
        "tester that copies those examples; the measured mutants are first of all those that it does not kill.",
        "",
        "| | coder: pass rate, IQM | mean | P | tester: kill rate, IQM | mean | P | new kill rate, IQM | mean | P | only book | past | runs |",
        f"|{'---|' * 13}",
    ]
    lines += [_row(table, name, names[name], first) for name in order]
    if table.results:
        lines += [_row(table, name, f"*{shown}*", first) for name, shown in CONTROLS.items()]
        lines += _no_better_than_copies(table, names)
    failures = [result for result in results if result.status == "failed"]
    if failures:
        lines += ["", "## Failed runs", ""]
        lines += [
            f"- {names[each.entry]}, seed {each.seed}: {in_line(each.error, _MAX_ERROR)}"
            for each in failures
        ]
    found = [line for claim in CLAIMS if (line := _verdict(table, claim))]
    if found:
        lines += ["", "## What holds at this scale", "", *found]
    lines += sweep_lines(config, swept, short_names([each.entry for each in swept]))
    for plot in plots:
        lines += ["", f"![{plot.removesuffix('.png')}]({plot})"]
    return "\n".join(lines) + "\n"


def command(config: BenchConfig) -> str:
    """The command that makes a benchmark."""
    words = ["codea1", "bench", "algorithms", "--algorithms", *config.algorithms]
    if config.preset is not None:
        words += ["--preset", config.preset]
    words += [
        "--problems",
        config.problems,
        "--seeds",
        str(config.seeds),
        "--max-problems",
        str(config.max_problems),
    ]
    words += ["--max-steps", str(config.max_steps), "--num-iterations", str(config.num_iterations)]
    words += ["--sweep", *(f"{each:g}" for each in config.sweep)]
    return shlex.join([*words, "--sweep-seeds", str(config.sweep_seeds)])


def _nobody_learned(table: Table) -> str:
    """Say what a benchmark shows whose coders are no better than at their start; empty text for others."""
    chances = [table.improvement(name, START, "pass_rate") for name in table.entries]
    known = [chance for chance in chances if chance is not None]
    if not known or any(chance.low > 0.5 for chance in known):
        return ""
    return (
        "**No coder here is clearly above the players before training.** A benchmark that is too short for that, as `--quick` "
        "is, shows that everything works, and nothing about which algorithm is better."
    )


def _no_better_than_copies(table: Table, names: Mapping[str, str]) -> list[str]:
    """Say of which testers the kill rate is no evidence of learning."""
    chances = {name: table.improvement(name, COPIER, "kill_rate") for name in table.entries}
    below = [names[name] for name, chance in chances.items() if chance and chance.low <= 0.5]
    if not below:
        return []
    return ["", f"Testers whose kill rate is not clearly above that of copies (P over the copier): {', '.join(below)}."]  # fmt: skip


def _row(table: Table, name: str, shown: str, first: str) -> str:
    cells = [shown.replace("|", "\\|")]
    for measure in _MEASURES:
        cells += [_text(table.iqm(name, measure)), _text(table.mean(name, measure))]
        improvement = table.improvement(name, first, measure) if name != first else None
        cells.append(_text(improvement))
    cells += [
        _text(None if name in CONTROLS else table.mean(name, measure))
        for measure in ("only_book", "past_pass_rate")
    ]
    runs = sum(result.entry == name for result in table.results)
    cells.append(f"{runs}" if name not in CONTROLS else "-")
    return f"| {' | '.join(cells)} |"


def _verdict(table: Table, claim: Claim) -> str:
    chance = table.improvement(claim.better, claim.worse, claim.measure)
    if chance is None:
        return ""
    means = [table.mean(name, claim.measure) for name in (claim.better, claim.worse)]
    if chance.low > 0.5:
        holds = "**holds**"
    elif chance.high < 0.5:
        holds = "**does not hold**: it is the other way round"
    else:
        holds = "**cannot be told**: the interval includes 0.5"
    what = claim.says[0].upper() + claim.says[1:]
    numbers = f"means {_text(means[0])} and {_text(means[1])}, P = {chance}"
    return f"- {what} ({claim.better} over {claim.worse}, {claim.measure}): {holds}; {numbers}."


def _text(value: Estimate | float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
