"""Benchmarks on the page: figures with ranks of coders and of testers, and what holds; reckoned as LEADERBOARD.md's are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from codea1_env.baselines.bench.ranking import by_chance, command, no_better_than_copies, told
from codea1_env.baselines.bench.results import UNSEEN_PREFIX
from codea1_env.baselines.bench.score_table import (
    CONTROLS,
    GOAL,
    SKILLS,
    Table,
    standing_cells,
    standings,
)
from codea1_env.rendering.display import clean, short_names
from codea1_env.report.folders import Benchmark
from codea1_env.report.tables import Cell, Sheet, command_cell, figure_cell, text_cell

_SHOWN = {
    "pass_rate": ({"pass_rate": "pass rate"}, {"past_pass_rate": "past", "forgetting": "forgotten"}),
    "new_kill_rate": (
        {"kill_rate": "kill rate", "new_kill_rate": "new kill rate"},
        {"only_book": "only book"},
    ),
}  # fmt: skip
"""What is ranked -> measures of its table, and those that there are at the end only."""
_SAYS = {
    "pass_rate": "Pass rate: golden tests that no reward uses and the coder passes. Past: tests that once broke a program and pass now.",
    "new_kill_rate": "Kill rate: mutants that no reward uses and the tester kills; new: of those that copied examples do not kill.",
}  # fmt: skip


def benchmark_sheets(benchmark: Benchmark) -> Iterator[Sheet]:
    """Yield the tables of coders and of testers, and the claims of the paper; nothing where no run is done."""
    table = Table(benchmark.results)
    if not table.entries:
        return
    for kind in (UNSEEN_PREFIX, "") if table.measures_unseen else ("",):
        for skill in SKILLS:
            yield _figures(benchmark, table, skill, kind)
    if found := told(table):
        rows = []
        for each in found:
            rows.append([text_cell(each.says), Cell("".join(each.verdict))])
            of = [table.mean(name, each.measure) for name in (each.claim.better, each.claim.worse)]
            rows[-1] += [Cell(each.measure), *map(figure_cell, of), figure_cell(each.difference)]
        headings = ["claim", "verdict", "measure", "of the first", "of the second", "difference"]
        note = by_chance(len(found)) if found[1:] else ""
        yield Sheet(f"What holds at this scale: {benchmark.name}", note, headings, rows)


def _figures(benchmark: Benchmark, table: Table, skill: str, kind: str) -> Sheet:
    (measures, at_end), first = _SHOWN[skill], table.entries[0]
    names = short_names(table.entries)
    less = f"less {clean(names[first])}"
    ranked = {each.entry: each for each in standings(table, skill)}
    decides = (
        bool(kind) or not table.measures_unseen
    )  # what is trained on does not, where there is more
    coders = skill == "pass_rate"
    rows = []
    for entry in [*dict.fromkeys([*ranked, *table.entries]), *CONTROLS]:
        rank, area, steps = standing_cells(standing := ranked.get(entry))
        row = [text_cell(CONTROLS.get(entry) or names[entry])]
        row += [Cell(rank, float(standing.rank[0]) if standing else None)] if decides else []
        for measure in measures:
            difference = table.difference(entry, first, kind + measure) if entry != first else None
            row += [figure_cell(table.estimate(entry, kind + measure)), figure_cell(difference)]
        known = any(cell.text != "-" for cell in row[1:])
        row += [Cell(area), Cell(steps)] if decides else []
        for measure in () if kind else at_end:
            row.append(figure_cell(None if entry in CONTROLS else table.mean(entry, measure)))
        row += _made(benchmark, entry) if coders and decides else []
        rows += [row] if known or entry not in CONTROLS else []
    headings = ["entry", *(["rank"] if decides else [])]
    for words in measures.values():
        headings += [words, less]
    headings += ["area", f"steps to {GOAL:g}"] if decides else []
    headings += [] if kind else at_end.values()
    headings += ["runs", "command"] if coders and decides else []
    where = ", on problems that are not trained on" if kind else ""
    title = f"{'Coders' if coders else 'Testers'} of {benchmark.name}{where}"
    note = _note(benchmark, skill, less, decides=decides)
    if not coders:
        note = " ".join([note, *no_better_than_copies(table, names, f"{kind}kill_rate")[1:]])
    return Sheet(title, clean(note), headings, rows)


def _made(benchmark: Benchmark, entry: str) -> list[Cell]:
    if entry in CONTROLS:
        return [Cell("-"), Cell("-")]
    runs = [result for result in benchmark.results if result.entry == entry]
    failed = sum(result.status == "failed" for result in runs)
    one = dataclasses.replace(benchmark.config, algorithms=(entry,))
    number = Cell(f"{len(runs)}" + (f", {failed} failed" if failed else ""), len(runs))
    return [number, command_cell(command(one))]


def _note(benchmark: Benchmark, skill: str, less: str, *, decides: bool) -> str:
    said = [
        _SAYS[skill],
        f"Brackets: 95% intervals over seeds, by Student's t; what each is {less} is paired by seed: an interval with 0 says nothing.",
    ]
    if decides:
        said.append(
            f"A rank as 1-3 is a tie ({SKILLS[skill]}). Area: mean over the steps."
            + (
                " Learning rates were not swept: a higher row may only have the better step size."
                if len(benchmark.config.sweep) == 1
                else ""
            )
        )
    return " ".join(said)


def leading(table: Table, names: Mapping[str, str], skill: str) -> tuple[str, str] | None:
    """Return the figure of the row with rank 1, or the range of those that share it; None where nothing was measured."""
    ranked = standings(table, skill)
    measure = f"{UNSEEN_PREFIX if table.measures_unseen else ''}{skill}"
    tied = [each.entry for each in ranked if each.rank[0] <= ranked[0].rank[1]]
    if len(tied) == 1:
        return figure_cell(
            table.estimate(tied[0], measure)
        ).text, f"{SKILLS[skill]}: {names[tied[0]]}"
    means = [f"{table.mean(entry, measure):.3f}" for entry in tied]
    if not means:
        return None
    values = " to ".join(dict.fromkeys((min(means), max(means))))
    return (
        values,
        f"{SKILLS[skill]}, {len(tied)} rows with rank {ranked[0].rank_text}: no winner can be told",
    )
