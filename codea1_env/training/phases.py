"""Where the time of a run went: the share of each phase, and how many tokens a second it got through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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


def phases_table(timings: Iterable[Row], metrics: Iterable[Row]) -> Table:
    """Show the phases of a run as a table, the longest first.

    Tokens are those that were generated, or, of an update, those of prompts and answers that it went through.

    Args:
        timings: The rows of timings.jsonl.
        metrics: The rows of metrics.jsonl.
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
    table = Table("phase", title="where the time went", title_justify="left")
    for heading in ("seconds", "share", "tokens/s"):
        table.add_column(heading, justify="right")
    for name, value in seconds.most_common():
        speed = f"{tokens[name] / value:.0f}" if tokens[name] and value else "-"
        table.add_row(name, f"{value:.1f}", f"{value / seconds.total():.1%}", speed)
    return table
