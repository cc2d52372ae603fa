"""The sweep: which learning rates an entry of a benchmark gets, found out on seeds that are in no table.

An algorithm whose default rate happens to suit the problems would win otherwise. In a run of the sweep both players
have the same multiple of their rates, and each is judged by a measure of its own: so one sweep finds a rate for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codea1_env.baselines.bench.results import SWEEP, Key, Result, TrainingJob, results_of
from codea1_env.baselines.bench.suite import SWEEP_SEED, BenchConfig, Entry, Rates
from codea1_env.support.logs import read_rows
from codea1_env.training.metrics import Row, mean

_MEASURES: Mapping[Literal["coder", "tester"], str] = {
    "coder": "held_out/pass_rate",
    "tester": "held_out/new_kill_rate",
}
"""What each player's rate is chosen by: of testers what copies cannot do."""


@dataclass(frozen=True)
class Swept:
    """What the sweep found for one player of an entry: a row of sweep.jsonl."""

    entry: str
    player: Literal["coder", "tester"]
    scores: dict[str, list[float | None]]
    """Multiple of the learning rate -> the score at the end of each seed; None of a run that failed."""
    best: float | None
    """The multiple with the greatest mean; of equal ones that nearest to 1. Failed runs rule a multiple out. None where
    all runs failed: then none of the table is begun."""
    learning_rate: float | None
    """What it comes to."""
    at_edge: bool
    """Whether there was none below or above the best one, so that a better one may not have been tried."""


def sweep_jobs(config: BenchConfig, entries: Sequence[Entry]) -> list[TrainingJob]:
    """All runs of the sweep; none where there is nothing to choose."""
    if len(config.sweep) == 1:
        return []
    return [
        TrainingJob(entry, seed, Rates(multiple, multiple))
        for entry in entries
        for multiple in config.sweep
        for seed in range(SWEEP_SEED, SWEEP_SEED + config.sweep_seeds)
    ]


def choose(
    config: BenchConfig,
    entries: Sequence[Entry],
    jobs: Sequence[TrainingJob],
    rows: Mapping[Key, Result],
) -> tuple[dict[str, Rates], list[Swept]]:
    """Choose the learning rates of each entry of which all runs of the sweep are done.

    Returns the rates of each entry of which not all runs failed, by its name, and what was found for each player that learns.
    """
    if not jobs:
        (multiple,) = config.sweep
        return {entry.name: Rates(multiple, multiple) for entry in entries}, []
    rates: dict[str, Rates] = {}
    found: list[Swept] = []
    for entry in entries:
        own = [job for job in jobs if job.entry == entry]
        results = results_of(rows, own)
        if len(results) == len(own):
            swept = list(_players(config, entry, results))
            found += swept
            best = {each.player: each.best for each in swept if each.best is not None}
            if any(result.status == "ok" for result in results):
                rates[entry.name] = Rates(**best)
    return rates, found


def _players(config: BenchConfig, entry: Entry, results: Sequence[Result]) -> Iterator[Swept]:
    settings = entry.apply(config.base(0))
    ends: dict[float, list[Row]] = {}
    failed = all(result.status == "failed" for result in results)
    for result in results:
        multiple = result.rates["coder"]
        ends.setdefault(multiple, []).append(result.curves[-1] if result.curves else {})
    for player, measure in _MEASURES.items():
        block = settings.player(player)
        if block.freeze or block.player not in ("tabular", "llm"):
            continue
        scores = {multiple: [end.get(measure) for end in rows] for multiple, rows in ends.items()}
        means = {multiple: _mean(values) for multiple, values in scores.items()}
        ranked = [(-value, abs(math.log(each)), each) for each, value in means.items() if value is not None]  # fmt: skip
        best = None if failed else min(ranked)[-1] if ranked else 1.0
        yield Swept(
            entry.name,
            player,
            {f"{multiple:g}": values for multiple, values in scores.items()},
            best,
            None if best is None else block.learning_rate * best,
            at_edge=best in (min(config.sweep), max(config.sweep)),
        )


def read_rates(folder: Path, config: BenchConfig, entries: Sequence[Entry]) -> dict[str, Rates]:
    """Return the rates that the sweep of a results folder chose."""
    multiple = config.sweep[0] if len(config.sweep) == 1 else 1.0
    rates = {entry.name: Rates(multiple, multiple) for entry in entries}
    if len(config.sweep) > 1:
        for row in read_rows(folder / SWEEP):
            if row["entry"] in rates and row["best"] is not None:
                chosen = {row["player"]: row["best"]}
                rates[row["entry"]] = replace(rates[row["entry"]], **chosen)
    return rates


def failures_of(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    """Name of the entry, which run of the sweep, and the message of each that failed."""
    return [
        (each.entry, f"×{each.rates['coder']:g}, seed {each.seed}", each.error)
        for each in results
        if each.status == "failed"
    ]


def sweep_lines(config: BenchConfig, swept: Sequence[Swept], names: Mapping[str, str]) -> list[str]:
    """Return the section of LEADERBOARD.md; `names` are as they are shown."""
    base = config.base(0)
    rates = f"coder {base.coder.learning_rate:g}, tester {base.tester.learning_rate:g}"
    lines = ["", "## Learning rates", ""]
    if len(config.sweep) == 1:
        return [
            *lines,
            f"Not swept: all rows have ×{config.sweep[0]:g} of the same rates ({rates}). **So they show that everything works,",
            "and not which algorithm is better: a higher row may only have the better step size.**",
        ]
    seeds = ", ".join(map(str, range(SWEEP_SEED, SWEEP_SEED + config.sweep_seeds)))
    lines += [
        f"Chosen before the runs above, by runs of {config.max_steps} steps with the seeds {seeds}, which are in no other table. In each,",
        f"both rates ({rates}) were multiplied by the same number; the coder's is chosen by its pass rate at the end,",
        "the tester's by its new kill rate. Shown are means over the seeds, and the rate that the runs above have. At the edge",
        "of what was tried (*edge*), a better one may be beyond: go on with --resume and a wider --sweep. A dash: a run failed;",
        "where all of a row failed, it has no rate, and no run above.",
        "Players that do not learn have no row.",
        "",
        f"| | player | {' | '.join(f'×{each:g}' for each in config.sweep)} | rate |",
        f"|---|---|{'---|' * len(config.sweep)}---|",
    ]
    for each in swept:
        cells = [
            _cell(each.scores.get(f"{multiple:g}", []), chosen=multiple == each.best)
            for multiple in config.sweep
        ]
        rate = "-" if each.learning_rate is None else f"{each.learning_rate:g}"
        rate += ", *edge*" if each.at_edge else ""
        name = names.get(each.entry, each.entry).replace("|", "\\|")
        lines.append(f"| {name} | {each.player} | {' | '.join(cells)} | {rate} |")
    return lines


def _mean(scores: Sequence[float | None]) -> float | None:
    return None if None in scores else mean(scores)


def _cell(scores: Sequence[float | None], *, chosen: bool) -> str:
    value = _mean(scores)
    text = "-" if value is None else f"{value:.3f}"
    return f"**{text}**" if chosen else text
