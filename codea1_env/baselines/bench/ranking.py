"""Which orderings hold in the table of a benchmark: those of the paper, and those its argument needs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from codea1_env.baselines.bench.results import UNSEEN_PREFIX
from codea1_env.baselines.bench.score_table import (
    COPIER,
    MEASURES,
    START,
    Table,
)
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.evaluation.statistics import Estimate


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


_BAR = "\\|"
_CONTROL_ROWS = [(name, f"*{shown}*") for name, shown in CONTROLS.items()]
_MAX_ERROR = 500
"""Characters of an error that are shown; result.json of the run has them all."""


def leaderboard(
    config: BenchConfig,
    results: Sequence[Result],
    swept: Sequence[Swept],
    machine: str,
    plots: Sequence[str],
    of_sweep: Sequence[tuple[str, str, str]] = (),
    not_shown: int = 0,
) -> str:
    """Text of LEADERBOARD.md.

    Args:
        config: The benchmark.
        results: Results of its runs.
        swept: Learning rates that the sweep found.
        machine: The machine that it ran on.
        plots: Files of plots, to be shown.
        of_sweep: Runs of the sweep that failed: see `failures_of`.
        not_shown: Runs of the folder that are done, and of other rows or seeds.
    """
    table = Table(results)
    names = short_names(table.entries)
    wanted = config.seeds * len(config.algorithms)
    updates = f"{config.num_iterations} updates per batch"
    if not config.base(0).has_language_model:
        updates += " of algorithms that clip"
    lines = [
        "# Leaderboard",
        "",
        f"{counted(config.seeds, 'seeds')}, {counted(config.max_problems, 'problems')} of {config.problems}, "
        f"{counted(config.max_steps, 'steps')}, {updates}; "
        f"{counted_of(len(results), wanted, 'runs')} done, {sum(r.status == 'failed' for r in results)} failed. {machine}.",
        "",
        f"    {command(config)}",
    ]
    if not_shown:
        lines += ["", f"**Not all that was measured**: {not_shown} finished runs of this folder are of other rows or seeds. `--resume` with their `--algorithms` and `--seeds` shows them."]  # fmt: skip
    if warning := nobody_learned(table):
        lines += ["", f"**{warning[0]}** {warning[1]}"]
    if table.measures_unseen:
        lines += ["", "## Problems that are not trained on", "", *_of_unseen(table, names)]
        lines += ["", "## Problems that are trained on"]
    if table.entries:
        lines += ["", *_of_trained(table, names)]
    lines += standing_lines(table, names) if config.ranks else []
    lines += game_lines(table, names)
    lines += _failed(results, of_sweep, names)
    found = list(_claims(table))
    if found:
        lines += ["", "## What holds at this scale", "", *found]
    lines += sweep_lines(config, swept, short_names([each.entry for each in swept]))
    for plot in plots:
        lines += ["", f"![{plot.removesuffix('.png')}]({plot})"]
    return "\n".join(lines) + "\n"


def _failed(
    results: Sequence[Result], of_sweep: Sequence[tuple[str, str, str]], names: Mapping[str, str]
) -> list[str]:
    swept_names = short_names(list(dict.fromkeys(name for name, _, _ in of_sweep)))
    lines = [
        f"- {names[each.entry]}, seed {each.seed}: {in_line(each.error, _MAX_ERROR)}"
        for each in results
        if each.status == "failed"
    ]
    lines += [
        f"- Sweep: {swept_names[name]}, {which}: {in_line(error, _MAX_ERROR)}"
        for name, which, error in of_sweep
    ]
    return ["", "## Failed runs", "", *lines] if lines else []


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
    """Return what became of all claims about rows that were run."""
    found = []
    for claim in CLAIMS:
        of_models = table.measures_unseen and claim.measure in MEASURES
        for kind in (UNSEEN_PREFIX, "") if of_models else ("",):
            difference = table.difference(claim.better, claim.worse, f"{kind}{claim.measure}")
            if difference is not None:
                found.append(Told(claim, f"{kind}{claim.measure}", difference))
    return found


def by_chance(intervals: int) -> str:
    """Return what many intervals together say."""
    return f"Each of these {intervals} intervals stands for itself: of twenty that say nothing, one has no 0 in it by chance."
