"""How much numbers may differ from what a test predicts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

MAX_TOLERANCE = 0.01
"""A larger tolerance says too little. Of values above 1 an absolute one is taken by their size."""
_NUMBERS = (int, float, complex)


class Tolerance(NamedTuple):
    """How much numbers may differ from a value; where both are stated, the wider one counts."""

    absolute: float | None = None
    relative: float | None = None


def or_else(stated: Tolerance, default: Tolerance) -> Tolerance:
    """Return a tolerance, with the default for what it does not state."""
    return Tolerance(*(b if a is None else a for a, b in zip(stated, default, strict=True)))


def wider(one: Tolerance | None, other: Tolerance | None) -> Tolerance | None:
    """Return what is within one or the other; None where none is stated.

    Example:
        >>> wider(Tolerance(0.1), Tolerance(0.01, 0.5)), wider(None, None)
        (Tolerance(absolute=0.1, relative=0.5), None)
    """
    if one is None or other is None:
        return one or other
    pairs = zip(one, other, strict=True)
    return Tolerance(*(max((x for x in pair if x is not None), default=None) for pair in pairs))


def unusable(tolerance: Tolerance, value: Any) -> str:
    """Why a value cannot have a tolerance: it is that of numbers, and small. "" if it can.

    Example:
        >>> unusable(Tolerance(0.5), 100), unusable(Tolerance(0.5), 1), unusable(Tolerance(0.5), "a")
        ('', 'a tolerance of 0.5 says too little', 'a tolerance of something else than numbers')
    """
    size = _size(value)
    if size is None:
        return "a tolerance of something else than numbers"
    absolute, relative = tolerance.absolute or 0.0, tolerance.relative or 0.0
    if absolute > MAX_TOLERANCE * max(1.0, size) or relative > MAX_TOLERANCE:
        return f"a tolerance of {max(absolute, relative):g} says too little"
    return ""


def _size(value: Any) -> float | None:
    """Return the smallest of the numbers in a value, as far as a tolerance goes; None if there is something else in it."""
    if type(value) in _NUMBERS:
        try:
            return float(abs(value))
        except OverflowError:
            return math.inf
    if type(value) in (list, tuple, dict) and value:
        sizes = [_size(item) for item in (value.values() if type(value) is dict else value)]
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None
    return None
