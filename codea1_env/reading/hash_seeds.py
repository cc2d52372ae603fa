"""Under how many hash seeds a reference is run, by its text. Runs inside `Sandbox.analyse`.

A value that depends on the order of a set, on time or on chance is no value: a program as good as the reference returns
another. Two runs show most of it. Where the text makes or takes sets, or names what changes, four do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .syntax import parsed

FEW, MANY = 2, 4
_CHANGING = frozenset({
    "set", "frozenset", "dict", "hash", "id", "random", "secrets", "uuid", "urandom", "time", "now",
})  # fmt: skip
_VIEWS = frozenset({"keys", "items"})
_OF_SETS = (ast.BitAnd, ast.BitOr, ast.Sub, ast.BitXor)


def seeds_of(programs: list[str]) -> list[int]:
    """Return how many hash seeds the text of each program asks for; a text that cannot be read asks for all."""
    return [MANY if _may_change(code) else FEW for code in programs]


def _may_change(code: str) -> bool:
    body = parsed(code)
    if body is None:
        return True
    nodes = [node for statement in body for node in ast.walk(statement)]
    names = {name for node in nodes for name in _names(node)}
    if names & _CHANGING or any(isinstance(node, (ast.Set, ast.SetComp)) for node in nodes):
        return True
    operators = (node.op for node in nodes if isinstance(node, (ast.BinOp, ast.AugAssign)))
    return bool(names & _VIEWS) and any(isinstance(each, _OF_SETS) for each in operators)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
