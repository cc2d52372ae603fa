"""Share of the mutants of the starter problems' references that their golden tests kill.

    python benchmarks/starter_kill_rate.py
    python benchmarks/starter_kill_rate.py --problems-per-tier 5 --verbose

Mutants that agree with the reference on several hundred other calls are presumed equivalent and left out
of the adjusted rate (codea1_env/problem_sets/kill_rate.py says how). The design asks for an adjusted rate of at
least 90% on average over problems.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from statistics import mean

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.problem_sets.kill_rate import KillRate, kill_rate
from codea1_env.problems import load_problems
from codea1_env.sandbox import Sandbox

REQUIRED = 0.90
HEADINGS = (
    "tier", "problems", "mutants", "killed", "by timeout", "equivalent", "raw rate", "adjusted rate",
    "lowest",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--source", default="starter", help="what load_problems takes")
    parser.add_argument(
        "--problems-per-tier", type=int, default=None, metavar="N", help="default: all"
    )
    parser.add_argument(
        "--mutants", type=int, default=None, metavar="N", help="per problem; default: all"
    )
    parser.add_argument(
        "--calls",
        type=int,
        default=300,
        metavar="N",
        help="to compare survivors with the reference",
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="list survivors, with a call that shows the difference",
    )
    options = parser.parse_args()

    tiers: dict[str, list[KillRate]] = {}
    started = time.perf_counter()
    console = Console(width=110)
    progress = Console(stderr=True)
    with Sandbox(workers=options.workers) as sandbox:
        for problem in track(load_problems(options.source), "judging mutants", console=progress):
            rates = tiers.setdefault(problem.metadata.get("difficulty", "all"), [])
            if options.problems_per_tier is not None and len(rates) >= options.problems_per_tier:
                continue
            rng = np.random.default_rng([options.seed, len(rates)])
            rate = kill_rate(problem, sandbox, rng, limit=options.mutants, calls=options.calls)
            rates.append(rate)
            if options.verbose:
                for survivor in rate.survivors:
                    what = survivor.witness or "presumed equivalent"
                    mutant = survivor.mutant
                    console.print(
                        f"{rate.task_id} line {mutant.line}: {mutant.operator} {mutant.description}: {what}",
                        markup=False,
                        highlight=False,
                    )
    seconds = time.perf_counter() - started

    table = Table(title="Mutants killed by golden tests")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "tier" else "right")
    everything = [rate for rates in tiers.values() for rate in rates]
    for tier, rates in [*tiers.items(), ("all", everything)]:
        lowest = min(rates, key=lambda rate: rate.adjusted)
        table.add_row(
            tier,
            f"{len(rates)}",
            f"{sum(rate.mutants for rate in rates)}",
            f"{sum(rate.killed for rate in rates)}",
            f"{sum(rate.timeouts for rate in rates)}",
            f"{sum(rate.equivalent for rate in rates)}",
            f"{mean(rate.raw for rate in rates):.1%}",
            f"{mean(rate.adjusted for rate in rates):.1%}",
            f"{lowest.adjusted:.1%}",
        )
    console.print(table)
    console.print(f"Rates are means over problems. {seconds:.0f} s.", highlight=False)
    console.print(f"Command: python {shlex.join(sys.argv)}", highlight=False)
    reached = mean(rate.adjusted for rate in everything)
    if reached < REQUIRED:
        console.print(f"Expect at least {REQUIRED:.0%}, actually: {reached:.1%}.")
    return int(reached < REQUIRED)


if __name__ == "__main__":
    sys.exit(main())
