"""Test functions: which of their statements never run, and what their parameters stand for."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)

from .predictions import Names, name_of

_MAX_ROWS = 1_000


def parameters_of(node: ast.FunctionDef) -> list[str]:
    """Return the names of a function's parameters."""
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [each.arg for each in (*listed, *rest) if each.arg not in ("self", "cls")]


def rows_of(node: ast.FunctionDef, names: Names, meter: LiteralMeter) -> Iterator[dict[str, Any]]:
    """Yield what the parameters stand for, each time the function runs: defaults, and the rows of tables above it."""
    given = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
    defaults = {each.arg: _cell(default, names, meter) for each, default in given}
    tables = []
    for decorator in reversed(node.decorator_list):
        if (
            type(decorator) is ast.Call
            and type(decorator.func) is ast.Attribute
            and decorator.func.attr in ("parametrize", "expand")
        ):
            tables.append(_table(decorator, node, names, meter))
    for rows in itertools.islice(itertools.product(*tables), _MAX_ROWS):
        row = dict(defaults)
        for part in rows:
            row.update(part)
        yield row


def arguments_of(
    call: ast.Call,
    node: ast.FunctionDef,
    names: Names,
    meter: LiteralMeter,
    value_of: Callable[[ast.expr], Any],
) -> dict[str, Any] | None:
    """Return what the parameters of a function stand for in a call of it; None if that is not known."""
    listed = (*node.args.posonlyargs, *node.args.args)
    places = [each.arg for each in listed if each.arg not in ("self", "cls")]
    meter.work(4 * (len(places) + len(node.args.kwonlyargs)))
    if node.args.vararg is not None or node.args.kwarg is not None:
        return None
    given = next(rows_of(node, names, meter))
    if any(type(each) is ast.Starred for each in call.args):
        try:
            values = read_items(ast.List(call.args, ast.Load()), names, meter)
        except NotLiteralError:
            return None
    else:
        values = [value_of(each) for each in call.args]
    if len(values) > len(places):
        return None
    given |= zip(places, values, strict=False)
    given |= {str(each.arg): value_of(each.value) for each in call.keywords}
    return given if given.keys() == set(parameters_of(node)) else None


def _table(
    decorator: ast.Call, node: ast.FunctionDef, names: Names, meter: LiteralMeter
) -> list[dict[str, Any]]:
    given = {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    parts = list(decorator.args)
    if decorator.func.attr == "expand":  # type: ignore[attr-defined]
        columns = parameters_of(node)
        values = parts[0] if parts else None
    else:
        parts += [given[key] for key in ("argnames", "argvalues") if key in given]
        columns = _columns(parts[0], names, meter) if parts else []
        values = parts[1] if len(parts) > 1 else None
    unknown: list[dict[str, Any]] = [dict.fromkeys(columns, UNKNOWN)]
    if values is None:
        return unknown
    try:
        if type(values) in (ast.List, ast.Tuple):
            rows = [_row(each, len(columns), names, meter) for each in values.elts]  # type: ignore[attr-defined]
        else:
            items = read_items(values, names, meter)
            rows = [[item] if len(columns) == 1 else list(item) for item in items]
    except (NotLiteralError, TypeError):
        return unknown
    return [dict(zip(columns, row, strict=True)) for row in rows if len(row) == len(columns)]


def _columns(node: ast.expr, names: Names, meter: LiteralMeter) -> list[str]:
    try:
        value = read(node, names, meter)
    except NotLiteralError:
        return []
    if type(value) is str:
        meter.work(len(value))
        return [name.strip() for name in value.split(",") if name.strip()]
    return [str(name) for name in value] if type(value) in (list, tuple) else []


def _row(node: ast.expr, columns: int, names: Names, meter: LiteralMeter) -> list[Any]:
    if type(node) is ast.Call and name_of(node.func) == "param":
        return [_cell(each, names, meter) for each in node.args]
    if columns == 1:
        return [_cell(node, names, meter)]
    if type(node) in (ast.Tuple, ast.List):
        return [_cell(each, names, meter) for each in node.elts]  # type: ignore[attr-defined]
    return list(read(node, names, meter))


def _cell(node: ast.expr, names: Names, meter: LiteralMeter) -> Any:
    try:
        return read(node, names, meter)
    except NotLiteralError:
        return UNKNOWN


PURE_METHODS = frozenset({
    "allclose", "approx", "array_equal", "copy", "count", "deepcopy", "encode", "endswith", "fabs", "find", "format",
    "get", "index", "isclose", "isdigit", "issubset", "issuperset", "items", "join", "keys", "lower", "lstrip",
    "replace", "rstrip", "split", "startswith", "strip", "title", "union", "upper", "values",
})  # fmt: skip
"""Methods of plain data, and functions of modules, that change neither it nor their arguments."""
_ENDS = frozenset({
    "sys.exit", "os._exit", "os.abort", "pytest.skip", "pytest.exit", "pytest.fail", "pytest.xfail", "self.skipTest",
    "self.fail", "exit", "quit",
})  # fmt: skip
_NEVER = frozenset({"skip", "xfail", "expectedFailure"})
_CATCH = frozenset({"AssertionError", "Exception", "BaseException"})


def called_or_named(node: ast.expr) -> str:
    """Return the last part of the name of an expression, or of what it calls."""
    return called_or_named(node.func) if type(node) is ast.Call else name_of(node)


def ends(node: ast.stmt) -> bool:
    """Whether what stands behind a statement, in its block, does not run."""
    if type(node) in (ast.Return, ast.Raise):
        return True
    if type(node) is not ast.Expr or type(node.value) is not ast.Call:
        return False
    function = node.value.func
    if type(function) is ast.Name:
        return function.id in _ENDS
    if type(function) is ast.Attribute and type(function.value) is ast.Name:
        return len(function.attr) < 20 and f"{function.value.id[:20]}.{function.attr}" in _ENDS
    return False


def is_skipped(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a test is marked not to run, or to fail."""
    return any(called_or_named(decorator) in _NEVER for decorator in node.decorator_list)


def swallows(node: ast.Try) -> bool:
    """Whether an assertion that fails within `try` may go unnoticed."""
    return any(_catches(handler.type) and not _is_loud(handler) for handler in node.handlers)


def _catches(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if type(kind) is ast.Tuple else [kind]
    return any(called_or_named(each) in _CATCH for each in kinds)


def _is_loud(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the test as a failure."""
    last = handler.body[-1]
    is_false = type(last) is ast.Assert and type(last.test) is ast.Constant and not last.test.value
    return (ends(last) and type(last) is not ast.Return) or is_false


def is_main(node: ast.expr) -> bool:
    """Whether it is the condition under which a text runs as a program."""
    return (
        type(node) is ast.Compare
        and type(node.left) is ast.Name
        and node.left.id == "__name__"
        and type(node.ops[0]) is ast.Eq
    )
