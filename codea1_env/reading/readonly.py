"""What stands at the top of a program and never changes: constants, and containers of constants that are only read.

Runs inside `Sandbox.analyse`, as part of `codea1_env.reading.stateless`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_VALUES = (
    ast.Constant,
    ast.UnaryOp,
    ast.BinOp,
    ast.Tuple,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
_CONTAINERS = (ast.List, ast.Set, ast.Dict)
_MADE_OF_ONE = {"dict", "frozenset", "list", "set", "tuple"}
_READERS = {
    "all", "any", "dict", "enumerate", "frozenset", "len", "list", "map", "max", "min", "reversed", "set", "sorted", "sum",
    "tuple", "zip",
}  # fmt: skip
"""Builtins that hand on elements of what they are given, and not the container itself."""
_SEVERAL = {"map", "zip"}
"""Of these, those that read each of several arguments; others may hand on a second one itself."""
_METHODS = {
    "copy", "count", "difference", "get", "index", "intersection", "isdisjoint", "issubset", "issuperset", "items", "keys",
    "symmetric_difference", "union", "values",
}  # fmt: skip
"""Methods of containers that change nothing, and return nothing that can change the container."""


def is_constant(node: ast.AST, known: frozenset[str] = frozenset()) -> bool:
    """Whether an expression has a value that nobody can change: made of constants, and of names of such."""
    if isinstance(node, ast.Call):
        number = isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
        return number and not node.keywords and all(isinstance(x, ast.Constant) for x in node.args)
    if isinstance(node, ast.Name):
        return node.id in known
    return isinstance(node, _VALUES) and all(
        is_constant(each, known) for each in ast.iter_child_nodes(node)
    )


def is_container(node: ast.AST, known: frozenset[str] = frozenset()) -> bool:
    """Whether an expression makes a container of constants."""
    if isinstance(node, _CONTAINERS):
        parts = [
            each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr_context)
        ]
        return None not in getattr(node, "keys", ()) and all(is_constant(x, known) for x in parts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        given = node.args
        plain = len(given) <= 1 and all(
            is_constant(x, known) or is_container(x, known) for x in given
        )
        return node.func.id in _MADE_OF_ONE and plain
    return False


def bound_names(inside: Sequence[ast.AST]) -> set[str]:
    """Return all names that a program gives a value to, anywhere."""
    found: set[str] = set()
    for node in inside:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            found.add(node.name or "")
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.MatchMapping):
            found.add(node.rest or "")
    return found


def are_only_read(names: set[str], inside: Sequence[ast.AST], bound: set[str]) -> bool:
    """Whether containers are only read, wherever a program names them; `bound` are the names that it gives values to."""
    uses = sum(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
        for node in inside
    )
    reads = sum(
        isinstance(read, ast.Name) and read.id in names
        for node in inside
        for read in _read_in(node, bound)
    )
    return reads == uses


def _read_in(node: ast.AST, bound: set[str]) -> list[ast.expr]:
    """Return the expressions that a node reads elements of, as its own part."""
    if isinstance(node, ast.Subscript):
        return [node.value] if isinstance(node.ctx, ast.Load) else []
    if isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        return [side for op, side in pairs if isinstance(op, (ast.In, ast.NotIn))]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter]
    if not isinstance(node, ast.Call):
        return []
    called = node.func
    if isinstance(called, ast.Attribute):
        return [called.value] if called.attr in _METHODS else []
    if not isinstance(called, ast.Name) or called.id not in _READERS or called.id in bound:
        return []
    if called.id in _SEVERAL:
        return node.args[called.id == "map" :]
    return node.args if len(node.args) == 1 else []
