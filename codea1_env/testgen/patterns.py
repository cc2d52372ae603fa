"""A regular expression -> texts that it is likely to match. Runs inside `Sandbox.analyse`."""

from __future__ import annotations

import importlib
import random
import warnings
from typing import Any

# Private, but the only parser that agrees with re.
_PARSER: Any = importlib.import_module("re._parser")
_NUMBER = 8
_REPEATS = 2
_MAX = 60
_CATEGORIES = {
    "CATEGORY_DIGIT": "12037",
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": "ab1x_",
    "CATEGORY_NOT_DIGIT": "ax-",
    "CATEGORY_NOT_SPACE": "a1-",
    "CATEGORY_NOT_WORD": " -.",
}


def samples(patterns: list[str]) -> list[str]:
    r"""Texts made from regular expressions: with as little as each allows, and with more.

    What looks ahead or behind is passed over, so that not every text has to match.

    Example:
        >>> samples([r"(?:(\d+)h)?(\d+)m"])[:3]
        ['1m', '11h11m', '0m']
        >>> samples(["("])
        []
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = _PARSER.parse(pattern)
            for number in range(_NUMBER):
                text = _Sampler(number).write(tree)
                if 0 < len(text) <= _MAX:
                    found[text] = None
        except Exception:  # no samples then: this is guesswork
            continue
    return list(found)


class _Sampler:
    """Writes one text: the shortest for the number 0, one with every part for 1, others at random."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number) if number > 1 else None
        self._more = number
        self._groups: dict[int, str] = {}

    def write(self, tree: Any) -> str:
        return "".join(self._part(str(kind), content) for kind, content in tree)

    def _pick(self, items: Any) -> Any:
        return items[0] if self._random is None else self._random.choice(items)

    def _part(self, kind: str, content: Any) -> str:
        if kind == "LITERAL":
            return chr(content)
        if kind == "NOT_LITERAL":
            return "a" if content != ord("a") else "b"
        if kind == "ANY":
            return str(self._pick("a1 "))
        if kind == "IN":
            return self._member(content)
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = content
            more = self._more if self._random is None else self._random.randint(0, _REPEATS)
            return "".join(self.write(inner) for _ in range(min(low + more, int(high), _MAX)))
        if kind == "SUBPATTERN":
            text = self.write(content[-1])
            if content[0] is not None:
                self._groups[content[0]] = text
            return text
        if kind == "BRANCH":
            return self.write(self._pick(content[1]))
        if kind == "GROUPREF":
            return self._groups.get(content, "")
        return self.write(content) if kind == "ATOMIC_GROUP" else ""

    def _member(self, content: Any) -> str:
        kind, inner = self._pick(content)
        if str(kind) == "NEGATE":
            return next(
                (each for each in "a1 -_." if ord(each) not in [c for _, c in content]), "a"
            )
        if str(kind) == "RANGE":
            low, high = inner
            return chr(low if self._random is None else self._random.randint(low, high))
        if str(kind) == "CATEGORY":
            return str(self._pick(_CATEGORIES.get(str(inner), "a")))
        return chr(inner)
