"""How many mutants of its reference the golden tests of a problem kill.

Which surviving mutants compute the same function as the reference cannot be decided in general. Here one
is *presumed* equivalent if it also agrees with the reference on a few hundred other calls, made by varying
the arguments in the golden tests; calls on which the reference raises are not counted, because the problem
does not say what happens there. A survivor that differs on one of them is a gap in the tests, and the call
is reported. Both rates are worth reading: the raw one counts equivalent mutants against the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.problem_sets.calls import literal_calls
from codea1_env.problem_sets.fuzz import Call, vary_calls
from codea1_env.problems import Problem
from codea1_env.sandbox import CallResult, Job, Limits, Outcome, Sandbox

LIMITS = Limits(
    call_cpu_time=0.3, call_wall_time=5, run_cpu_time=5, run_wall_time=30, calls_per_test=1
)
"""Short: references of the starter set need milliseconds, and some mutants never end."""
_STAGES = (slice(0, 1), slice(1, 4), slice(4, None))
"""Tests are tried in stages: a mutant that never ends mostly hangs in each of them."""


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
    """Mutants among the killed ones that did not end."""
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
    alive = list(range(len(mutants)))
    hung = 0
    for stage in _STAGES:
        tests = problem.all_tests[stage]
        jobs = [Job(mutants[i].code, tests, problem.entry_point, limits) for i in alive]
        outcomes = [[result.outcome for result in row] for row in sandbox.run_many(jobs)]
        hung += sum(Outcome.TIMEOUT in row for row in outcomes)
        alive = [i for i, row in zip(alive, outcomes, strict=True) if set(row) <= {Outcome.PASS}]
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
    golden: list[Call] = sandbox.analyse(literal_calls, list(problem.tests), problem.entry_point)
    calls = vary_calls(golden, count, rng)
    expected = sandbox.call(problem.reference, problem.entry_point, calls, limits=limits)
    usable = [i for i, result in enumerate(expected) if result.outcome is Outcome.PASS]
    survivors = []
    for mutant in mutants:
        results = sandbox.call(
            mutant.code, problem.entry_point, [calls[i] for i in usable], limits=limits
        )
        witness = next(
            (
                _show(problem.entry_point, calls[i], expected[i], result)
                for i, result in zip(usable, results, strict=True)
                if _differs(expected[i], result)
            ),
            None,
        )
        survivors.append(Survivor(mutant, witness))
    return survivors


def _differs(expected: CallResult, result: CallResult) -> bool:
    if result.outcome is not Outcome.PASS:
        return True
    return bool(result.value != expected.value) and repr(result.value) != repr(expected.value)


def _show(name: str, call: Call, expected: CallResult, result: CallResult) -> str:
    arguments = ", ".join([*map(repr, call[0]), *(f"{k}={v!r}" for k, v in call[1].items())])
    value = repr(result.value) if result.outcome is Outcome.PASS else result.outcome.value
    return f"{name}({arguments}) is {expected.value!r}, not {value}"
