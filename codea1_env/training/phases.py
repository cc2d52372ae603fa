"""Where the time of a run went: the share of each phase, and how many tokens a second it got through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from rich.table import Table

from codea1_env.training.metrics import Row


def mean_seconds(timings: Iterable[Row]) -> dict[str, float]:
    """Phase -> mean seconds over the rows of timings.jsonl that have it.

    Example:
        >>> mean_seconds([{"step": 1, "seconds/coder": 2.0}, {"step": 2, "seconds/coder": 4.0}])
        {'coder': 3.0}
    """
    found: dict[str, list[float]] = {}
    for row in timings:
        for name, value in row.items():
            if name.startswith("seconds/"):
                found.setdefault(name.removeprefix("seconds/"), []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}


class PhaseTotal(NamedTuple):
    """What a phase took over a whole run."""

    name: str
    seconds: float
    share: float
    tokens: int
    """Tokens that were generated, or, of an update, those of prompts and answers that it went through."""
    speed: float | None
    """Tokens per second; None where there are none."""


def phase_totals(timings: Iterable[Row], metrics: Iterable[Row]) -> list[PhaseTotal]:
    """Add up the phases of a run, the longest first.

    Args:
        timings: The rows of timings.jsonl.
        metrics: The rows of metrics.jsonl.

    Example:
        >>> phase_totals([{"seconds/coder": 3.0, "seconds/judge": 1.0}], [{"coder/tokens/completion": 60}])[0]
        PhaseTotal(name='coder', seconds=3.0, share=0.75, tokens=60, speed=20.0)
    """
    seconds: Counter[str] = Counter()
    for row in timings:
        for name, value in row.items():
            if name.startswith("seconds/"):
                seconds[name.removeprefix("seconds/")] += value
    tokens: Counter[str] = Counter()
    for row in metrics:
        for role in ("coder", "tester", "model"):
            tokens[role] += row.get(f"{role}/tokens/completion", 0)
            # Of all updates so far.
            tokens[f"learn_{role}"] = int(row.get(f"{role}/num_tokens", tokens[f"learn_{role}"]))
    # Where both learn at the same time.
    tokens["learn"] = tokens["learn_coder"] + tokens["learn_tester"]
    whole = seconds.total()
    return [
        PhaseTotal(
            name,
            value,
            value / whole if whole else 0.0,
            tokens[name],
            tokens[name] / value if tokens[name] and value else None,
        )
        for name, value in seconds.most_common()
    ]


def phases_table(timings: Iterable[Row], metrics: Iterable[Row]) -> Table:
    """Show the phases of a run as a table: see `phase_totals`."""
    table = Table("phase", title="where the time went", title_justify="left")
    for heading in ("seconds", "share", "tokens/s"):
        table.add_column(heading, justify="right")
    for name, seconds, share, _, speed in phase_totals(timings, metrics):
        shown = "-" if speed is None else f"{speed:.0f}"
        table.add_row(name, f"{seconds:.1f}", f"{share:.1%}", shown)
    return table
