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
_ENDS = frozenset({
    "sys.exit", "os._exit", "os.abort", "pytest.skip", "pytest.exit", "pytest.fail", "pytest.xfail", "self.skipTest",
    "self.fail", "exit", "quit",
})  # fmt: skip
_FAILS = frozenset({"self.fail", "pytest.fail", "sys.exit", "exit", "quit"})


def called_or_named(node: ast.expr) -> str:
    """Return the last part of the name of an expression, or of what it calls."""
    while type(node) is ast.Call:
        node = node.func
    return name_of(node)


# What parameters stand for


def parameters_of(node: ast.FunctionDef) -> list[str]:
    """Return the names of a function's parameters."""
    arguments = node.args
    rest = filter(None, (arguments.vararg, arguments.kwarg))
    listed = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest)
    return [each.arg for each in listed if each.arg not in ("self", "cls")]


def rows_of(
    node: ast.FunctionDef, names: Names, meter: LiteralMeter, outer: Sequence[ast.expr] = ()
) -> Iterator[dict[str, Any]]:
    """Yield what the parameters stand for, each time the function runs: by defaults and the tables above it and its class."""
    given = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
    defaults = {each.arg: _cell(default, names, meter) for each, default in given}
    decorators = filter(is_table, reversed([*outer, *node.decorator_list]))
    tables = [_table(each, node, names, meter) for each in decorators]
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


def is_table(decorator: ast.expr) -> bool:
    """Whether a decorator runs a test with several rows of arguments."""
    function = decorator.func if type(decorator) is ast.Call else None
    return type(function) is ast.Attribute and function.attr in ("parametrize", "expand")


def _table(
    decorator: Any, node: ast.FunctionDef, names: Names, meter: LiteralMeter
) -> list[dict[str, Any]]:
    parts = list(decorator.args)
    if decorator.func.attr == "expand":
        columns = parameters_of(node)
    else:
        given = {each.arg: each.value for each in decorator.keywords}
        parts += [given[key] for key in ("argnames", "argvalues") if key in given]
        columns = _columns(parts.pop(0), names, meter) if parts else []
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
        marks = [each.value for each in getattr(node, "keywords", ()) if each.arg == "marks"]
        listed = [each for mark in marks for each in getattr(mark, "elts", [mark])]
        if type(node) is ast.Call and are_skipped(listed, names, meter):
            continue
        if type(node) is ast.Call and name_of(node.func) == "param":
            cells = node.args
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


def marks_of(body: list[ast.stmt]) -> list[ast.expr]:
    """Return the marks that `pytestmark` gives to all tests of a module or class."""
    for node in body:
        if type(node) is ast.Assign and name_of(node.targets[0]) == "pytestmark":
            several = type(node.value) in (ast.List, ast.Tuple)
            return node.value.elts if several else [node.value]  # type: ignore[attr-defined]
    return []


def is_skipped(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, names: Names, meter: LiteralMeter
) -> bool:
    """Whether a test is marked not to run, or to fail."""
    marks = marks_of(node.body) if type(node) is ast.ClassDef else []
    return are_skipped([*node.decorator_list, *marks], names, meter)


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


def _called(node: ast.stmt) -> str:
    function = node.value.func if type(node) is ast.Expr and type(node.value) is ast.Call else None
    if type(function) is ast.Attribute and type(function.value) is ast.Name:
        return f"{function.value.id[:20]}.{function.attr[:20]}"
    return function.id if type(function) is ast.Name else ""


def ends(node: ast.stmt) -> bool:
    """Whether what stands behind a statement, in its block, does not run."""
    return type(node) in (ast.Return, ast.Raise) or _called(node) in _ENDS


def fails(body: list[ast.stmt]) -> bool:
    """Whether a block ends the test as a failure."""
    last = body[-1]
    if type(last) is ast.Assert:
        return type(last.test) is ast.Constant and not last.test.value
    return type(last) is ast.Raise or _called(last) in _FAILS


def is_main(node: ast.expr) -> bool:
    """Whether it is the condition under which a text runs as a program."""
    return (
        type(node) is ast.Compare
        and name_of(node.left) == "__name__"
        and type(node.ops[0]) is ast.Eq
    )
