"""Benchmarks on the page, and LEADERBOARD.md: figures with ranks of coders and of testers, and which orderings hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from codea1_env.baselines.bench import score_table
from codea1_env.baselines.bench.results import UNSEEN_PREFIX, Result
from codea1_env.baselines.bench.score_table import CONTROLS, SKILLS, Table
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.bench.sweep import Swept, sweep_lines
from codea1_env.baselines.payoffs import GAME_FIGURES
from codea1_env.evaluation.statistics import written
from codea1_env.rendering.display import clean, counted, counted_of, in_line, short_names
from codea1_env.report.folders import Benchmark
from codea1_env.report.sheet import Cell, Sheet, Value, cell, folded_cell, markdown, with_values

_SHOWN = {
    "pass_rate": ({"pass_rate": "pass rate"}, {"past_pass_rate": "past", "forgetting": "forgotten"}),
    "new_kill_rate": (
        {"kill_rate": "kill rate", "new_kill_rate": "new kill rate"},
        {"only_book": "only book"},
    ),
}  # fmt: skip
"""What is ranked -> measures of its table, and those that there are at the end only."""
_SAYS = {
    "pass_rate": "Pass rate: golden tests that no reward uses and the coder passes. Past: tests that once broke a program and pass now. Forgotten: share that passed at the best measurement before, and not at the end; measurements are samples, so that a coder that never changes has some, too.",
    "new_kill_rate": "Kill rate: mutants that no reward uses and the tester kills; new: of those that copied examples do not kill. Only book: those that only tests of the Mistake Book kill.",
}  # fmt: skip

_INTERVALS = (
    "Brackets: 95% intervals over seeds, by Student's t; what each is {} is paired by seed: an interval with 0 says nothing. Controls have learned nothing."
)  # fmt: skip


def benchmark_sheets(benchmark: Benchmark) -> Iterator[Sheet]:
    """Yield the tables of coders and of testers, and the claims of the paper; nothing where no run is done."""
    table = Table(benchmark.results)
    yield from _measured(benchmark, table)
    names = short_names(table.entries)
    failed = [each for each in benchmark.results if each.status == "failed"]
    rows: list[list[Value]] = [[names[each.entry], each.seed, each.error] for each in failed]
    if rows:
        headings = ["entry", "seed", "error"]
        yield Sheet.of([headings, *rows], f"Failed runs of {benchmark.name}")


def _measured(benchmark: Benchmark, table: Table) -> Iterator[Sheet]:
    if not table.entries:
        return
    for kind in (UNSEEN_PREFIX, "") if table.measures_unseen else ("",):
        for skill in SKILLS:
            yield _figures(benchmark, table, skill, kind)
    yield from _game(benchmark, table)
    rows: list[list[Value]] = []
    for each in score_table.told(table):
        means = [table.mean(name, each.measure) for name in (each.claim.better, each.claim.worse)]
        measure, verdict = each.measure.replace("_", " "), "".join(each.verdict)
        rows.append([each.says, verdict, measure, *means, each.difference])
    if rows:
        headings = ["claim", "verdict", "measure", "of the first", "of the second", "difference"]
        note = score_table.by_chance(len(rows)) if rows[1:] else ""
        yield Sheet.of([headings, *rows], f"What holds at this scale: {benchmark.name}", note)


def _game(benchmark: Benchmark, table: Table) -> Iterator[Sheet]:
    names = short_names(table.entries)
    measured = {entry: [table.estimate(entry, each) for each in GAME_FIGURES] for entry in names}
    if any(value is not None for of in measured.values() for value in of):
        headings = ["entry", "exploitability: last", "average", "cyclic share"]
        rows = [[names[entry], *of] for entry, of in measured.items()]
        note = " ".join(score_table.ABOUT_GAME)
        yield Sheet.of([headings, *rows], f"The game itself: {benchmark.name}", note)


def _figures(benchmark: Benchmark, table: Table, skill: str, kind: str) -> Sheet:
    measures, at_end = _SHOWN[skill]
    names, first, coders = short_names(table.entries), table.entries[0], skill == "pass_rate"
    less = f"less {clean(names[first])}"
    decides = bool(kind) or not table.measures_unseen
    ranks = decides and benchmark.config.ranks
    ranked = {each.entry: each for each in score_table.standings(table, skill)}
    rows: list[dict[str, Cell]] = []
    for entry in [*dict.fromkeys([*ranked, *table.entries]), *CONTROLS]:
        standing = ranked.get(entry) if ranks else None
        row: dict[str, Value] = {"entry": CONTROLS.get(entry) or names[entry], "rank": "-"}
        if standing:
            row["rank"] = Cell(standing.rank_text, float(standing.rank[0]))
        for measure, words in measures.items():
            difference = table.difference(entry, first, kind + measure) if entry != first else None
            row |= {words: table.estimate(entry, kind + measure), f"{words} {less}": difference}
        steps = f"{standing.steps:g}" if standing and standing.steps is not None else "-"
        row |= {
            "area": written(standing.area) if standing else "-",
            f"steps to {score_table.GOAL:g}": steps,
        }
        for measure, words in at_end.items():
            there = entry not in CONTROLS and not kind
            row[words] = table.mean(entry, measure) if there else None
        made = coders and decides and entry not in CONTROLS
        row |= _made(benchmark, entry) if made else {"runs": "-", "command": "-"}
        cells = {name: cell(value) for name, value in row.items()}
        if any(each.text != "-" for each in [*cells.values()][1:]):
            rows.append(cells)
    measured = table.scores(first, f"{kind}{skill}")
    problems = 0 if measured is None else measured.shape[1]
    note = [_SAYS[skill], _INTERVALS.format(less), f"Of {counted(problems, 'problems')}."]
    if ranks:
        note.append(f"A rank as 1-3 is a tie ({SKILLS[skill]}). Area: mean over the steps.")
    if len(benchmark.config.sweep) == 1:
        note.append(
            "Learning rates were not swept: a higher row may only have the better step size."
        )
    if not coders:
        note.append(score_table.no_better_than_copies(table, names, f"{kind}kill_rate"))
    title = f"{'Coders' if coders else 'Testers'} of {benchmark.name}"
    title += ", on problems that are not trained on" if kind else ""
    shown: list[Sequence[Value]] = [[*row], *(list(cells.values()) for cells in rows)]
    return with_values(Sheet.of(shown, title, clean(" ".join(note).rstrip())))


def _made(benchmark: Benchmark, entry: str) -> dict[str, Value]:
    runs = [result for result in benchmark.results if result.entry == entry]
    failed = sum(result.status == "failed" for result in runs)
    one = dataclasses.replace(benchmark.config, algorithms=(entry,))
    number = Cell(f"{len(runs)}" + (f", {failed} failed" if failed else ""), len(runs))
    return {"runs": number, "command": folded_cell(score_table.command(one))}


def leading(table: Table, names: Mapping[str, str], skill: str) -> tuple[str, str] | None:
    """Return the figure of the row with rank 1, or the range of those that share it; None where nothing was measured."""
    ranked = score_table.standings(table, skill)
    measure = f"{UNSEEN_PREFIX if table.measures_unseen else ''}{skill}"
    tied = [each.entry for each in ranked if each.rank[0] <= ranked[0].rank[1]]
    if len(tied) < 2:
        shown = [(cell(table.estimate(name, measure)).text, names[name]) for name in tied]
        return next(((text, f"{SKILLS[skill]}: {name}") for text, name in shown), None)
    means = sorted(f"{table.mean(entry, measure):.3f}" for entry in tied)
    what = (
        f"{SKILLS[skill]}, {len(tied)} rows with rank {ranked[0].rank_text}: no winner can be told"
    )
    return " to ".join(dict.fromkeys((means[0], means[-1]))), what


def leaderboard(
    config: BenchConfig,
    results: Sequence[Result],
    swept: Sequence[Swept],
    machine: str,
    plots: Sequence[str],
    of_sweep: Sequence[tuple[str, str, str]] = (),
    not_shown: int = 0,
) -> str:
    """Text of LEADERBOARD.md, which shows the files of plots.

    `of_sweep` are runs of the sweep that failed (see `failures_of`); `not_shown` counts runs of the folder that are done, and of
    other rows or seeds.
    """
    table, wanted = Table(results), config.seeds * len(config.algorithms)
    failed = [each for each in results if each.status == "failed"]
    updates = f"{config.num_iterations} updates per batch"
    if not config.base(0).has_language_model:
        updates += " of algorithms that clip"
    lines = [
        "# Leaderboard",
        "",
        f"{counted(config.seeds, 'seeds')}, {counted(config.max_problems, 'problems')} of {config.problems}, "
        f"{counted(config.max_steps, 'steps')}, {updates}; "
        f"{counted_of(len(results), wanted, 'runs')} done, {len(failed)} failed. {machine}.",
        "",
        f"    {score_table.command(config)}",
    ]
    if not_shown:
        lines += ["", f"**Not all that was measured**: {not_shown} finished runs of this folder are of other rows or seeds. `--resume` with their `--algorithms` and `--seeds` shows them."]  # fmt: skip
    if warning := score_table.nobody_learned(table):
        lines += ["", f"**{warning[0]}** {warning[1]}"]
    for sheet in _measured(Benchmark("this benchmark", config, list(results), wanted), table):
        lines += ["", f"## {sheet.title}", "", *([sheet.note, ""] if sheet.note else [])]
        lines += markdown(sheet)
    names = short_names([*table.entries, *(name for name, _, _ in of_sweep)])
    errors = [(f"{names[each.entry]}, seed {each.seed}", each.error) for each in failed]
    errors += [(f"Sweep: {names[name]}, {which}", error) for name, which, error in of_sweep]
    if errors:
        lines += ["", "## Failed runs", ""]
        lines += [f"- {which}: {in_line(error)}" for which, error in errors]
    lines += sweep_lines(config, swept, short_names([each.entry for each in swept]))
    for plot in plots:
        lines += ["", f"![{plot.removesuffix('.png')}]({plot})"]
    return "\n".join(lines) + "\n"
