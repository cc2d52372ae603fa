"""The table of a benchmark, and which orderings hold in it: those of the paper, and those its argument needs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from codea1_env.baselines.bench.claims import verdicts
from codea1_env.baselines.bench.results import Result
from codea1_env.baselines.bench.score_table import CONTROLS, COPIER, MEASURES, OF_END, START, Table
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.bench.sweep import Swept, sweep_lines
from codea1_env.baselines.bench.unseen_section import unseen_lines
from codea1_env.evaluation.result_folder import short_names
from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.markdown import in_line

_MAX_ERROR = 500
"""Characters of an error that are shown; result.json of the run has them all."""


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
        *unseen_lines(table, names),
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
        lines += [_row(table, name, f"*{shown}*", first) for name, shown in CONTROLS.items()]
        lines += _no_better_than_copies(table, names)
    failures = [result for result in results if result.status == "failed"]
    if failures:
        lines += ["", "## Failed runs", ""]
        lines += [
            f"- {names[each.entry]}, seed {each.seed}: {in_line(each.error, _MAX_ERROR)}"
            for each in failures
        ]
    found = verdicts(table)
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
    if config.eval_steps is not None:
        words += ["--eval-steps", str(config.eval_steps)]
    if config.preset is not None:
        words += ["--eval-problems", str(config.eval_problems)]
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
    for measure in MEASURES:
        cells += [_text(table.iqm(name, measure)), _text(table.mean(name, measure))]
        improvement = table.improvement(name, first, measure) if name != first else None
        cells.append(_text(improvement))
    cells += [_text(None if name in CONTROLS else table.mean(name, measure)) for measure in OF_END]
    runs = sum(result.entry == name for result in table.results)
    cells.append(f"{runs}" if name not in CONTROLS else "-")
    return f"| {' | '.join(cells)} |"


def _text(value: Estimate | float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
