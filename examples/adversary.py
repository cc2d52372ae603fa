"""What an adversary is good for: coders against a tester that sees their programs and learns, and against controls.

Wrong programs are wrong on one input of 128, as on real problems whose faults are rare. Printed is how likely each coder
submits a right program, step by step. Takes less than a minute on two cores; no model.

    python examples/adversary.py
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.baselines.diagnose.experiments import find_experiments
from codea1_env.baselines.diagnose.playing import curve
from codea1_env.baselines.diagnose.remembering import RememberingReferee
from codea1_env.sandbox import Sandbox

TESTERS = {
    "code-a1": "sees the program and learns",
    "frozen-tester": "never learns",
    "black-box": "learns, but does not see the program",
}
SEEDS, EVERY = 3, 20


def main() -> None:
    """Play all runs, and print one column for each tester."""
    [experiment] = find_experiments(["rare-faults"])
    curves: dict[str, list[list[float]]] = {name: [] for name in TESTERS}
    console = Console()
    with Sandbox(workers=1) as sandbox:
        for seed in track(range(SEEDS), "coders against three testers", console=console):
            memory = RememberingReferee(sandbox)  # the sandbox is asked once for all three
            for name in TESTERS:
                config = experiment.config("1/64", name, seed)
                world = dataclasses.replace(config.world, faults=Fraction(1, 128))
                rows = curve(dataclasses.replace(config, world=world), sandbox, memory)
                curves[name].append([row["solved"] or 0.0 for row in rows[::EVERY]])

    table = Table(title="How likely the coder submits a right program, by what its tester does")
    table.add_column("step", justify="right")
    for means in TESTERS.values():
        table.add_column(means, justify="right")
    for number, chances in enumerate(np.array(list(curves.values())).mean(axis=1).T.tolist()):
        bars = ["█" * round(10 * chance) for chance in chances]
        cells = [f"{bar} {chance:.2f}" for bar, chance in zip(bars, chances, strict=True)]
        table.add_row(str(number * EVERY), *cells)
    console.print(table)
    console.print(
        f"Faults on 1 input of 128; means of {SEEDS} seeds. All experiments: codea1 bench diagnose"
    )


if __name__ == "__main__":
    main()
