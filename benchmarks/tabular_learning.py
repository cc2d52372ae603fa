"""Do two tabular players that train against each other improve on what training held back?

    python benchmarks/tabular_learning.py                       # five seeds of the default run, about 8 minutes
    python benchmarks/tabular_learning.py --seeds 2 --set algorithm=rloo --set max_steps=30

Prints, over the seeds, mean and standard deviation at the start and at the end of: the share of held-back
golden tests that the coder's programs pass; the share of held-back mutants that the tester's suites kill
with a test that is right as written, beside what copying the examples of the problem kills; both rewards; and how much of what broke programs the Mistake Book
found. Nothing that is held back, and nothing made from it, is in a player's pool.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table

from codea1_env.training import TrainConfig, TrainResult, train
from codea1_env.training.settings import flat, replaced

ROWS = {
    "held_out/pass_rate": "coder: held-back golden tests passed",
    "held_out/kill_rate": "tester: held-back mutants killed",
    "held_out/copier_kill_rate": "  by copying the examples",
    "held_out/new_kill_rate": "  of the others, by the tester",
    "tester/copied": "tests that the problem's text shows",
    "reward/coder/mean": "coder: reward",
    "reward/tester/mean": "tester: reward",
    "tester/validity": "tester: validity",
    "book/share_of_breaks": "breaking tests that came from the book",
    "book/size": "tests in the book",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    help_text = "a field of TrainConfig; one of a player as coder.learning_rate"
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help=help_text)
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    config = changed(TrainConfig(), options.set)
    results, seconds = [], []
    for seed in range(options.seeds):
        started = time.perf_counter()
        results.append(one_run(dataclasses.replace(config, seed=seed)))
        seconds.append(time.perf_counter() - started)
        console.print(f"seed {seed}: {seconds[-1]:.0f} s", highlight=False)
    console.print(table(results))
    console.print(f"{mean(seconds):.0f} s a run", highlight=False)
    console.print(shlex.join(["python", *sys.argv]), highlight=False, soft_wrap=True)
    return 0


def changed(config: TrainConfig, settings: list[str]) -> TrainConfig:
    for setting in settings:
        name, _, text = setting.partition("=")
        fields = flat(config)
        if name not in fields:
            raise SystemExit(
                f"Expect FIELD=VALUE with a field of TrainConfig, actually: {setting!r}"
            )
        value = text if isinstance(fields[name], str) else json.loads(text)
        config = replaced(config, {name: value})
    return config


def one_run(config: TrainConfig) -> TrainResult:
    with tempfile.TemporaryDirectory() as folder:
        config = dataclasses.replace(config, output_dir=Path(folder) / "run")
        return train(config, console=Console(file=io.StringIO()))


def table(results: list[TrainResult]) -> Table:
    shown = Table(title=f"seeds: {len(results)}, steps: {results[0].step}", title_justify="left")
    for heading in ("", "start", "end", "change", "seeds that rose"):
        shown.add_column(heading, justify="left" if not heading else "right")
    for name, label in ROWS.items():
        pairs = [(result.start[name], result.end[name]) for result in results]
        if any(value is None for pair in pairs for value in pair):
            shown.add_row(label, "-", "-", "-", "-")
            continue
        starts, ends = zip(*pairs, strict=True)
        changes = [end - start for start, end in pairs]
        rose = f"{sum(change > 0 for change in changes)} of {len(changes)}"
        shown.add_row(label, spread(starts), spread(ends), spread(changes), rose)
    return shown


def spread(values: tuple[float, ...] | list[float]) -> str:
    digits = 0 if max(map(abs, values)) > 10 else 3
    deviation = stdev(values) if len(values) > 1 else 0.0
    return f"{mean(values):.{digits}f} ± {deviation:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
