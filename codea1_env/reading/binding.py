"""A call as a signature binds it: the same arguments are the same call, however they were written."""

from __future__ import annotations

import functools
import json
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import read, write

from .chunks import parse
from .domains import Check, checker, described, shape

_MAX_SHOWN = 80


class BindingError(Exception):
    """The signature does not take these arguments, or there is no text for them. The message says why."""


class UnwritableError(Exception):
    """An argument has no text, or one that is too long."""


class Signature:
    """What a function takes. See `codea1_env.reading.signatures` for the JSON.

    Example:
        >>> signature = Signature('{"parameters": [["n", "", null, "int"], ["by", "", "2", "int"]]}')
        >>> signature.bound([1], {"by": 2}), signature.bound([], {"by": 3, "n": 1})
        (([1], {}, ['1']), ([1, 3], {}, ['1', '3']))
        >>> signature.outside(["a", 1], {})
        'n is a str, not int'
    """

    def __init__(self, text: str) -> None:
        parameters = json.loads(text)["parameters"]
        self.binds = parameters is not None
        rows = parameters or []
        self._rows = [row for row in rows if row[1] in ("", "/")]
        self._places = {row[0]: i for i, row in enumerate(self._rows)}
        self._by_name = {row[0]: i for i, row in enumerate(self._rows) if not row[1]}
        self._defaults: list[str | None] = [row[2] for row in self._rows]
        self._required = sum(default is None for default in self._defaults)
        self._named = {row[0]: row for row in rows if row[1] == "k"}
        self._rest = next((row[0] for row in rows if row[1] == "*"), None)
        self._others = next((row[0] for row in rows if row[1] == "**"), None)
        self._needs_names = any(row[2] is None for row in self._named.values())
        self._checks: dict[str, Check | None] = {row[0]: _check(row) for row in rows}
        self._domains = {row[0]: row[3] for row in rows}
        self._ordered = [self._checks[row[0]] for row in self._rows]

    def bound(
        self, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], list[str]]:
        """Arguments and keyword arguments in the one form of their call, and the texts of the former.

        What can stand by its place does; defaults at the end are left out, and others filled in.

        Raises:
            BindingError: The function does not take them.
            UnwritableError: One of them has no text.
        """
        if not self.binds:
            return arguments, keywords, [_written(each) for each in arguments]
        if keywords or len(arguments) < self._required or self._needs_names:
            arguments, keywords = self._placed(arguments, keywords)
        elif len(arguments) > len(self._rows) and self._rest is None:
            most = len(self._rows)
            raise BindingError(
                f"it takes at most {most} argument{'s' * (most != 1)}, not {len(arguments)}"
            )
        texts = [_written(each) for each in arguments]
        end = len(texts)
        if self._required < end <= len(self._rows):
            while end > self._required and self._defaults[end - 1] == texts[end - 1]:
                end -= 1
            return arguments[:end], keywords, texts[:end]
        return arguments, keywords, texts

    def _placed(
        self, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        if len(arguments) > len(self._rows) and self._rest is None:
            most = len(self._rows)
            raise BindingError(
                f"it takes at most {most} argument{'s' * (most != 1)}, not {len(arguments)}"
            )
        given: dict[int, Any] = {}
        others: dict[str, Any] = {}
        for name, value in keywords.items():
            place = self._by_name.get(name)
            if place is not None:
                if place < len(arguments):
                    raise BindingError(f"{name} is given twice")
                given[place] = value
            elif name in self._named or self._others is not None:
                others[name] = value
            else:
                raise BindingError(f"it has no parameter {name[:_MAX_SHOWN]}")
        placed = list(arguments)
        last = max(given, default=-1)
        for place in range(len(arguments), len(self._rows)):
            name, _, default, _ = self._rows[place]
            if place in given:
                if place == len(placed):
                    placed.append(given[place])
                else:  # behind a default that has no literal
                    others[name] = given[place]
            elif default is None:
                raise BindingError(f"{name} is missing")
            elif place < last and place == len(placed) and default:
                placed.append(_value_of(default))
        return placed, self._in_order(others)

    def _in_order(self, keywords: dict[str, Any]) -> dict[str, Any]:
        ordered = {name: keywords.pop(name) for name in self._places if name in keywords}
        for name, row in self._named.items():
            if name in keywords:
                value = keywords.pop(name)
                if row[2] != write(value):
                    ordered[name] = value
            elif row[2] is None:
                raise BindingError(f"{name} is missing")
        return ordered | {name: keywords[name] for name in sorted(keywords)}

    def outside(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Why arguments are outside the domain, "" if they are not. They are as `bound` gives them."""
        for place, check in enumerate(self._ordered):
            if place < len(arguments) and check is not None and not check(arguments[place]):
                return self._explained(self._rows[place][0], arguments[place])
        if not self.binds:
            return ""
        for value in arguments[len(self._rows) :]:
            check = self._checks[self._rest] if self._rest is not None else None
            if check is not None and not check(value):
                return self._explained(str(self._rest), value)
        for name, value in keywords.items():
            owner = name if name in self._checks else self._others
            check = self._checks.get(owner) if owner is not None else None
            if check is not None and not check(value):
                return self._explained(str(owner), value)
        return ""

    def _explained(self, name: str, value: Any) -> str:
        given, wanted = (
            described(each)[:_MAX_SHOWN] for each in (shape(value), self._domains[name])
        )
        if given == wanted or wanted.startswith("Literal"):
            given = (write(value) or given)[:_MAX_SHOWN]
            return f"{name} is {given}, not {wanted}"
        article = "" if given == "None" else "an " if given[0] in "aeiou" else "a "
        return f"{name} is {article}{given}, not {wanted}"


def _check(row: list[Any]) -> Check | None:
    check = checker(row[3])
    if check is None or not row[2] or check(_value_of(row[2])):
        return check
    inner, default = check, row[2]  # such as `n: int = None`
    return lambda value: inner(value) or write(value) == default


def _value_of(text: str) -> Any:
    node = parse(text)[0]
    return read(node.value)  # type: ignore[attr-defined]


def _written(value: Any) -> str:
    text = write(value)
    if text is None:
        raise UnwritableError
    return text


@functools.lru_cache(maxsize=4096)
def signature_of(text: str) -> Signature:
    """The signature that a JSON text describes; remembered."""
    return Signature(text)
