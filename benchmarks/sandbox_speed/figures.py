"""One line of the table: what was measured, against what, and what was aimed at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class SpeedFigure:
    """One measured figure.

    Example:
        >>> SpeedFigure("overhead", "5 calls", ours=6.0, unit="ms", baseline=5.0, at_most=1.4).ratio
        1.2
    """

    section: str
    what: str
    ours: float | None
    """What the sandbox has; None if it could not be measured, and the note says why."""
    unit: str = ""
    baseline: float | None = None
    """The same of what the sandbox is compared with, in the same unit."""
    at_most: float | None = None
    """Bound on the ratio, or on `ours` where there is no baseline."""
    at_least: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """`ours` / `baseline`."""
        return self.ours / self.baseline if self.ours is not None and self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the aim was reached; None if there was none."""
        value = self.ours if self.baseline is None else self.ratio
        if self.at_most is None and self.at_least is None:
            return None
        return (
            value is not None
            and (self.at_most is None or value <= self.at_most)
            and (self.at_least is None or value >= self.at_least)
        )

    @property
    def target(self) -> str:
        """The aim as text, "" if there is none."""
        suffix = "" if self.baseline is None else "x"
        parts = [
            f"{sign} {bound:g}{suffix}"
            for sign, bound in (("<=", self.at_most), (">=", self.at_least))
            if bound is not None
        ]
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


def spread(values: Sequence[float]) -> str:
    """Where the middle 80% of some values lie, as text.

    Example:
        >>> spread([1.0, 1.1, 1.2, 1.3, 1.4, 9.0])
        '10-90%: 1-1.4'
    """
    ordered = sorted(values)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return f"10-90%: {low:.3g}-{high:.3g}"


def paired(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The median of the ratios job by job, as text."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"job by job {median(ratios):.2f}x, {spread(ratios)}"
