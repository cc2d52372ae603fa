"""Test functions: which of their statements never run, and what their parameters stand for."""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)

from .predictions import Names
from .syntax import DEFINITIONS, name_of, parameters_of

_MAX_ROWS = 1_000
_ENDS = frozenset({
    "sys.exit", "os._exit", "os.abort", "pytest.skip", "pytest.exit", "pytest.fail", "pytest.xfail", "self.skipTest",
    "self.fail", "exit", "quit",
})  # fmt: skip
_EXITS = _ENDS - {"os.abort", "pytest.fail", "pytest.xfail", "self.fail"}
"""Those that no failed test makes."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FALSE = ast.Constant(False)


def called_or_named(node: ast.expr) -> str:
    """Return the last part of the name of an expression, or of what it calls."""
    while type(node) is ast.Call:
        node = node.func
    return name_of(node)


# What parameters stand for


def defaults_of(node: ast.FunctionDef, names: Names, meter: LiteralMeter) -> Names:
    """Return what parameters stand for by their defaults, where a function is defined."""
    given = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    defaults = [*given, *((each, default) for each, default in named if default is not None)]
    return {each.arg: _cell(default, names, meter) for each, default in defaults}


def rows_of(tables: list[list[Names]]) -> Iterator[Names]:
    """Yield what the parameters stand for, each time the function runs."""
    for rows in itertools.islice(itertools.product(*tables), _MAX_ROWS):
        yield {name: value for part in rows for name, value in part.items()}


def is_table(decorator: ast.expr) -> bool:
    """Whether a decorator runs a test with several rows of arguments."""
    function = decorator.func if type(decorator) is ast.Call else None
    return type(function) is ast.Attribute and function.attr in ("parametrize", "expand")


def table_of(decorator: Any, node: Any, names: Names, meter: LiteralMeter) -> list[Names]:
    """Return the rows of a table above a function or class."""
    parts = list(decorator.args)
    if decorator.func.attr == "expand":
        columns = [] if type(node) is ast.ClassDef else parameters_of(node)
    else:
        given = {each.arg: each.value for each in decorator.keywords}
        parts += [given[key] for key in ("argnames", "argvalues") if key in given]
        columns = _columns(parts.pop(0), names, meter) if parts else []
        if None in given or getattr(given.get("indirect", _FALSE), "value", None) is not False:
            parts = []  # fixtures may make something else of the cells
    try:
        rows = _rows(parts[0], len(columns), names, meter)
    except (NotLiteralError, TypeError, IndexError):
        return [dict.fromkeys(columns, UNKNOWN)]
    return [dict(zip(columns, row, strict=True)) for row in rows if len(row) == len(columns)]


def _columns(node: ast.expr, names: Names, meter: LiteralMeter) -> list[str]:
    value = _cell(node, names, meter)
    if type(value) is str:
        meter.work(len(value))
        return [name.strip() for name in value.split(",") if name.strip()]
    return [str(name) for name in value] if type(value) in (list, tuple) else []


def _rows(values: ast.expr, columns: int, names: Names, meter: LiteralMeter) -> list[list[Any]]:
    if type(values) not in (ast.List, ast.Tuple):
        items = read_items(values, names, meter)
        return [[item] if columns == 1 else list(item) for item in items]
    rows = []
    for node in values.elts:  # type: ignore[attr-defined]
        if type(node) is ast.Call and name_of(node.func) == "param":
            is_marked = any(each.arg != "id" for each in node.keywords)
            cells = [ast.Constant(...)] * columns if is_marked else node.args
        elif columns == 1:
            cells = [node]
        elif type(node) in (ast.Tuple, ast.List):
            cells = node.elts
        else:
            rows.append(list(read(node, names, meter)))
            continue
        rows.append([_cell(each, names, meter) for each in cells])
    return rows


def _cell(node: ast.expr, names: Names, meter: LiteralMeter) -> Any:
    try:
        return read(node, names, meter)
    except NotLiteralError:
        return UNKNOWN


# What never runs


def _called(node: ast.AST) -> str:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=home), attr=name))):
            return f"{home[:20]}.{name[:20]}"
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name
    return ""


class Leaves(enum.Enum):
    """What ends a block before its end."""

    BREAK = enum.auto()
    CONTINUE = enum.auto()
    RETURN = enum.auto()
    RAISE = enum.auto()
    """An exception or an exit."""
    UNSURE = enum.auto()
    """A round of a loop that may be the last, or may end early."""


_LEAVES = {
    ast.Break: Leaves.BREAK, ast.Continue: Leaves.CONTINUE, ast.Return: Leaves.RETURN, ast.Raise: Leaves.RAISE,
}  # fmt: skip


def ends(node: ast.stmt) -> Leaves | None:
    """How a statement ends its block, if it does."""
    return _LEAVES.get(type(node)) or (Leaves.RAISE if _called(node) in _ENDS else None)


def may_end(node: ast.AST, meter: LiteralMeter) -> Leaves | None:
    """How a statement may end its block that is not followed. What it may raise is a failure, and ends nothing."""
    found: Leaves | None = None
    left: list[tuple[ast.AST, bool]] = [(node, False)]
    while left:
        each, in_loop = left.pop()
        meter.work(1)
        kind = type(each)
        if kind is ast.Return or _called(each) in _EXITS:
            return Leaves.RETURN
        if kind in (ast.Break, ast.Continue) and not in_loop:
            found = Leaves.UNSURE
        if (
            isinstance(each, (ast.stmt, ast.ExceptHandler, ast.match_case))
            and kind not in DEFINITIONS
        ):
            in_loop = in_loop or kind in _LOOPS
            left += [(inner, in_loop) for inner in ast.iter_child_nodes(each)]
    return found


def is_main(node: ast.expr) -> bool:
    """Whether it is the condition under which a text runs as a program."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq(), *_]):
            return name_of(left) == "__name__"
    return False
