"""How long to wait for a process that may hang: nobody knows how long an update takes, but all of them are alike."""

from __future__ import annotations

_FIRST = 2 * 3600.0
"""Seconds for what was never done before."""
_LEAST = 600.0
_TIMES = 10.0
"""How many times as long as ever before something may take."""


class Patience:
    """Remembers how long things took.

    Example:
        >>> patience = Patience()
        >>> patience.took("learn", 8, 120.0)
        >>> patience.limit("learn", 8), patience.limit("learn", 4), patience.limit("save", 1)
        (1200.0, 600.0, 7200.0)
    """

    def __init__(self) -> None:
        self._slowest: dict[str, float] = {}

    def limit(self, what: str, amount: int) -> float:
        """Seconds after which something hangs.

        Args:
            what: What is done.
            amount: To how much.
        """
        slowest = self._slowest.get(what)
        return _FIRST if slowest is None else max(_LEAST, _TIMES * slowest * max(amount, 1))

    def took(self, what: str, amount: int, seconds: float) -> None:
        """Remember that something was done."""
        each = seconds / max(amount, 1)
        self._slowest[what] = max(each, self._slowest.get(what, 0.0))
