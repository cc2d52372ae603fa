"""Tests on many programs, such as mutants, some of which never end.

Each program gets all tests at once, with little time for all of them together, so that one that never ends costs that
time once, and not once for each test. What had no time left because of others is run again, in the end alone, so that
every result is the test's own. A program that does not end mostly hangs on test after test: what it does behind the
first result that settles it is not worth the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from codea1_env.sandbox import JobResult, Limit, Limits, TestResult

MIN_SECONDS = 0.5  # CPU time that a program may take at least, for loading and its tests
FACTOR = 4.0  # a program may take so many times as long as the reference
_STEP = 0.5
_WALL_FACTOR = 10.0  # wall-clock limit over CPU limit: a busy machine must not decide


def limits_beside(reference: JobResult, least: float = MIN_SECONDS) -> Limits:
    """Limits of a program: a multiple of the time that the reference took, and at least `least` seconds."""
    took = reference.cpu_time or sum(each.cpu_time for each in (reference.load, *reference.tests))
    # In steps, so that a little more or less time changes nothing.
    seconds = max(least, math.ceil(FACTOR * took / _STEP) * _STEP)
    wall = _WALL_FACTOR * seconds
    return Limits(seconds, wall, seconds, wall, calls_per_test=1)


def had_no_time(result: TestResult) -> bool:
    """Whether others had used up the time that tests have together."""
    return result.limit is Limit.RUN


R = TypeVar("R")


class Part(NamedTuple):
    """Items of one program."""

    program: int
    items: tuple[int, ...]


def until_settled(
    programs: int,
    items: int,
    run: Callable[[Sequence[Part]], Sequence[Sequence[R]]],
    *,
    late: Callable[[R], bool],
    settles: Callable[[R], bool],
) -> list[list[R | None]]:
    """Run every program on every item; None stands for items behind the first result that settles the program.

    Args:
        programs: Number of programs.
        items: Number of items.
        run: Runs parts, in parallel; gives the results of the items of each.
        late: Whether a result may be another one where the item is run alone: others may have used up the time.
        settles: Whether nothing more needs to be known of the program.

    Example:
        >>> def run(parts):
        ...     return [["hangs" if n >= 3 * p else n for n in numbers] for p, numbers in parts]
        >>> def hangs(result):
        ...     return result == "hangs"
        >>> until_settled(2, 5, run, late=hangs, settles=hangs)
        [['hangs', None, None, None, None], [0, 1, 2, 'hangs', None]]
    """
    rows: list[list[R | None]] = [[None] * items for _ in range(programs)]
    ends = [items] * programs
    alone: set[int] = set()
    while parts := _open(rows, ends, alone):
        alone.clear()
        for (program, numbers), results in zip(parts, run(parts), strict=True):
            pairs = list(zip(numbers, results, strict=True))
            known = {number for number, result in pairs if len(numbers) == 1 or not late(result)}
            if not known:
                alone.add(program)
            for number, result in pairs:
                if number in known:
                    rows[program][number] = result
                    if settles(result):
                        ends[program] = min(ends[program], number + 1)
    return [[*row[:end], *[None] * (items - end)] for row, end in zip(rows, ends, strict=True)]


def _open(rows: Sequence[Sequence[object]], ends: Sequence[int], alone: set[int]) -> list[Part]:
    """Open items of each program; only the first one for programs that run alone."""
    parts = []
    for program, (row, end) in enumerate(zip(rows, ends, strict=True)):
        numbers = [number for number in range(end) if row[number] is None]
        if numbers:
            parts.append(Part(program, tuple(numbers[:1] if program in alone else numbers)))
    return parts
