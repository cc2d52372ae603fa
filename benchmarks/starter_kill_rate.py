"""Share of the mutants of the starter problems' references that their golden tests kill.

    python benchmarks/starter_kill_rate.py
    python benchmarks/starter_kill_rate.py --problems-per-tier 5 --verbose

Which surviving mutants compute the same function as the reference cannot be decided in general. Here one
is *presumed* equivalent if it also agrees with the reference on a few hundred other calls, made by varying
the arguments in the golden tests; calls on which the reference raises, or that the problem's contract refuses,
are not counted, because the problem does not say what happens there. A survivor that differs on one of them is a gap in the tests, and the call
is reported. Both rates are worth reading: the raw one counts equivalent mutants against the tests.
The design asks for an adjusted rate of at least 90% on average over problems.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.kills import hangs, run_on_each
from codea1_env.problem_sets.contracts import contracted
from codea1_env.problem_sets.fuzz import Call, vary_calls
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import CallResult, Limits, Outcome, Sandbox

REQUIRED = 0.90
HEADINGS = (
    "tier", "problems", "mutants", "killed", "by timeout", "equivalent", "raw rate", "adjusted rate",
    "lowest",
)  # fmt: skip

LIMITS = Limits(
    call_cpu_time=0.3, call_wall_time=5, run_cpu_time=5, run_wall_time=30, calls_per_test=1
)
"""Short: references of the starter set need milliseconds, and some mutants never end."""


@dataclass(frozen=True)
class Survivor:
    """A mutant that passes all golden tests."""

    mutant: Mutant
    witness: str | None
    """A call that shows the difference to the reference; None if the mutant is presumed equivalent."""


@dataclass(frozen=True)
class KillRate:
    """What the golden tests of one problem do to the mutants of its reference."""

    task_id: str
    mutants: int
    killed: int
    timeouts: int
    """Mutants among the killed ones that did not end on the first test that they fail."""
    survivors: tuple[Survivor, ...]

    @property
    def equivalent(self) -> int:
        """Survivors that are presumed equivalent to the reference."""
        return sum(survivor.witness is None for survivor in self.survivors)

    @property
    def raw(self) -> float:
        """Share of all mutants that are killed; 1 if there are none."""
        return self.killed / self.mutants if self.mutants else 1.0

    @property
    def adjusted(self) -> float:
        """Share of the mutants that are killed, without those presumed equivalent."""
        real = self.mutants - self.equivalent
        return self.killed / real if real else 1.0


def kill_rate(
    problem: Problem,
    sandbox: Sandbox,
    rng: np.random.Generator,
    *,
    limit: int | None = None,
    calls: int = 300,
    limits: Limits = LIMITS,
) -> KillRate:
    """Run the golden tests of a problem on the mutants of its reference.

    Args:
        problem: The problem; its reference must pass its tests.
        sandbox: Where everything runs.
        rng: Makes the calls on which survivors are compared with the reference.
        limit: At most so many mutants; None for all.
        calls: How many such calls.
        limits: What a mutant may use.
    """
    mutants = generate_mutants(problem.reference, sandbox, limit)
    # What never ends mostly hangs in each test: the second time is the last.
    together = replace(limits, run_cpu_time=2 * limits.call_cpu_time)
    rows = run_on_each(
        [mutant.code for mutant in mutants], problem.tests, problem.entry_point, together, sandbox,
        settles=lambda result: not result.passed,
    )  # fmt: skip
    alive = [i for i, row in enumerate(rows) if all(each and each.passed for each in row)]
    hung = sum(any(each and hangs(each) for each in row) for row in rows)
    survivors = _compare(problem, [mutants[i] for i in alive], sandbox, rng, calls, limits)
    return KillRate(
        problem.task_id, len(mutants), len(mutants) - len(alive), hung, tuple(survivors)
    )


def _compare(
    problem: Problem,
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
    rng: np.random.Generator,
    count: int,
    limits: Limits,
) -> list[Survivor]:
    """Look for calls on which the mutants differ from the reference."""
    if not mutants:
        return []
    golden: list[Call] = [(case.args, dict(case.kwargs)) for case in problem.cases]
    calls = vary_calls(golden, count, rng)
    code, name = contracted(problem.reference, problem.entry_point, problem.contract)
    expected = sandbox.call(code, name, calls, limits=limits)
    usable = [i for i, result in enumerate(expected) if result.outcome is Outcome.PASS]
    survivors = []
    for mutant in mutants:
        made = [calls[i] for i in usable]
        results = sandbox.call(mutant.code, problem.entry_point, made, limits=limits)
        witnesses = (
            _show(problem.entry_point, calls[i], expected[i], result)
            for i, result in zip(usable, results, strict=True)
            if _differs(expected[i], result)
        )
        survivors.append(Survivor(mutant, next(witnesses, None)))
    return survivors


def _differs(expected: CallResult, result: CallResult) -> bool:
    if result.outcome is not Outcome.PASS:
        return True
    return bool(result.value != expected.value) and repr(result.value) != repr(expected.value)


def _show(name: str, call: Call, expected: CallResult, result: CallResult) -> str:
    arguments = ", ".join([*map(repr, call[0]), *(f"{k}={v!r}" for k, v in call[1].items())])
    value = repr(result.value) if result.outcome is Outcome.PASS else result.outcome.value
    return f"{name}({arguments}) is {expected.value!r}, not {value}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--source", default="starter", help="what load_problems takes")
    parser.add_argument("--problems-per-tier", type=int, help="default: all")
    parser.add_argument("--mutants", type=int, help="per problem; default: all")
    parser.add_argument("--calls", type=int, default=300, help="on which survivors are compared")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="list survivors, with such a call")
    options = parser.parse_args()

    tiers: dict[str, list[KillRate]] = {}
    started = time.perf_counter()
    console = Console(width=110, highlight=False, markup=False)
    progress = Console(stderr=True)
    with Sandbox(workers=options.workers) as sandbox:
        for problem in track(load_problems(options.source), "judging mutants", console=progress):
            rates = tiers.setdefault(problem.metadata.get("difficulty", "all"), [])
            if options.problems_per_tier is not None and len(rates) >= options.problems_per_tier:
                continue
            rng = np.random.default_rng([options.seed, len(rates)])
            rate = kill_rate(problem, sandbox, rng, limit=options.mutants, calls=options.calls)
            rates.append(rate)
            for survivor in rate.survivors if options.verbose else ():
                mutant, what = survivor.mutant, survivor.witness or "presumed equivalent"
                console.print(
                    f"{rate.task_id} line {mutant.line}: {mutant.operator} {mutant.description}: {what}"
                )
    seconds = time.perf_counter() - started

    table = Table(title="Mutants killed by golden tests")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "tier" else "right")
    everything = [rate for rates in tiers.values() for rate in rates]
    for tier, rates in [*tiers.items(), ("all", everything)]:
        adjusted = [rate.adjusted for rate in rates]
        counts = (
            len(rates),
            *(sum(getattr(rate, name) for rate in rates) for name in ("mutants", "killed", "timeouts", "equivalent")),
        )  # fmt: skip
        shares = (mean(rate.raw for rate in rates), mean(adjusted), min(adjusted))
        table.add_row(tier, *map(str, counts), *(f"{share:.1%}" for share in shares))
    console.print(table)
    console.print(f"Rates are means over problems. {seconds:.0f} s.")
    console.print(f"Command: python {shlex.join(sys.argv)}")
    reached = mean(rate.adjusted for rate in everything)
    if reached < REQUIRED:
        console.print(f"Expect at least {REQUIRED:.0%}, actually: {reached:.1%}.")
    return int(reached < REQUIRED)


if __name__ == "__main__":
    sys.exit(main())
