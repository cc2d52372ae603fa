"""The fewest tests that kill the same mutants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.mutation import Mutant
from codea1_env.mutation.kills import Kills, find_kills
from codea1_env.sandbox import Sandbox


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

    The arguments are those of `find_kills`.
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
    simple = sorted(range(len(tests)), key=lambda number: _simplicity(tests[number]))
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


def _simplicity(test: str) -> tuple[int, int, str]:
    """Sort tests: those of fewer lines first, then shorter ones."""
    return test.count("\n"), len(test), test
