"""What an adversary is good for: coders against a tester that sees their programs and learns, and against controls.

Wrong programs are wrong on one input of 128, as on real problems whose faults are rare. Printed is how likely each coder
submits a right program, as training goes on. Takes seconds; no model.

    python examples/adversary.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from codea1_env.suite.players import SuiteRun, find_entry
from codea1_env.suite.running import with_rates
from codea1_env.suite.scores import shipped
from codea1_env.suite.tasks import find_task

TESTERS = {
    "grpo": "sees the program and learns",
    "memory": "repeats what broke the program before",
    "random-tests": "never learns",
    "blind": "learns, but does not see the program",
}
SEEDS, PARTS = 3, 5


def main() -> None:
    """Play all runs, and print one column for each tester."""
    task, curves = find_task("rare-faults/2"), []
    for name in TESTERS:
        entry = with_rates(find_entry(name), shipped()[name]["settings"]["rates"], "both", task.experiment)  # fmt: skip
        right = []
        for seed in range(1000, 1000 + SEEDS):
            run = SuiteRun(entry, task, seed)
            while not run.over:
                episodes, programs, *_ = run.step()
                problem, _ = run.rounds.world.at(episodes)
                right.append(run.rounds.world.right[problem, programs].mean())
        curves.append(np.reshape(right, (SEEDS, PARTS, -1)).mean(axis=(0, 2)))

    table = Table(title="How often the coder submits a right program, by what its tester does")
    table.add_column("episodes", justify="right")
    for words in TESTERS.values():
        table.add_column(words, justify="right")
    for number, chances in enumerate(np.array(curves).T.tolist(), 1):
        cells = [f"{'█' * round(10 * chance)} {chance:.2f}" for chance in chances]
        table.add_row(f"{task.episodes * number // PARTS:,}", *cells)
    console = Console()
    console.print(table)
    console.print(f"Faults on 1 input of 128; means of {SEEDS} seeds. All experiments: codea1 bench diagnose")  # fmt: skip


if __name__ == "__main__":
    main()
