"""What a tester that learns is good for, in `reading` and `rare-faults`: GRPO's coder against it and against controls.

    python benchmarks/suite_controls.py reading rare-faults

Each row is tuned for itself: the 6 settings of `codea1 suite tune`, on its seed. Figures are the mean share of right programs over all
episodes of an id, seeds 0 to 9; in brackets the difference from random tests, paired by seed, with its 95% interval.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from codea1_env.evaluation.statistics import mean_over_runs
from codea1_env.suite.players import find_entry
from codea1_env.suite.running import keys_of, play, with_rates
from codea1_env.suite.tasks import SEEDS, tasks
from codea1_env.suite.tuning import tune

ROWS = ("random-tests", "grpo", "blind", "memory", "pool-tests", "fixed-tests", "oracle-tests")
_NOT_THERE = {("reading", "pool-tests"), ("reading", "fixed-tests")}


def main() -> None:
    """Print a table for each experiment."""
    with ProcessPoolExecutor(2) as pool:
        for experiment in sys.argv[1:]:
            ids = [task for task in tasks().values() if task.experiment == experiment]
            control: dict[str, list[float]] = {}
            print(f"| row | rates | {' | '.join(task.setting for task in ids)} |")
            for row in ROWS:
                if (experiment, row) in _NOT_THERE:
                    continue
                entry = find_entry(row)
                rates = tune(entry, ["both"], processes=2, experiments=[experiment])["rates"]
                own = with_rates(entry, rates, "both", experiment)
                cells = []
                for task in ids:
                    keys = keys_of([task], ["both"], SEEDS)
                    futures = [pool.submit(play, own, key) for key in keys]
                    values = [future.result().value for future in futures]
                    if row == "random-tests":
                        control[task.id] = values
                        cells.append(f"{np.mean(values):.3f}")
                        continue
                    less = mean_over_runs(np.subtract(values, control[task.id]))
                    cells.append(f"{np.mean(values):.3f} ({less.value:+.3f} [{less.low:+.3f}, {less.high:+.3f}])")  # fmt: skip
                print(f"| {row} | {own.coder_rate:g}, {own.tester_rate:g} | {' | '.join(cells)} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
