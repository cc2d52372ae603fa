"""Makes the shipped scores of codea1-suite and docs/leaderboard.md: tunes each row, plays it, and writes its file.

    python benchmarks/suite_scores.py runs/rows            # all rows, which takes an hour or two on a core
    python benchmarks/suite_scores.py runs/rows --rows memory --tracks both
    python benchmarks/suite_scores.py runs/rows --rows     # only the page, from what is shipped

A row is made by the functions of `codea1 suite tune`, `run --check first` and `score`, in the folder runs/rows/NAME.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codea1_env.evaluation.statistics import Estimate
from codea1_env.suite.players import BAD, FAULTY, SuiteEntry, find_entry
from codea1_env.suite.running import keys_of, run_all
from codea1_env.suite.scores import paired, score_tracks, shipped, signed
from codea1_env.suite.submissions import read_records, read_tuning, submission, write_tuning
from codea1_env.suite.tasks import SEEDS, TRACKS, SuiteTask, Track, tasks
from codea1_env.suite.tuning import tune
from codea1_env.support.machine import this_machine

ROOT = Path(__file__).parents[1]
SCORES = ROOT / "codea1_env" / "suite" / "scores" / "v1"
ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("random", "oracle", "grpo", "ppo", "rloo", "reinforce", "dr_grpo")},
    **{name: (name, {}) for name in ("negated-rewards", "ignored-rewards", "hundredfold-rate")},
    **{name: (name, {}) for name in ("memory", "blind", "random-tests", "reinforce++")},
}  # fmt: skip
"""Name of a row -> what plays, and its hyperparameters."""
CHECKED = ("grpo",)
"""Rows of which the referee judges a sample of each record of seed 0: the worlds of all rows are the same."""


def make_row(name: str, base: Path, tracks: tuple[Track, ...], processes: int) -> None:
    """Tune and play a row, and write its file."""
    algorithm, args = ROWS[name]
    entry, rates = find_entry(algorithm, args), {}
    if entry.learns:
        if name in FAULTY:  # the tuned GRPO, with a fault
            write_tuning(base, read_tuning(base.with_name("grpo")))
        else:
            write_tuning(base, _tuned(base, entry, tracks, processes))
        rates = read_tuning(base)["rates"]
    keys = keys_of(tasks().values(), tracks, SEEDS)
    checked = (0,) if name in CHECKED else ()
    run_all(base, algorithm, args, keys, rates=rates, processes=processes, checked=checked)
    content = submission(base, read_records(base))
    SCORES.mkdir(parents=True, exist_ok=True)
    kept = ("suite", "suite_sha256", "settings", "values")
    row = {"name": name, **{key: content[key] for key in kept}}
    row["checked"] = "by the referee: a sample of each record of seed 0" if name in CHECKED else ""
    row["machine"] = {**dataclasses.asdict(this_machine()), "load": None}
    _keep_other_tracks(row, SCORES / f"{name}.json")
    row["commit"] = subprocess.check_output(
        ["git", "rev-parse", "HEAD"], text=True, cwd=ROOT
    ).strip()
    (SCORES / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")


def _keep_other_tracks(row: dict[str, Any], path: Path) -> None:
    """Take over the tracks that a shipped file has and this run has not, with what made them."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"values": {}}
    kept = [track for track in old["values"] if track not in row["values"]]
    if kept:
        row["values"] = {track: old["values"][track] for track in kept} | row["values"]
        row["settings"]["rates"] = old["settings"]["rates"] | row["settings"]["rates"]
        before = {key: old[key] for key in ("commit", "machine", "earlier") if key in old}
        row["earlier"] = {"tracks": kept, **before}


def _tuned(
    base: Path, entry: SuiteEntry, tracks: tuple[Track, ...], processes: int
) -> dict[str, Any]:
    """Return the content of tuning.json, with those tracks that it lacks."""
    known = read_tuning(base) if (base / "tuning.json").exists() else {"rates": {}, "tried": []}
    new = [track for track in tracks if track not in known["rates"]]
    found = tune(entry, new, processes=processes)
    rates, tried = {**known["rates"], **found["rates"]}, [*known["tried"], *found["tried"]]
    return {**found, "rates": rates, "tried": tried}


HEAD = """\
# Leaderboard of codea1-suite v1

Made from `codea1_env/suite/scores/v1` by `python benchmarks/suite_scores.py runs/rows`. 0 is random play, 1 the oracle.
Brackets: 95% intervals (Student's t over 10 seeds). Nothing is corrected for the number of comparisons. [How to take part](suite.md)
"""
FOOT = """\
Ids in brackets do not count: they were flagged before the runs as telling nothing of an algorithm.

## The instrument

How much less than GRPO each bad row scores, paired by seed. **Bold**: the interval includes 0, so that the id does not tell them apart.
"""


def leaderboard() -> str:
    """Return the page."""
    lines = [HEAD]
    for track in TRACKS:
        rows = {name: row["values"].get(track) for name, row in shipped().items()}
        scores = {name: score_tracks({track: own})[0] for name, own in rows.items() if own}
        order = sorted(scores, key=lambda name: -(scores[name].number or Estimate(-9, 0, 0)).value)
        lines += [f"## Track {track}", "", *_row("row", ["number", "held-out"], head=True)]
        for name in order:
            lines += _row(name, [signed(scores[name].number), signed(scores[name].held_out)])
        names = [name for name in order if name not in ("random", "oracle")]
        lines += ["", *_row("id", names, head=True)]
        for task in _tasks_in(track):
            found = [scores[name].ids[task.id].score for name in names]
            lines += _row(_named(task), [f"{each.value:+.2f}" if each else "-" for each in found])
        lines.append("")
    return "\n".join([*lines, FOOT, *_instrument()]) + "\n"


def _instrument() -> list[str]:
    """Return the tables that say which bad rows each id tells from GRPO."""
    lines = []
    for track in TRACKS:
        lines += _row(f"id, track {track}", BAD, head=True)
        for task in _tasks_in(track):
            cells = []
            for name in BAD:
                rows = (shipped()[each]["values"][track][task.id] for each in (name, "grpo"))
                less = paired(task, track, *rows)
                told = less is not None and less.high < 0
                cells.append(signed(less) if told else f"**{signed(less)}**")
            lines += _row(_named(task), cells)
        lines.append("")
    return lines


def _row(first: str, cells: Sequence[str], *, head: bool = False) -> list[str]:
    line = f"| {first} | {' | '.join(cells)} |"
    return [line, "|---|" + "---|" * len(cells)] if head else [line]


def _tasks_in(track: Track) -> list[SuiteTask]:
    return [task for task in tasks().values() if track in task.tracks]


def _named(task: SuiteTask) -> str:
    return task.id if task.separates else f"({task.id})"


def main() -> None:
    """Make rows and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--tracks", nargs="+", default=list(TRACKS))
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    for name in asked.rows:
        make_row(name, asked.base / name, tuple(asked.tracks), asked.processes)
        print(f"{name}: written", flush=True)
    shipped.cache_clear()
    (ROOT / "docs" / "leaderboard.md").write_text(leaderboard(), encoding="utf-8")


if __name__ == "__main__":
    main()
