"""What stands at the top of a program and never changes: constants, and containers of constants that are only read.

Runs inside `Sandbox.analyse`, as part of `codea1_env.reading.stateless`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_VALUES = (
    ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
_CONTAINERS = (ast.List, ast.Set, ast.Dict)
_MADE_OF_ONE = {"dict", "frozenset", "list", "set", "tuple"}
_MAKERS = {*_MADE_OF_ONE, "float", "int"}
"""Builtins that may make what stands at the top; a program may have others of these names."""
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


def is_constant(node: ast.AST, known: set[str] | frozenset[str] = frozenset()) -> bool:
    """Whether an expression has a value that nobody can change: made of constants, and of names of such."""
    match node:
        case ast.Call(func=ast.Name(id="float" | "int"), keywords=[]):
            return all(isinstance(each, ast.Constant) for each in node.args)
        case ast.Name(id=name):
            return name in known
    return isinstance(node, _VALUES) and _are_constant(node, known)


def _are_constant(node: ast.AST, known: set[str] | frozenset[str]) -> bool:
    return all(is_constant(each, known) for each in ast.iter_child_nodes(node))


def _is_container(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression makes a container of constants."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[] | [_], keywords=[]):
            plain = all(is_constant(x, known) or _is_container(x, known) for x in node.args)
            return name in _MADE_OF_ONE and plain
    is_display = isinstance(node, _CONTAINERS) and None not in getattr(node, "keys", ())
    return is_display and _are_constant(node, known)


def constant_containers(body: Sequence[ast.stmt], bound: set[str]) -> set[str] | None:
    """Return the names of containers of constants at the top of a program.

    Args:
        body: Its statements.
        bound: All names that it gives values to, anywhere.

    Returns:
        None if it makes anything else when it loads, but functions and constants.
    """
    constants: set[str] = set()
    containers: set[str] = set()
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            continue
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            if not _only_says(node):
                return None
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {each.id for each in targets if isinstance(each, ast.Name)}
        if node.value is None or len(names) < len(targets) or _has(node, ast.NamedExpr):
            return None
        known = constants - containers
        if _is_container(node.value, known):
            containers |= names
        elif is_constant(node.value, known) or _is_pattern(node.value):
            constants |= names
        elif not isinstance(node.value, ast.Lambda):
            return None
        if bound & _MAKERS and _has(node.value, ast.Call):
            return None
    return containers


def _has(node: ast.AST, kind: type[ast.AST]) -> bool:
    return any(isinstance(each, kind) for each in ast.walk(node))


def _is_pattern(node: ast.expr) -> bool:
    """Whether it is a pattern, which nobody can change; its text and flags are looked at as everywhere."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="compile")):
            return True
    return False


def _only_says(node: ast.stmt) -> bool:
    """Whether a statement shows or checks something when the program loads, and binds no name."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return not _has(node, ast.NamedExpr)
    return False


def read_by(node: ast.AST, bound: set[str]) -> Sequence[ast.expr]:
    """Return the expressions that a node reads elements of, as its own part."""
    match node:
        case ast.Subscript(ctx=ast.Load()):
            return [node.value]
        case ast.Compare():
            pairs = zip(node.ops, node.comparators, strict=True)
            return [side for op, side in pairs if isinstance(op, (ast.In, ast.NotIn))]
        case ast.For() | ast.comprehension():
            return [node.iter]
        case ast.Call(func=ast.Attribute(value=home, attr=name)):
            return [home] if name in _METHODS else []
        case ast.Call(func=ast.Name(id=name)) if name in _READERS and name not in bound:
            if name in _SEVERAL:
                return node.args[name == "map" :]
            return node.args if len(node.args) == 1 else []
    return []
