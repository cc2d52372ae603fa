"""Planted faults: a right program that is wrong on one to three values of an argument, which only its text names.

A tester that does not read the program finds such a fault by chance alone, and no memory of other programs helps. Kinds of
faults stand on a ladder. `blind`: tests find it that know the problem only. `copy`: who tests every number of the text finds
it. `work`: the text does not name the value; it must be worked out. `place_of` is pure and runs in the analysis process.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Rung = Literal["blind", "copy", "work"]
LEAST, MOST = 112, 999
"""Values that a fault is planted on; for `digits` up to ten times as large. No example or golden test of the set names one."""


@dataclass(frozen=True)
class Kind:
    """How a fault says on which value it is."""

    rung: Rung
    condition: Callable[[str, random.Random], tuple[str, int]]
    """Name of the argument and a generator -> the condition, and a value that meets it."""
    sparring: bool = False
    """Whether testers may be trained on it. The others are for measuring alone."""


def _equal(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f"{name} == {value}", value


def _range(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f"{value} <= {name} < {value + 3}", value


def _after(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f"{name} - 1 == {value}", value + 1


def _above(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f"{name} > {value}", value + 1


def _either(name: str, rng: random.Random) -> tuple[str, int]:
    value, other = rng.sample(range(LEAST, MOST + 1), 2)
    return f"{name} in ({value}, {other})", value


def _text(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f'str({name}) == "{value}"', value


def _between(name: str, rng: random.Random) -> tuple[str, int]:
    value = _value(rng)
    return f"{value - 1} < {name} < {value + 1}", value


def _minus(name: str, rng: random.Random) -> tuple[str, int]:
    value, added = _value(rng), _value(rng)
    return f"{name} + {added} == {value + added}", value


def _digits(name: str, rng: random.Random) -> tuple[str, int]:
    tens, last = _value(rng), rng.randrange(10)
    return f"{name} // 10 == {tens} and {name} % 10 == {last}", 10 * tens + last


KINDS = {
    "equal": Kind("copy", _equal, sparring=True),
    "table": Kind("copy", _equal, sparring=True),
    "range": Kind("copy", _range, sparring=True),
    "after": Kind("work", _after, sparring=True),
    "above": Kind("blind", _above),
    "either": Kind("copy", _either),
    "text": Kind("copy", _text),
    "between": Kind("work", _between),
    "minus": Kind("work", _minus),
    "digits": Kind("work", _digits),
}
"""Kinds of faults. A `table` looks the value up among special ones."""


@dataclass(frozen=True)
class Place:
    """Where a fault can be planted in a program."""

    parameters: tuple[str, ...]
    first: int
    """Line of the first statement behind the docstring, counted from 0."""
    indent: str
    expression: str
    """What is returned, where the function does nothing else; else ""."""


@dataclass(frozen=True)
class Planted:
    """A program with a planted fault."""

    code: str
    kind: str
    value: int
    """A value of the argument on which it is wrong."""


def place_of(source: str, entry_point: str) -> tuple[Any, ...] | None:
    r"""Find where a fault can be planted: the fields of `Place`. None if the function is no plain one.

    Example:
        >>> place_of("def f(n):\n    return n + 3\n", "f")
        (('n',), 1, '    ', 'n + 3')
    """
    for node in ast.parse(source).body:
        if not (isinstance(node, ast.FunctionDef) and node.name == entry_point):
            continue
        body = node.body[ast.get_docstring(node) is not None :]
        if not body or body[0].lineno == node.lineno:
            return None
        only = body[0]
        returns = len(body) == 1 and isinstance(only, ast.Return) and only.value is not None
        text = ast.get_source_segment(source, only.value) if returns else ""  # type: ignore[attr-defined]
        line = source.splitlines()[only.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        one_line = text is not None and "\n" not in text
        names = tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args))
        return names, only.lineno - 1, indent, (text or "") if one_line else ""
    return None


def plant(
    source: str, place: Place, name: str, kind: str, wrong: Sequence[str], rng: random.Random
) -> Planted:
    r"""Plant a fault.

    Args:
        source: A right program.
        place: Where, as `place_of` found it.
        name: The argument that decides; it takes whole numbers.
        kind: One of `KINDS`.
        wrong: Literals, of which the program returns one by mistake.
        rng: Draws value, spelling and wrong result.

    Example:
        >>> place = Place(("n",), 1, "    ", "n + 3")
        >>> print(plant("def f(n):\n    return n + 3\n", place, "n", "equal", ["7"], random.Random(1)).code)
        def f(n):
            return 7 if n == 249 else n + 3
        <BLANKLINE>
    """
    condition, value = KINDS[kind].condition(name, rng)
    result, right = rng.choice(list(wrong)), place.expression
    spellings = [f"if {condition}:\n    return {result}"]
    if kind == "table":
        spellings = [
            f"special = {{{value}: {result}}}\nif {name} in special:\n    return special[{name}]"
        ]
    whole = []
    if right and kind == "table":
        whole = [f"return {{{value}: {result}}}.get({name}, {right})"]
    elif right:
        whole = [
            f"return {result} if {condition} else {right}",
            f"result = {right}\nif {condition}:\n    result = {result}\nreturn result",
        ]
    chosen = rng.choice([*spellings, *whole])
    lines = source.splitlines()
    added = [place.indent + line for line in chosen.splitlines()]
    rest = lines[place.first + 1 :] if chosen in whole else lines[place.first :]
    code = "\n".join([*lines[: place.first], *added, *rest]) + "\n"
    return Planted(code, kind, value)


def _value(rng: random.Random) -> int:
    return rng.randint(LEAST, MOST)
