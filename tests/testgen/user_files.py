"""Files of users, for tests."""

from __future__ import annotations

from pathlib import Path

PROGRAM = '''\
"""Functions of many sorts."""

import datetime
import math
import re
from dataclasses import dataclass
from decimal import Decimal


class EmptyError(ValueError):
    """Nothing there."""


@dataclass
class Point:
    x: int
    y: int = 0

    def moved(self, by: int) -> "Point":
        return Point(self.x + by, self.y)


class Account:
    """A bank account."""

    def __init__(self, owner: str, balance: float = 0.0) -> None:
        if balance < 0:
            raise ValueError("negative")
        self.owner = owner
        self.balance = balance

    def deposit(self, amount: float) -> float:
        if amount <= 0:
            raise EmptyError("nothing to deposit")
        self.balance += amount
        return self.balance

    @property
    def rich(self) -> bool:
        return self.balance > 9


class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)
        return self

    def pop(self, default=None):
        return self._items.pop() if self._items else default

    def __len__(self):
        return len(self._items)


def median(numbers):
    """Return the median.

    >>> median([1, 2, 3, 4])
    2.5
    """
    ordered = sorted(numbers)
    if not ordered:
        raise EmptyError("no numbers")
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def seconds(text: str) -> int:
    """Seconds of a duration such as "1h30m".

    Raises:
        ValueError: It is none.
    """
    match = re.fullmatch(r"(?:(\\d+)h)?(?:(\\d+)m)?", text)
    if not text or match is None:
        raise ValueError(text)
    return 3600 * int(match[1] or 0) + 60 * int(match[2] or 0)


def age(born: datetime.date, today: datetime.date) -> int:
    years = today.year - born.year
    if (today.month, today.day) < (born.month, born.day):
        years -= 1
    return years


def circle(radius: float) -> float:
    return math.pi * radius**2


def scale(values: list[float], factor: float) -> list[float]:
    return [value / 3 * factor for value in values]


def price(amount: int) -> Decimal:
    return Decimal(amount) / 4


def origin(x: int) -> Point:
    return Point(x)


def chunks(items, size: int):
    if size < 1:
        raise ValueError("size")
    for start in range(0, len(items), size):
        yield items[start : start + size]


def count_from(start: int):
    while True:
        yield start
        start += 1


async def double(n: int) -> int:
    return 2 * n


def sort_in_place(items: list[int]) -> None:
    items.sort()


def total(*numbers, start=0):
    return start + sum(numbers)


def nothing_known(a, b):
    return a + b


def log(n: int) -> float:
    if n < 1:
        return math.nan
    return math.log(n)
'''
NAMES = (
    "Point", "Account", "Stack", "median", "seconds", "age", "circle", "scale", "price", "origin", "chunks",
    "count_from", "double", "sort_in_place", "total", "nothing_known", "log",
)  # fmt: skip


def write(folder: Path, text: str = PROGRAM, name: str = "things.py") -> Path:
    """Write a file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
