"""What can be said of a test without running it. Runs inside `Sandbox.analyse`.

The text is hostile, so this file is loaded alone in a helper process, imports only the standard library and the
reader of literals, and gives plain data:

* whether it can be a test of the function at all: it parses, mentions the function, does not rebind it, and
  does not assert what is always true;
* a key that is the same for tests which say the same in other words (``f(1 + 1)``, ``f(2)``);
* for ``assert f(<literals>) == <literal>`` the arguments and the predicted value, so that the referee can
  ask the reference for the right one.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeGuard

from codea1_env.reading.chunks import PARSE_ERRORS, message_of
from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    write,
)

# Builtins that see more than the values of their arguments.
_WIDE_BUILTINS = frozenset({
    "__builtins__", "__import__", "__loader__", "__spec__", "compile", "delattr", "dir", "eval", "exec",
    "getattr", "globals", "hash", "help", "id", "input", "locals", "object", "open", "setattr", "vars",
})  # fmt: skip
# What lies inside functions, frames and classes: a test that looks there can tell programs apart that do the
# same. (The sandbox keeps most of it from tests; this names the attempt.)
_INSIDES = frozenset({
    "__annotations__", "__builtins__", "__closure__", "__code__", "__defaults__", "__getattribute__",
    "__globals__", "__kwdefaults__", "__reduce__", "__reduce_ex__", "__subclasses__", "__wrapped__",
})  # fmt: skip
_INSIDE_PREFIXES = ("ag_", "co_", "cr_", "gi_", "tb_")
# Expressions that evaluate all of their parts.
_STRICT = (
    ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Starred, ast.List, ast.Tuple, ast.Set,
)  # fmt: skip

_Names = dict[str, Any]
"""Names that have no meaning of their own in a test, each with `UNKNOWN`."""


def facts(tests: list[tuple[str, str]]) -> list[dict[str, Any]]:
    r"""Return the facts about many tests, each given with the entry point.

    Returns:
        For each: ``problem`` (why it is no test, or "") and ``fault`` (its kind, a value of
        `codea1_env.reading.invalid_reasons.InvalidReason`, or ""), ``key``, ``direct`` (the function is called whatever happens),
        ``stable`` (nothing but the function's values can decide it), ``call`` (None, or the call of an equality
        test: its source, arguments, ...).

    Example:
        >>> [found] = facts([("x = [1 + 1]\nassert 3 == f(x, k='a'), 'wrong'", "f")])
        >>> found["key"], found["call"]["args"], found["call"]["expected"]
        ("assert f([2], k='a') == 3", [[2]], 3)
        >>> facts([("assert f(2) == f(2)", "f")])[0]["problem"]
        'asserts what is always true'
    """
    return [_facts(test, entry_point) for test, entry_point in tests]


def source_of(value: Any) -> str | None:
    """Return an expression for a value: plain literals only. None if there is none, or it is too long.

    A value that is not equal to itself, such as nan, has none.

    Example:
        >>> source_of({"b": (1.5, float("inf")), "a": set()})
        "{'b': (1.5, float('inf')), 'a': set()}"
    """
    text = write(value)
    if text is not None and "nan" not in text:
        return text
    try:
        return write(_plain(value))
    except (NotLiteralError, RecursionError):
        return None


def equality(call: str, value: str) -> str:
    """Return the test that a call returns a value."""
    return f"assert {call} == {value}"


def _plain(value: Any) -> Any:
    """Plain data that equals a value: a dict in the place of its relatives (Counter, OrderedDict, defaultdict)."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(value[key]) for key in value}
    if kind in (float, complex) and value != value:
        raise NotLiteralError("nothing equals nan")
    return value


def _facts(test: str, entry_point: str) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("problem", "fault"), "")
    found |= {"key": test, "call": None, "direct": False, "stable": False}
    try:
        tree = ast.parse(test)
        table = symtable.symtable(test, "<test>", "exec")
        names = _names(table, entry_point)
        found["fault"], found["problem"] = _problem(test, tree, table, entry_point, names)
        found["direct"] = any(_calls_always(node, entry_point) for node in tree.body)
        found["stable"] = _is_stable(tree)
        call = found["call"] = _equality(test, tree.body, entry_point, names)
        if call is not None:
            found["key"] = equality(call["canonical"], call["predicted"])
        else:
            found["key"] = ast.unparse(_Normaliser(names).visit(tree))
    except PARSE_ERRORS as error:
        found["fault"], found["problem"] = "unparsable", message_of(error)
    return found


def _symbols(table: symtable.SymbolTable) -> Iterator[tuple[symtable.SymbolTable, symtable.Symbol]]:
    """All symbols of a test, each with its scope."""
    tables = [table]
    while tables:
        scope = tables.pop()
        tables += scope.get_children()
        for symbol in scope.get_symbols():
            yield scope, symbol


def _names(table: symtable.SymbolTable, entry_point: str) -> _Names:
    """Return the function's name, and those that the test binds."""
    names: dict[str, Any] = {entry_point: UNKNOWN}
    for _, symbol in _symbols(table):
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter():
            names[symbol.get_name()] = UNKNOWN
    return names


def _literal(node: ast.expr, names: _Names) -> Any:
    """Return the value of an expression that is plain data, just as Python would make it.

    Raises:
        NotLiteralError: It is something else, or too large.
    """
    return read(node, names, LiteralMeter(exact=True))


def _problem(
    test: str, tree: ast.Module, table: symtable.SymbolTable, entry_point: str, names: _Names
) -> tuple[str, str]:
    """Why a text is no test: the kind, and the reason in words."""
    if not re.search(rf"(?<!\w){re.escape(entry_point)}(?!\w)", test):
        return "never calls", f"never calls {entry_point}"
    for scope, symbol in _symbols(table):
        top = scope is table or symbol.is_declared_global()
        changed = symbol.is_assigned() or symbol.is_imported()
        if symbol.get_name() == entry_point and top and changed:
            return "tampers", f"rebinds {entry_point}"
    asserts = []
    for node in ast.walk(tree):
        if _looks_inside(node, entry_point):
            return "tampers", f"looks at the insides of {entry_point}, not at what it does"
        if isinstance(node, ast.Assert):
            asserts.append(node)
    if asserts and all(_always_true(node.test, names) for node in asserts):
        return "tests nothing", "asserts what is always true"
    return "", ""


def _looks_inside(node: ast.AST, entry_point: str) -> bool:
    if isinstance(node, ast.Attribute):
        of_function = isinstance(node.value, ast.Name) and node.value.id == entry_point
        inside = node.attr in _INSIDES or node.attr.startswith(_INSIDE_PREFIXES)
        return inside or (of_function and node.attr.startswith("__"))
    return isinstance(node, ast.Constant) and node.value in _INSIDES


def _always_true(node: ast.expr, names: _Names) -> bool:
    if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
        return True
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(not isinstance(item, ast.Starred) for item in node.elts)
    if isinstance(node, ast.Dict):
        return any(key is not None for key in node.keys)
    if isinstance(node, ast.BoolOp):
        values = (_always_true(value, names) for value in node.values)
        return any(values) if isinstance(node.op, ast.Or) else all(values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        same = ast.dump(node.left) == ast.dump(node.comparators[0])
        return same and isinstance(node.ops[0], (ast.Eq, ast.LtE, ast.GtE, ast.Is))
    try:
        return bool(_literal(node, names))
    except NotLiteralError:
        return False


def _calls_always(node: ast.AST, entry_point: str) -> bool:
    """Whether the function is called whatever the rest does, with nothing that could catch its error."""
    if isinstance(node, (ast.Assert, ast.Expr, ast.Assign, ast.AnnAssign)):
        inner: list[ast.AST | None] = [node.test if isinstance(node, ast.Assert) else node.value]
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == entry_point:
            return True
        inner = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Compare):
        inner = [node.left, node.comparators[0]]
    elif isinstance(node, ast.BoolOp):
        inner = [node.values[0]]
    elif isinstance(node, ast.IfExp):
        inner = [node.test]
    elif isinstance(node, _STRICT):
        inner = list(ast.iter_child_nodes(node))
    else:
        return False
    return any(child is not None and _calls_always(child, entry_point) for child in inner)


def _is_stable(tree: ast.Module) -> bool:
    """Whether nothing in the test can see more than plain data: no modules, no insides of objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name != "math" for alias in node.names):
            return False
        if isinstance(node, ast.ImportFrom) and node.module != "math":
            return False
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            return False
        if isinstance(node, ast.Name) and node.id in _WIDE_BUILTINS:
            return False
    return True


# Equality with a literal


class _Inline(ast.NodeTransformer):
    """Puts what was assigned to names in their place."""

    def __init__(self) -> None:
        self.values: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def _asserted(test: str, body: list[ast.stmt]) -> ast.expr | None:
    """Return the asserted expression, if nothing comes before it but values that are used once."""
    if not body or not isinstance(body[-1], ast.Assert):
        return None
    if len(body) == 1:
        return body[-1].test
    body = ast.parse(test).body  # a copy to change
    names = [node for node in ast.walk(ast.Module(body, [])) if isinstance(node, ast.Name)]
    uses = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
    inline = _Inline()
    for statement in body[:-1]:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        [target] = statement.targets
        if not isinstance(target, ast.Name) or target.id in inline.values:
            return None
        # A number may be used often; a list could be changed between two uses.
        if uses[target.id] != 1 and not isinstance(statement.value, ast.Constant):
            return None
        inline.values[target.id] = inline.visit(statement.value)
    assert isinstance(body[-1], ast.Assert)
    asserted: ast.expr = inline.visit(body[-1].test)
    return asserted


def _equality(
    test: str, body: list[ast.stmt], entry_point: str, names: _Names
) -> dict[str, Any] | None:
    """Return the call and the predicted value, if that is all that the test is about."""
    asserted = _asserted(test, body)
    if asserted is None or not _is_equality(asserted):
        return None
    sides = [asserted.left, asserted.comparators[0]]
    for call, other in (sides, sides[::-1]):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if call.func.id != entry_point or any(word.arg is None for word in call.keywords):
            continue
        try:
            args = [_literal(argument, names) for argument in call.args]
            kwargs = {str(word.arg): _literal(word.value, names) for word in call.keywords}
            expected = _literal(other, names)
        except NotLiteralError:
            continue
        words = [source_of(value) for value in (*args, *kwargs.values())]
        predicted = source_of(expected)
        if predicted is None or None in words:
            continue
        labels = [""] * len(args) + [f"{name}=" for name in kwargs]
        given = ", ".join(f"{label}{word}" for label, word in zip(labels, words, strict=True))
        found = {"args": args, "kwargs": kwargs, "expected": expected, "predicted": predicted}
        canonical = f"{entry_point}({given})"
        written = ast.get_source_segment(test, call) if len(body) == 1 else None
        return found | {"source": written or canonical, "canonical": canonical}
    return None


def _is_equality(node: ast.expr) -> TypeGuard[ast.Compare]:
    return isinstance(node, ast.Compare) and [*map(type, node.ops)] == [ast.Eq]


class _Normaliser(ast.NodeTransformer):
    """Makes tests that say the same alike: no messages, literals in one form, the call on the left."""

    def __init__(self, names: _Names) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            try:
                source = source_of(_literal(node, self.names))
            except NotLiteralError:
                source = None
            if source is not None:
                return ast.Name(source)  # printed as it is
        return super().visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # its parts are no expressions

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = self.visit(node.test)
        if _is_equality(test):
            left, right = test.left, test.comparators[0]
            if isinstance(left, ast.Name) and isinstance(right, ast.Call):
                test = ast.Compare(right, test.ops, [left])
        return ast.Assert(test)
