"""The table of a benchmark, and which orderings hold in it: those of the paper, and those its argument needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from codea1_env.baselines.bench.results import UNSEEN_PREFIX, Result
from codea1_env.baselines.bench.score_table import (
    CONTROLS,
    COPIER,
    MEASURES,
    OF_END,
    START,
    Table,
    game_lines,
    standing_lines,
)
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.bench.sweep import Swept, sweep_lines
from codea1_env.evaluation.statistics import Estimate, written
from codea1_env.rendering.display import counted, counted_of, in_line, short_names


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


def _paragraph(text: str) -> list[str]:
    return ["", text] if text else []


def _clearly_above(table: Table, name: str, control: str, measure: str) -> bool | None:
    """Whether a row is told from a control, which one seed never is. None for what was not measured."""
    if table.mean(name, measure) is None or table.mean(control, measure) is None:
        return None
    difference = table.difference(name, control, measure)
    return difference is not None and difference.low > 0


def _of_unseen(table: Table, names: Mapping[str, str]) -> list[str]:
    measures = [f"{UNSEEN_PREFIX}{each}" for each in MEASURES]
    passing, killing, new = (_problems(table, measure) for measure in measures)
    return [
        f"Pass rate: share of all golden tests of {passing} problems that the coder's programs pass. Kill rate: share of the mutants of "
        f"{killing} problems",
        "that the tester's suites kill; new kill rate: of those that copies of the examples in the problem's text do not kill,",
        f"of {new} problems. A dash: the tester is no language model, or there is one seed.",
        *_about_intervals(table, names),
        "",
        *_rows(table, names, measures),
        *_paragraph(no_better_than_copies(table, names, measures[1])),
    ]


def _of_trained(table: Table, names: Mapping[str, str]) -> list[str]:
    return [
        "Pass rate: share of held-out golden tests that the coder's programs pass. Kill rate: share of held-out",
        "mutants that the tester's suites kill; new kill rate: the same of those that copies of the examples in the problem's text",
        f"do not kill, of the {_problems(table, 'new_kill_rate')} problems that have some with every seed. No reward uses any of them.",
        *_about_intervals(table, names),
        "Only book: held-out mutants that only tests of the Mistake Book kill. Past: tests that once broke a program and that",
        "programs pass at the end. Forgotten: how much more of its held-out tests a problem passed at the best measurement before",
        "than at the end; measurements are samples, so that a coder that never changes has some, too (`frozen-coder` shows how much at its pass rate).",
        "",
        *_rows(table, names, MEASURES, of_end=True),
        *_paragraph(no_better_than_copies(table, names, "kill_rate")),
    ]


def _about_intervals(table: Table, names: Mapping[str, str]) -> list[str]:
    first = names[table.entries[0]]
    return [
        "Means over seeds and problems with 95% intervals over seeds, by Student's t: the problems of a run have one learner, and are no",
        f"independent runs. The differences to {first} are paired by seed: an interval with 0 in it says nothing. Controls have learned",
        "nothing: the players before training, measured once, and a tester that copies those examples; mutants that are measured are",
        "first of all those that it does not kill.",
    ]


def _problems(table: Table, measure: str) -> int:
    scores = table.scores(table.entries[0], measure)
    return 0 if scores is None else scores.shape[1]


def _rows(
    table: Table, names: Mapping[str, str], measures: Sequence[str], *, of_end: bool = False
) -> list[str]:
    first = table.entries[0]
    less = f"less {names[first]}".replace("|", _BAR)
    last = ["only book", "past", "forgotten"] if of_end else []
    # A narrow terminal shows columns apart: each heading says its measure.
    pairs = (
        f"{each} | {each.removeprefix('coder: ').removeprefix('tester: ')} {less}"
        for each in _SKILLS
    )
    heads = ["", *pairs, *last, "runs"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * (8 + len(last))}"]
    order = sorted(table.entries, key=lambda name: -(table.mean(name, measures[0]) or -1.0))
    shown = [(name, names[name]) for name in order] + (_CONTROL_ROWS if table.results else [])
    for name, text in shown:
        cells: list[Estimate | float | None] = []
        for measure in measures:
            less_first = table.difference(name, first, measure) if name != first else None
            cells += [table.estimate(name, measure), less_first]
        control = name in CONTROLS
        cells += [None if control else table.mean(name, each) for each in OF_END if of_end]
        runs = sum(result.entry == name for result in table.results)
        lines.append(_line(text, *map(written, cells), "-" if control else f"{runs}"))
    return lines


_SKILLS = ("coder: pass rate", "tester: kill rate", "new kill rate")


def _line(name: str, *cells: str) -> str:
    return f"| {' | '.join([name.replace('|', _BAR), *cells])} |"


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


def _claims(table: Table) -> Iterator[str]:
    found = told(table)
    for each in found:
        better, worse = each.claim.better, each.claim.worse
        holds, why = each.verdict
        means = [written(table.mean(name, each.measure)) for name in (better, worse)]
        yield (
            f"- {each.says} ({better} over {worse}, {each.measure}): **{holds}**{why}; means {' and '.join(means)}, "
            f"difference {each.difference}."
        )
    if len(found) > 1:
        yield ""
        yield by_chance(len(found))


def by_chance(intervals: int) -> str:
    """Return what many intervals together say."""
    return f"Each of these {intervals} intervals stands for itself: of twenty that say nothing, one has no 0 in it by chance."
