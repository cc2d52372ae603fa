"""How long a search may take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


_SPREAD = 16


def spread(items: Sequence[T]) -> list[T]:
    """The items in another order: where only the first are reached, they come from everywhere.

    Example:
        >>> spread(range(20))[:5]
        [0, 16, 1, 17, 2]
    """
    return [item for start in range(_SPREAD) for item in items[start::_SPREAD]]


class Deadline:
    """Runs from when it was made.

    Args:
        seconds: What there is in all; None for no bound.

    Example:
        >>> Deadline(None).is_over(), Deadline(0).is_over()
        (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._started = time.monotonic()

    def is_over(self, share: float = 1.0) -> bool:
        """Whether so much of the time has passed."""
        return self._seconds is not None and self.elapsed >= share * self._seconds

    @property
    def bounded(self) -> bool:
        """Whether it ever ends."""
        return self._seconds is not None

    @property
    def elapsed(self) -> float:
        """Seconds that have passed."""
        return time.monotonic() - self._started

    def parts(
        self, items: Sequence[T], share: float = 1.0, first: int = 1, most: int = 16
    ) -> Iterator[Sequence[T]]:
        """The items in parts that grow, as long as there is time; all at once if there is no bound.

        Example:
            >>> list(Deadline(60).parts("abcdefghi", most=4))
            ['a', 'bc', 'defg', 'hi']
        """
        start, size = 0, first if self.bounded else max(len(items), 1)
        while start < len(items) and not self.is_over(share):
            yield items[start : start + size]
            start, size = start + size, min(2 * size, most)
