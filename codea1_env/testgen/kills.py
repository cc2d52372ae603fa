"""Which tests kill which mutants, and the fewest tests that kill the same ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_env.mutation import Mutant
from codea1_env.sandbox import InfraError, Job, Limits, Outcome, Sandbox, TestResult
from codea1_env.testgen.endless import Part, until_endless

_PATIENCE = 0.1
"""Seconds of CPU time that a test may take on a mutant, if the program needs far less: some mutants never end."""
_FACTOR = 20.0
"""A mutant may take so many times as long as the program."""


@dataclass(frozen=True)
class Kills:
    """What each test of a suite does to the mutants of a program.

    Of a mutant that does not end only the first tests are tried; it counts as killed by those that failed.
    """

    mutants: tuple[Mutant, ...]
    by_test: tuple[frozenset[int], ...]
    """For each test the numbers of the mutants that it kills."""

    @property
    def killed(self) -> frozenset[int]:
        """The mutants that any test kills."""
        return frozenset().union(*self.by_test)

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """The mutants that no test kills."""
        killed = self.killed
        return tuple(each for number, each in enumerate(self.mutants) if number not in killed)

    @property
    def score(self) -> float:
        """Share of the mutants that are killed; 1 if there are none."""
        return len(self.killed) / len(self.mutants) if self.mutants else 1.0


def find_kills(
    program: str,
    entry_point: str | None,
    tests: Sequence[str],
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
) -> Kills:
    """Run tests on the mutants of a program.

    Args:
        program: What the mutants were made from. It passes all tests.
        entry_point: The function or class that the tests use; None if they use other names of the program, too.
        tests: Each stands on its own.
        mutants: The programs with one fault each.
        sandbox: Where everything runs.

    Raises:
        InfraError: The sandbox failed, so that nothing is known.
    """
    limits = _limits(program, entry_point, tests, sandbox)

    def run(parts: Sequence[Part]) -> list[list[TestResult]]:
        return sandbox.run_many(
            [
                Job(mutants[mutant].code, tuple(tests[start:end]), entry_point, limits)
                for mutant, start, end in parts
            ]
        )

    rows = until_endless(
        len(mutants), len(tests), run, lambda result: result.outcome is Outcome.TIMEOUT
    )
    return Kills(
        tuple(mutants),
        tuple(
            frozenset(
                mutant
                for mutant, row in enumerate(rows)
                if (result := row[test]) is not None and _failed(result)
            )
            for test in range(len(tests))
        ),
    )


@dataclass(frozen=True)
class Reduction:
    """A suite, and the part of it that is kept."""

    chosen: tuple[int, ...]
    """Numbers of the tests that are kept."""
    before: Kills
    """What all tests kill."""
    after: Kills
    """What the kept ones kill when they are run on their own: the same mutants."""


def reduce_and_check(
    program: str,
    entry_point: str | None,
    tests: Sequence[str],
    mutants: Sequence[Mutant],
    sandbox: Sandbox,
) -> Reduction:
    """Reduce a suite, and run what is left once more.

    Should it kill other mutants than the whole suite (a program that remembers earlier calls can do that), all
    tests are kept.

    Args:
        program: See `find_kills`.
        entry_point: See `find_kills`.
        tests: See `find_kills`.
        mutants: See `find_kills`.
        sandbox: Where everything runs.
    """
    before = find_kills(program, entry_point, tests, mutants, sandbox)
    chosen = reduce_suite(before.by_test, tests)
    if len(chosen) == len(tests):
        return Reduction(tuple(chosen), before, before)
    kept = [tests[number] for number in chosen]
    after = find_kills(program, entry_point, kept, mutants, sandbox)
    if after.killed != before.killed:
        return Reduction(tuple(range(len(tests))), before, before)
    return Reduction(tuple(chosen), before, after)


def reduce_suite(kills: Sequence[frozenset[int]], tests: Sequence[str]) -> list[int]:
    """Choose few tests that kill every mutant which the whole suite kills.

    Greedy set cover: again and again the test that kills most of what is left; of equals the shorter, simpler
    one. Afterwards tests go whose mutants the later ones kill as well. A suite that kills nothing keeps its
    simplest test.

    Args:
        kills: For each test the mutants that it kills.
        tests: The tests.

    Returns:
        The numbers of the chosen tests, in their order in the suite.

    Example:
        >>> suite = ["assert f(10) == 1", "assert f(1) == 2", "assert f(2) == 2"]
        >>> reduce_suite([frozenset({0}), frozenset({0, 1}), frozenset({1, 2})], suite)
        [1, 2]
    """
    if not tests:
        return []
    simple = sorted(range(len(tests)), key=lambda number: simplicity(tests[number]))
    chosen: list[int] = []
    left = set().union(*kills)
    while left:
        best = max(simple, key=lambda number: len(kills[number] & left))
        chosen.append(best)
        left -= kills[best]
    for number in sorted(chosen, key=simple.index, reverse=True):
        others = [kills[other] for other in chosen if other != number]
        if kills[number] <= set().union(*others):
            chosen.remove(number)
    return sorted(chosen or simple[:1])


def simplicity(test: str) -> tuple[int, int, str]:
    """Sorts tests: those of fewer lines first, then shorter ones."""
    return test.count("\n"), len(test), test


def _limits(
    program: str, entry_point: str | None, tests: Sequence[str], sandbox: Sandbox
) -> Limits:
    """What mutants may use: little, unless the program itself needs more."""
    limits = sandbox.limits.with_room_for(tests=len(tests))
    [results] = sandbox.run_many([Job(program, tuple(tests), entry_point, limits)])
    times = [result.cpu_time for result in results if not _failed(result)]
    # In steps, so that a little more or less time changes nothing.
    slowest = math.ceil(_FACTOR * max(times, default=0.0) / _PATIENCE) * _PATIENCE
    patience = min(max(slowest, _PATIENCE), limits.test_cpu_time)
    return replace(
        limits,
        call_cpu_time=patience,
        run_cpu_time=max(2 * patience, _FACTOR * sum(times)),
        calls_per_test=1,
    )


def _failed(result: TestResult) -> bool:
    if result.outcome is Outcome.INFRA_ERROR:
        raise InfraError(result.message)
    return not result.passed
