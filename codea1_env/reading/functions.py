"""Test functions: which of their statements never run, and what their parameters stand for."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)

from .chunks import PARSE_ERRORS
from .predictions import SKIPPED, Names, name_of

_MAX_ROWS = 1_000


def parameters_of(node: ast.FunctionDef) -> list[str]:
    """Return the names of a function's parameters."""
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [each.arg for each in (*listed, *rest) if each.arg not in ("self", "cls")]


def rows_of(
    node: ast.FunctionDef, names: Names, meter: LiteralMeter, outer: Sequence[ast.expr] = ()
) -> Iterator[dict[str, Any]]:
    """Yield what the parameters stand for, each time the function runs: defaults, and the rows of tables above it.

    Args:
        node: The function.
        names: What names stand for.
        meter: What reading may cost.
        outer: Decorators of its class.
    """
    given = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
    defaults = {each.arg: _cell(default, names, meter) for each, default in given}
    tables = []
    for decorator in reversed([*outer, *node.decorator_list]):
        if is_table(decorator):
            tables.append(_table(decorator, node, names, meter))
    for rows in itertools.islice(itertools.product(*tables), _MAX_ROWS):
        row = dict(defaults)
        for part in rows:
            row.update(part)
        yield row


def is_table(decorator: ast.expr) -> bool:
    """Whether a decorator runs a test with several rows of arguments."""
    return (
        type(decorator) is ast.Call
        and type(decorator.func) is ast.Attribute
        and decorator.func.attr in ("parametrize", "expand")
    )


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
    decorator: Any, node: ast.FunctionDef, names: Names, meter: LiteralMeter
) -> list[dict[str, Any]]:
    given = {str(keyword.arg): keyword.value for keyword in decorator.keywords}
    parts = list(decorator.args)
    if decorator.func.attr == "expand":
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
            run = [each for each in values.elts if not _is_out(each, names, meter)]
            rows = [_row(each, len(columns), names, meter) for each in run]
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


def _is_out(node: ast.expr, names: Names, meter: LiteralMeter) -> bool:
    """Whether a row is `pytest.param(..., marks=pytest.mark.skip)`."""
    if type(node) is not ast.Call:
        return False
    marks = [each.value for each in node.keywords if each.arg == "marks"]
    listed = [
        mark
        for each in marks
        for mark in (each.elts if isinstance(each, (ast.List, ast.Tuple)) else [each])
    ]
    return are_skipped(listed, names, meter)


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


def is_skipped(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, names: Names, meter: LiteralMeter
) -> bool:
    """Whether a test is marked not to run, or to fail."""
    marks = [*node.decorator_list, *(marks_of(node.body) if type(node) is ast.ClassDef else ())]
    return any(_excludes(mark, names, meter) for mark in marks)


def marks_of(body: list[ast.stmt]) -> list[ast.expr]:
    """Return the marks that `pytestmark` gives to all tests of a module or class."""
    for node in body:
        if type(node) is ast.Assign and name_of(node.targets[0]) == "pytestmark":
            several = type(node.value) in (ast.List, ast.Tuple)
            return node.value.elts if several else [node.value]  # type: ignore[attr-defined]
    return []


def are_skipped(marks: list[ast.expr], names: Names, meter: LiteralMeter) -> bool:
    """Whether one of some marks says that a test does not run, or is to fail."""
    return any(_excludes(mark, names, meter) for mark in marks)


def _excludes(mark: ast.expr, names: Names, meter: LiteralMeter) -> bool:
    name = called_or_named(mark)
    if type(mark) is ast.Name and names.get(name) is SKIPPED:
        return True
    if name in ("skip", "expectedFailure"):
        return True
    if name not in ("skipif", "skipIf", "skipUnless", "xfail"):
        return False
    given: list[ast.expr] = []
    if type(mark) is ast.Call:
        given = [*mark.args, *(each.value for each in mark.keywords if each.arg == "condition")]
    if not given:
        return True
    try:
        value = read(given[0], names, meter)
        if type(value) is str and name in ("skipif", "xfail"):  # pytest evaluates it
            value = read(ast.parse(value, mode="eval").body, names, meter)
    except (NotLiteralError, *PARSE_ERRORS):
        return False  # what the machine decides
    return bool(value) is not (name == "skipUnless")


_FAILS = frozenset({"self.fail", "pytest.fail", "sys.exit", "exit", "quit"})


def fails(body: list[ast.stmt]) -> bool:
    """Whether a block ends the test as a failure."""
    last = body[-1]
    if type(last) is ast.Assert:
        return type(last.test) is ast.Constant and not last.test.value
    return type(last) is ast.Raise or (ends(last) and _called(last) in _FAILS)


def _called(node: ast.stmt) -> str:
    call = node.value if type(node) is ast.Expr else None
    return ast.unparse(call.func) if type(call) is ast.Call else ""


def is_main(node: ast.expr) -> bool:
    """Whether it is the condition under which a text runs as a program."""
    return (
        type(node) is ast.Compare
        and type(node.left) is ast.Name
        and node.left.id == "__name__"
        and type(node.ops[0]) is ast.Eq
    )
