"""Where the time of a run went: share of each phase, and tokens per second.

python benchmarks/phases.py RUN
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codea1_env.training.run_folder import METRICS, TIMINGS, read_rows


def main(run: Path) -> None:
    """Print a table."""
    seconds: Counter[str] = Counter()
    for row in read_rows(run / TIMINGS):
        for name, value in row.items():
            if name.startswith("seconds/"):
                seconds[name.removeprefix("seconds/")] += value
    tokens: Counter[str] = Counter()
    for row in read_rows(run / METRICS):
        for role in ("coder", "tester"):
            tokens[role] += row.get(f"{role}/tokens/completion", 0)
            if f"{role}/num_tokens" in row:  # all that the trainer has seen so far
                tokens[f"learn_{role}"] = row[f"{role}/num_tokens"]
    table = Table("phase", "seconds", "share", "tokens/s", title=str(run))
    for name, value in seconds.most_common():
        speed = f"{tokens[name] / value:.0f}" if tokens[name] else "-"
        table.add_row(name, f"{value:.1f}", f"{value / seconds.total():.1%}", speed)
    Console().print(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
