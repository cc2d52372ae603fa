"""What came of a run, from its metrics alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from codea1_env.training.metrics import Row, mean


@dataclass(frozen=True)
class TrainResult:
    """What `train` returns."""

    output_dir: Path
    """The folder of the run."""
    step: int
    """Steps done."""
    finished: bool
    """False if the run was interrupted; resume it to go on."""
    start: Row
    """Rewards of the first tenth of the steps; measurements before the first step."""
    end: Row
    """Rewards of the last tenth of the steps; the last measurements."""


SUMMARY = {
    "reward/coder/mean": "reward of the coder",
    "reward/tester/mean": "reward of the tester",
    "held_out/pass_rate": "held-back golden tests that the coder passes",
    "held_out/kill_rate": "held-back mutants that the tester kills",
    "held_out/copier_kill_rate": "  that copying the examples kills",
    "held_out/new_kill_rate": "  of the others, that the tester kills",
    "unseen/pass_rate": "golden tests of other problems that the coder passes",
    "unseen/kill_rate": "mutants of other problems that the tester kills",
    "unseen/copier_kill_rate": "  that copying the examples kills",
    "unseen/new_kill_rate": "  of the others, that the tester kills",
    "tester/copied": "tests that the problem's text shows",
    "tester/validity": "validity of suites",
    "book/size": "tests in the Mistake Book",
    "book/share_of_breaks": "share of breaking tests that came from the book",
}
"""Metric -> what it is, of those that sum up a run; a control stands below what it controls."""


def start_and_end(rows: Sequence[Row]) -> tuple[Row, Row]:
    """Compare the two ends of a run.

    Args:
        rows: The rows of metrics.jsonl, from step 0.

    Returns:
        For each metric of the summary its mean over the first and over the last tenth of the steps; the first
        and the last value for what is measured now and then, and for sizes.
    """
    steps = [row for row in rows if row["step"] > 0]
    tenth = max(1, len(steps) // 10)
    start: Row = {}
    end: Row = {}
    for name in SUMMARY:
        if name.startswith(("held_out/", "unseen/")) or name == "book/size":
            values = [row[name] for row in rows if row.get(name) is not None]
            start[name], end[name] = (values[0], values[-1]) if values else (None, None)
        else:
            start[name] = mean(row.get(name) for row in steps[:tenth])
            end[name] = mean(row.get(name) for row in steps[-tenth:])
    return start, end


def summary_table(result: TrainResult) -> Table:
    """Show a result as a table."""
    title = f"{result.step} steps" if result.finished else f"interrupted after {result.step} steps"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("start", justify="right")
    table.add_column("end", justify="right")
    for name, label in SUMMARY.items():
        if name.startswith("unseen/") and result.end[name] is None:
            continue  # only language models answer other problems
        table.add_row(label, _cell(result.start[name]), _cell(result.end[name]))
    return table


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
