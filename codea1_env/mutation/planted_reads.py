r"""Planted faults of programs that read standard input: behind a number that is read, a few values of it become others.

Where each line that is read does not have its own statement, all numbers go through a function in the place of `int`.

`reading_of` is pure and runs in the analysis process.

    >>> [place] = read_places("n = int(input())\nprint(n * 3)\n")
    >>> print(plant_read("n = int(input())\nprint(n * 3)\n", ReadPlace(*place), "equal", random.Random(1)).code)
    n = int(input())
    if n == 249:
        n += 10
    print(n * 3)
    <BLANKLINE>
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from typing import Any

from codea1_env.mutation.planted import KINDS, Planted

_LOOPS = (ast.For, ast.While, ast.If, ast.Try, ast.With, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class ReadPlace:
    """Where a program reads a whole number."""

    name: str
    """Of the variable."""
    behind: int
    """Last line of the statement, counted from 1."""
    indent: str
    row: int
    """Line of the input, counted from 0."""
    word: int
    """Place in that line."""
    parser: str = ""
    """Name of a function that takes the place of `int`: every number that the program makes of a text meets the fault."""


def reading_of(source: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Return what `read_places` and `parsers` return."""
    return read_places(source), parsers(source)


_PARSERS = ("number", "whole_number", "parsed")


def parsers(source: str) -> list[str]:
    """Names for a function in the place of `int`, where a program calls that and does not have the name."""
    able = source.isascii() and _uses_of_int(source)
    return [name for name in _PARSERS if name not in source] if able else []


def _uses_of_int(source: str) -> list[tuple[int, int]]:
    """Line and column of each `int` that is called, or passed on, from the last to the first."""
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    found = [(each.lineno, each.col_offset) for each in names if each.id == "int"]
    return sorted(found, reverse=True)


def read_places(source: str) -> list[tuple[Any, ...]]:
    """Return where a program reads whole numbers, one statement behind the other: the fields of `ReadPlace`."""
    body = ast.parse(source).body
    mains = [each for each in body if isinstance(each, ast.FunctionDef) and not each.args.args]
    for statements in (body, *(each.body for each in mains)):
        if found := list(_places(statements, source.splitlines())):
            return found
    return []


def _places(statements: list[ast.stmt], lines: list[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    row = 0
    for node in statements:
        reads = sum(_is_input(each) for each in ast.walk(node))
        if not reads or isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, _LOOPS) or reads > 1:
            break  # which line is read behind it depends on the input
        line = lines[node.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        for word, name in enumerate(_numbers(node)):
            found.append((name, node.end_lineno, indent, row, word))
        row += 1
    return found


def _numbers(node: ast.stmt) -> list[str]:
    """Names that a statement gives whole numbers of one line: `n = int(input())`, `a, b = map(int, input().split())`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    target, value = node.targets[0], ast.unparse(node.value)
    if isinstance(target, ast.Name) and value in ("int(input())", "int(input().strip())"):
        return [target.id]
    if isinstance(target, ast.Tuple) and value == "map(int, input().split())":
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        return names if len(names) == len(target.elts) else []
    return []


def _is_input(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input"
    )


def plant_read(source: str, place: ReadPlace, kind: str, rng: random.Random) -> Planted:
    """Plant a fault of one of `KINDS` behind a number that is read; `rng` draws value, spelling and what it becomes."""
    name = place.name
    condition, value = KINDS[kind].condition(name, rng)
    change = rng.choice((1, -1, 2, -2, 10))
    added = [f"if {condition}:", f"    {name} {'+' if change > 0 else '-'}= {abs(change)}"]
    if kind == "table":
        added = [f"{name} = {{{value}: {value + change}}}.get({name}, {name})"]
    lines = source.splitlines()
    if place.parser:
        for line, column in _uses_of_int(source):
            text = lines[line - 1]
            lines[line - 1] = f"{text[:column]}{place.parser}{text[column + 3 :]}"
        lines = [
            f"def {place.parser}(text):",
            f"    {name} = int(text)",
            f"    return {name}",
            "",
            "",
            *lines,
        ]
    added = [place.indent + line for line in added]
    code = "\n".join([*lines[: place.behind], *added, *lines[place.behind :]]) + "\n"
    return Planted(code, kind, value)
