"""Runs many programs on many items, where some programs never end.

Each program first gets all items at once, with little time for all of them together. Most need less. Those that do
not are tried again item by item, up to the first item that takes too long: a program that does not end mostly hangs
on item after item, and what it does on the others is not worth the time.

A program that only waits (it sleeps, say) uses no CPU time, and would be waited for on item after item. It is given up
at the item at which its time for all is over; that item it may try alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

_GROUP = 8

R = TypeVar("R")


class Part(NamedTuple):
    """Items of one program."""

    program: int
    start: int
    end: int


def until_endless(
    programs: int,
    items: int,
    run: Callable[[Sequence[Part]], Sequence[Sequence[R]]],
    hangs: Callable[[R], bool],
    waits: Callable[[R], bool] = lambda result: False,
) -> list[list[R | None]]:
    """What every program does on every item; None for the items after the first on which it hangs.

    The result depends on the CPU time that each item takes alone, and not on that of all together.

    Args:
        programs: Number of programs.
        items: Number of items.
        run: Runs parts, in parallel; gives the results of the items of each.
        hangs: Whether a result says that the time was over.
        waits: Whether it says so of the wall-clock time, most of which the program has not used.

    Example:
        >>> def run(parts):
        ...     return [["hangs" if n >= 3 * p else n for n in range(s, e)] for p, s, e in parts]
        >>> until_endless(2, 5, run, lambda result: result == "hangs")
        [['hangs', None, None, None, None], [0, 1, 2, 'hangs', None]]
    """
    found: list[list[R | None]] = [[None] * items for _ in range(programs)]
    going: list[Part] = []
    given_up: set[int] = set()

    def last(part: Part, results: Sequence[R]) -> list[Part]:
        """The last item of a program that waits."""
        number = next((n for n, result in enumerate(results) if hangs(result)), len(results))
        if number == len(results) or not waits(results[number]):
            return []
        given_up.add(part.program)
        place = part.start + number
        found[part.program][part.start : place] = results[:number]
        return [Part(part.program, place, place + 1)]

    everything = [Part(program, 0, items) for program in range(programs)]
    for part, results in zip(everything, run(everything) if items else (), strict=False):
        if waiting := last(part, results):
            going += waiting
        elif any(map(hangs, results)):
            going.append(Part(part.program, 0, _GROUP if items > _GROUP else 1))
        else:
            found[part.program] = list(results)
    while going:
        following = []
        for part, results in zip(going, run(going), strict=True):
            program, start, end = part
            if program in given_up:
                found[program][start:end] = results
                continue
            if waiting := last(part, results):
                following += waiting
                continue
            hung = any(map(hangs, results))
            if hung and end - start > 1:
                following += [Part(program, start, start + 1)]
                continue
            found[program][start:end] = results
            # One by one up to the end of the group: what hung must be in it.
            size = 1 if end % _GROUP or items <= _GROUP else _GROUP
            if not hung and end < items:
                following.append(Part(program, end, min(end + size, items)))
        going = following
    return found
