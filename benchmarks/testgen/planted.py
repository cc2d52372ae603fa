"""Makes a small git repository: 6 planted regressions and 6 harmless refactorings in the work tree of one commit.

python benchmarks/testgen/planted.py FOLDER
cd FOLDER; codea1 check src --against HEAD
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OLD_PRICES = '''\
"""Prices."""

RATE = 0.2
UNITS = {"kg": 1000, "g": 1}


def discount(price: float, percent: float) -> float:
    """Return the price after a discount."""
    if percent > 100:
        raise ValueError("more than all")
    return price * (100 - percent) / 100


def with_tax(price: float) -> float:
    return round(price * (1 + RATE), 2)


def shipping(weight: int, express: bool = False) -> int:
    if weight <= 5:
        cost = 4
    elif weight < 20:
        cost = 9
    else:
        cost = 20
    return 2 * cost if express else cost


def parse_weight(text: str) -> int:
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(text[: -len(unit)]) * factor
    raise ValueError(f"no unit in {text!r}, such as '12kg'")


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def _clamp(value, low, high):
    return max(low, min(value, high))


def stars(score: int) -> str:
    return "*" * _clamp(score, 0, 5)


def average(numbers: list[int]) -> float:
    if not numbers:
        return 0.0
    return sum(numbers) / len(numbers)
'''

OLD_CART = '''\
"""A cart."""

from collections import OrderedDict


class Cart:
    """What somebody buys."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.items: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        self.items[name] = self.items.get(name, 0) + number

    def remove(self, name: str) -> None:
        del self.items[name]

    def count(self) -> int:
        return sum(self.items.values())


class Recent:
    """The last things seen, the newest last."""

    def __init__(self, size: int = 3) -> None:
        self._size = size
        self._seen: OrderedDict[str, None] = OrderedDict()

    def see(self, name: str) -> None:
        self._seen.pop(name, None)
        self._seen[name] = None
        while len(self._seen) > self._size:
            self._seen.popitem(last=False)

    def names(self) -> list[str]:
        return list(self._seen)
'''

OLD_WORDS = '''\
"""Words."""

import re


def slug(title: str) -> str:
    """Return a title for an address.

    >>> slug("Hello, World")
    'hello-world'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def initials(name):
    return "".join(part[0].upper() for part in name.split())


def wrap(text: str, width: int = 10) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return lines + [line] if line else lines


def chunks(items: list, size: int):
    start = 0
    while start < len(items):
        yield items[start : start + size]
        start += size


def merge(first: dict, second: dict) -> dict:
    result = dict(first)
    result.update(second)
    return result


def is_palindrome(text: str) -> bool:
    cleaned = [letter.lower() for letter in text if letter.isalnum()]
    return cleaned == cleaned[::-1]


def untouched(n: int) -> int:
    return n + 1
'''

REGRESSIONS = (
    ("prices", "if percent > 100", "if percent >= 100"),
    ("prices", "RATE = 0.2", "RATE = 0.25"),
    ("prices", "elif weight < 20", "elif weight <= 20"),
    ("cart", "self.items.get(name, 0) + number", "number"),
    ("words", '.strip("-")', ""),
    (
        "words",
        "    result = dict(first)\n    result.update(second)\n    return result",
        "    first.update(second)\n    return first",
    ),
)
REFACTORINGS = (
    (
        "prices",
        "    result = 0\n    for price in prices:\n        result += price\n    return result\n",
        "    return sum(prices)\n",
    ),
    (
        "prices",
        "def _clamp(value, low, high):\n    return max(low, min(value, high))",
        "def _clamp(value, limits):\n    low, high = limits\n    return min(high, max(value, low))",
    ),
    ("prices", "_clamp(score, 0, 5)", "_clamp(score, (0, 5))"),
    (
        "prices",
        "    if not numbers:\n        return 0.0\n    return sum(numbers) / len(numbers)",
        "    count = len(numbers)\n    return sum(numbers) / count if count else 0.0",
    ),
    (
        "cart",
        """        self._seen.pop(name, None)
        self._seen[name] = None
        while len(self._seen) > self._size:
            self._seen.popitem(last=False)
""",
        """        self._seen = OrderedDict.fromkeys([each for each in self._seen if each != name] + [name])
        for each in list(self._seen)[: max(0, len(self._seen) - self._size)]:
            del self._seen[each]
""",
    ),
    (
        "words",
        '"".join(part[0].upper() for part in name.split())',
        '"".join([part[0] for part in name.upper().split()])',
    ),
    (
        "words",
        "    cleaned = [letter.lower() for letter in text if letter.isalnum()]\n"
        "    return cleaned == cleaned[::-1]",
        '    cleaned = "".join(filter(str.isalnum, text)).lower()\n'
        "    return all(cleaned[i] == cleaned[-1 - i] for i in range(len(cleaned) // 2))",
    ),
)


def main() -> None:
    """Make the repository."""
    root = Path(sys.argv[1])
    folder = root / "src" / "shop"
    folder.mkdir(parents=True)
    texts = {"__init__": "", "prices": OLD_PRICES, "cart": OLD_CART, "words": OLD_WORDS}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "one"], check=True)
    for name, old, new in (*REGRESSIONS, *REFACTORINGS):
        if old not in texts[name]:
            raise ValueError(f"Expect {old!r} in {name}, actually: it is not there")
        texts[name] = texts[name].replace(old, new)
        (folder / f"{name}.py").write_text(texts[name])


if __name__ == "__main__":
    main()
