"""The table of a benchmark, and which orderings hold in it: those of the paper, and those its argument needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codea1_env.baselines.bench.results import UNSEEN_PREFIX, Result
from codea1_env.baselines.bench.score_table import CONTROLS, COPIER, MEASURES, OF_END, START, Table
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.bench.sweep import Swept, sweep_lines
from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import in_line, short_names


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
) -> str:
    """LEADERBOARD.md.

    Args:
        config: The benchmark.
        results: What came of the runs.
        swept: What the sweep found.
        machine: What it ran on.
        plots: Files of plots, to be shown.
        of_sweep: Runs of the sweep that failed: see `failures_of`.
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
        *_of_unseen(table, names),
        "Pass rate: share of held-back golden tests that the coder's programs pass. Kill rate: share of held-back",
        "mutants that the tester's suites kill; new kill rate: the same of those that copies of the examples in the problem's text",
        f"do not kill, of the {0 if new is None else new.shape[1]} problems that have some with every seed. No reward uses any of them. IQM is the interquartile mean over seeds and",
        "problems with its 95% stratified bootstrap interval, P the probability that a run scores higher than one",
        f"of {names.get(first, first)} on a random problem. Only book: held-back mutants that only tests of the Mistake Book kill.",
        "Past: tests that once broke a program and that programs pass at the end. Forgotten: how much more of its held-back tests a problem",
        "passed at the best measurement before than at the end. Controls: the players before training, and a",
        "tester that copies those examples; the measured mutants are first of all those that it does not kill.",
        "",
        "| | coder: pass rate, IQM | mean | P | tester: kill rate, IQM | mean | P | new kill rate, IQM | mean | P | only book | past | forgotten | runs |",
        f"|{'---|' * 14}",
    ]
    lines += [_row(table, name, names[name], first) for name in order]
    if table.results:
        lines += [_row(table, name, shown, first) for name, shown in _CONTROL_ROWS]
        lines += _no_better_than_copies(table, names)
    failures = [result for result in results if result.status == "failed"]
    if failures or of_sweep:
        lines += ["", "## Failed runs", ""]
        lines += [
            f"- {names[each.entry]}, seed {each.seed}: {in_line(each.error, _MAX_ERROR)}"
            for each in failures
        ]
        swept_names = short_names(list(dict.fromkeys(name for name, _, _ in of_sweep)))
        lines += [
            f"- Sweep: {swept_names[name]}, {which}: {in_line(error, _MAX_ERROR)}"
            for name, which, error in of_sweep
        ]
    found = list(_claims(table))
    if found:
        lines += ["", "## What holds at this scale", "", *found]
    lines += sweep_lines(config, swept, short_names([each.entry for each in swept]))
    for plot in plots:
        lines += ["", f"![{plot.removesuffix('.png')}]({plot})"]
    return "\n".join(lines) + "\n"


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


def _nobody_learned(table: Table) -> str:
    """Say what a benchmark shows whose coders are no better than at their start; empty text for others."""
    above = [_clearly_above(table, name, START, "pass_rate") for name in table.entries]
    if any(above) or False not in above:
        return ""
    return (
        "**No coder here is clearly above the players before training.** A benchmark that is too short for that, as `--quick` "
        "is, shows that everything works, and nothing about which algorithm is better."
    )


def _no_better_than_copies(table: Table, names: Mapping[str, str]) -> list[str]:
    """Say of which testers the kill rate is no evidence of learning."""
    above = {name: _clearly_above(table, name, COPIER, "kill_rate") for name in table.entries}
    below = [names[name] for name, holds in above.items() if holds is False]
    if not below:
        return []
    return ["", f"Testers whose kill rate is not clearly above that of copies (P over the copier): {', '.join(below)}."]  # fmt: skip


def _clearly_above(table: Table, name: str, control: str, measure: str) -> bool | None:
    """Whether a row is told from a control: one seed tells nothing from anything. None for what was not measured."""
    if table.mean(name, measure) is None or table.mean(control, measure) is None:
        return None
    chance = table.improvement(name, control, measure)
    return chance is not None and chance.low > 0.5


def _row(table: Table, name: str, shown: str, first: str) -> str:
    cells: list[Estimate | float | None] = []
    for measure in MEASURES:
        better = table.improvement(name, first, measure) if name != first else None
        cells += [table.iqm(name, measure), table.mean(name, measure), better]
    cells += [None if name in CONTROLS else table.mean(name, measure) for measure in OF_END]
    runs = sum(result.entry == name for result in table.results)
    return _line(shown, *map(_text, cells), "-" if name in CONTROLS else f"{runs}")


def _text(value: Estimate | float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _line(name: str, *cells: str) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join([name.replace('|', _BAR), *cells])} |"


def _claims(table: Table) -> Iterator[str]:
    """Say of each claim whether it holds: one line each; none for what was not run, or with one seed only.

    Tables of answers are judged problem by problem, as the probability that a run of the one scores higher. Problems of a
    language model rise and fall together, so that only whole runs count: the difference is paired by seed.
    """
    for claim in CLAIMS:
        better, worse = claim.better, claim.worse
        of_models = table.measures_unseen and claim.measure in MEASURES
        for kind in (UNSEEN_PREFIX, "") if of_models else ("",):
            measure, even = f"{kind}{claim.measure}", 0.0
            if table.measures_unseen:
                found = table.difference(better, worse, measure)
                numbers = f"difference {found}"
            else:
                found, even = table.improvement(better, worse, measure), 0.5
                means = (_text(table.mean(name, measure)) for name in (better, worse))
                numbers = f"means {' and '.join(means)}, P = {found}"
            if found is None:
                continue
            holds = f"**cannot be told**: the interval includes {even:g}"
            if found.low > even:
                holds = "**holds**"
            elif found.high < even:
                holds = "**does not hold**: it is the other way round"
            says = claim.says[0].upper() + claim.says[1:]
            yield f"- {says} ({better} over {worse}, {measure}): {holds}; {numbers}."


def _of_unseen(table: Table, names: Mapping[str, str]) -> list[str]:
    """Return the section on problems that are not trained on, of language models; none if no such problems were measured.

    Args:
        table: The scores.
        names: Name of an entry -> as it is shown.
    """
    if not table.measures_unseen:
        return []
    first = table.entries[0]
    measures = [f"{UNSEEN_PREFIX}{each}" for each in MEASURES]
    scores = [table.scores(first, measure) for measure in measures]
    passing, killing, new = (0 if each is None else each.shape[1] for each in scores)
    order = sorted(table.entries, key=lambda name: -(table.mean(name, measures[0]) or -1.0))
    rows = []
    for name, shown in [(name, names[name]) for name in order] + _CONTROL_ROWS:
        cells = []
        for measure in measures:
            difference = table.difference(name, first, measure) if name != first else None
            cells += [_text(table.mean_of_seeds(name, measure)), _text(difference)]
        rows.append(_line(shown, *cells))
    less = f"less {names[first]}".replace("|", _BAR)
    return [
        "## Problems that are not trained on",
        "",
        f"Pass rate: share of all golden tests of {passing} problems that the coder's programs pass. Kill rate: share of the mutants of "
        f"{killing} problems",
        "that the tester's suites kill; new kill rate: of those that copies of the examples in the problem's text do not kill,",
        f"of {new} problems. Means over seeds with 95% intervals by Student's t over seeds: all problems of a run share the weights of",
        f"one model, and are no independent runs. The differences to {names[first]} are paired by seed: an interval with 0 in it says nothing.",
        "A dash: the tester is no language model, or there is one seed.",
        "",
        f"| | coder: pass rate | {less} | tester: kill rate | {less} | new kill rate | {less} |",
        f"|{'---|' * 7}",
        *rows,
        "",
        "## Problems that are trained on",
        "",
    ]
