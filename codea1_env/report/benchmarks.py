"""Benchmarks on the page: figures with ranks of coders and of testers, and what holds; reckoned as LEADERBOARD.md's are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from codea1_env.baselines.bench.ranking import by_chance, command, no_better_than_copies, told
from codea1_env.baselines.bench.results import UNSEEN_PREFIX
from codea1_env.baselines.bench.score_table import (
    ABOUT_GAME,
    CONTROLS,
    GOAL,
    SKILLS,
    Table,
    standing_cells,
    standings,
)
from codea1_env.baselines.payoffs import GAME_FIGURES
from codea1_env.rendering.display import clean, short_names
from codea1_env.report.folders import Benchmark
from codea1_env.report.tables import Cell, Sheet, command_cell, figure_cell, text_cell, with_values

_SHOWN = {
    "pass_rate": ({"pass_rate": "pass rate"}, {"past_pass_rate": "past", "forgetting": "forgotten"}),
    "new_kill_rate": (
        {"kill_rate": "kill rate", "new_kill_rate": "new kill rate"},
        {"only_book": "only book"},
    ),
}  # fmt: skip
"""What is ranked -> measures of its table, and those that there are at the end only."""
_SAYS = {
    "pass_rate": "Pass rate: golden tests that no reward uses and the coder passes. Past: tests that once broke a program and pass now. Forgotten: share that passed at the best measurement before, and not at the end.",
    "new_kill_rate": "Kill rate: mutants that no reward uses and the tester kills; new: of those that copied examples do not kill. Only book: those that only tests of the Mistake Book kill.",
}  # fmt: skip

_INTERVALS = (
    "Brackets: 95% intervals over seeds, by Student's t; what each is {} is paired by seed: an interval with 0 says nothing."
)  # fmt: skip


def benchmark_sheets(benchmark: Benchmark) -> Iterator[Sheet]:
    """Yield the tables of coders and of testers, and the claims of the paper; nothing where no run is done."""
    table = Table(benchmark.results)
    if not table.entries:
        return
    for kind in (UNSEEN_PREFIX, "") if table.measures_unseen else ("",):
        for skill in SKILLS:
            yield _figures(benchmark, table, skill, kind)
    yield from _game_and_failures(benchmark, table)
    if found := told(table):
        rows = []
        for each in found:
            rows.append([text_cell(each.says), Cell("".join(each.verdict))])
            of = [table.mean(name, each.measure) for name in (each.claim.better, each.claim.worse)]
            rows[-1] += [
                Cell(each.measure.replace("_", " ")),
                *map(figure_cell, of),
                figure_cell(each.difference),
            ]
        headings = ["claim", "verdict", "measure", "of the first", "of the second", "difference"]
        note = by_chance(len(found)) if found[1:] else ""
        yield Sheet(f"What holds at this scale: {benchmark.name}", note, headings, rows)


def _game_and_failures(benchmark: Benchmark, table: Table) -> Iterator[Sheet]:
    names = short_names(table.entries)
    measured = {entry: [table.estimate(entry, each) for each in GAME_FIGURES] for entry in names}
    rows = [[text_cell(names[entry]), *map(figure_cell, of)] for entry, of in measured.items()]
    if any(value is not None for of in measured.values() for value in of):
        headings = ["entry", "exploitability: last", "average", "cyclic share"]
        yield Sheet(f"The game itself: {benchmark.name}", " ".join(ABOUT_GAME), headings, rows)
    failed = [
        [text_cell(names[each.entry]), Cell(f"{each.seed}", each.seed), text_cell(each.error)]
        for each in benchmark.results
        if each.status == "failed"
    ]
    if failed:
        yield Sheet(f"Failed runs of {benchmark.name}", "", ["entry", "seed", "error"], failed)


def _figures(benchmark: Benchmark, table: Table, skill: str, kind: str) -> Sheet:
    measures, at_end = _SHOWN[skill]
    names, first, coders = short_names(table.entries), table.entries[0], skill == "pass_rate"
    less = f"less {clean(names[first])}"
    decides = bool(kind) or not table.measures_unseen
    ranked = {each.entry: each for each in standings(table, skill)}
    rows = []
    for entry in [*dict.fromkeys([*ranked, *table.entries]), *CONTROLS]:
        standing = ranked.get(entry) if decides else None
        rank, area, steps = standing_cells(standing)
        row = [("entry", text_cell(CONTROLS.get(entry) or names[entry]))]
        row.append(("rank", Cell(rank, float(standing.rank[0]) if standing else None)))
        for measure, words in measures.items():
            difference = table.difference(entry, first, kind + measure) if entry != first else None
            row.append((words, figure_cell(table.estimate(entry, kind + measure))))
            row.append((less, figure_cell(difference)))
        row += [("area", Cell(area)), (f"steps to {GOAL:g}", Cell(steps))]
        for measure, words in at_end.items():
            there = entry not in CONTROLS and not kind
            row.append((words, figure_cell(table.mean(entry, measure) if there else None)))
        made = coders and decides and entry not in CONTROLS
        row += _made(benchmark, entry) if made else [("runs", Cell("-")), ("command", Cell("-"))]
        if any(cell.text != "-" for _, cell in row[1:]):
            rows.append(row)
    note = [_SAYS[skill], _INTERVALS.format(less)]
    if decides:
        note.append(f"A rank as 1-3 is a tie ({SKILLS[skill]}). Area: mean over the steps.")
    if len(benchmark.config.sweep) == 1:
        note.append(
            "Learning rates were not swept: a higher row may only have the better step size."
        )
    if not coders:
        note.append(no_better_than_copies(table, names, f"{kind}kill_rate"))
    title = f"{'Coders' if coders else 'Testers'} of {benchmark.name}"
    title += ", on problems that are not trained on" if kind else ""
    cells = [[cell for _, cell in row] for row in rows]
    return with_values(
        Sheet(title, clean(" ".join(note).rstrip()), [name for name, _ in row], cells)
    )


def _made(benchmark: Benchmark, entry: str) -> list[tuple[str, Cell]]:
    runs = [result for result in benchmark.results if result.entry == entry]
    failed = sum(result.status == "failed" for result in runs)
    one = dataclasses.replace(benchmark.config, algorithms=(entry,))
    number = Cell(f"{len(runs)}" + (f", {failed} failed" if failed else ""), len(runs))
    return [("runs", number), ("command", command_cell(command(one)))]


def leading(table: Table, names: Mapping[str, str], skill: str) -> tuple[str, str] | None:
    """Return the figure of the row with rank 1, or the range of those that share it; None where nothing was measured."""
    ranked = standings(table, skill)
    measure = f"{UNSEEN_PREFIX if table.measures_unseen else ''}{skill}"
    tied = [each.entry for each in ranked if each.rank[0] <= ranked[0].rank[1]]
    if len(tied) < 2:
        shown = [(figure_cell(table.estimate(name, measure)).text, names[name]) for name in tied]
        return next(((text, f"{SKILLS[skill]}: {name}") for text, name in shown), None)
    means = sorted(f"{table.mean(entry, measure):.3f}" for entry in tied)
    what = (
        f"{SKILLS[skill]}, {len(tied)} rows with rank {ranked[0].rank_text}: no winner can be told"
    )
    return " to ".join(dict.fromkeys((means[0], means[-1]))), what
