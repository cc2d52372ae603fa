"""What can be said of a test without running it. Runs inside `Sandbox.analyse`; standard library only.

The text is hostile, so this file is loaded alone in a helper process and gives plain data:

* whether it can be a test of the function at all: it parses, mentions the function, does not rebind it, and
  does not assert what is always true;
* a key that is the same for tests which say the same in other words (``f(1 + 1)``, ``f(2)``);
* for ``assert f(<literals>) == <literal>`` the arguments and the predicted value, so that the referee can
  ask the reference for the right one.
"""

from __future__ import annotations

import ast
import cmath
import operator
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from typing import Any

MAX_SOURCE = 20_000
"""Characters of a value that is written into a test."""
_MAX_ITEMS = 100_000
_MAX_BITS = 4_096

_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
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


class _NotLiteralError(Exception):
    """The expression is not plain data."""


def facts(tests: list[tuple[str, str]]) -> list[dict[str, Any]]:
    r"""The facts about many tests, each given with the entry point.

    Returns:
        For each: ``problem`` (why it is no test, or "") and ``fault`` (its kind, a value of
        `codea1_env.faults.Fault`, or ""), ``key``, ``direct`` (the function is called whatever happens),
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
    """An expression for a value: plain literals only. None if there is none, or it is too long.

    A value that is not equal to itself, such as nan, has none.

    Example:
        >>> source_of({"b": (1.5, float("inf")), "a": set()})
        "{'b': (1.5, float('inf')), 'a': set()}"
    """
    try:
        source = "".join(_source(value))
    except (_NotLiteralError, ValueError):  # ValueError: more digits than Python prints
        return None
    return source if len(source) <= MAX_SOURCE else None


def equality(call: str, value: str) -> str:
    """The test that a call returns a value."""
    return f"assert {call} == {value}"


def _source(value: Any) -> Iterator[str]:
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        yield repr(value)
    elif kind is float and value == value:
        yield f"float('{value}')" if value in (float("inf"), -float("inf")) else repr(value)
    elif kind is complex and cmath.isfinite(value):
        yield repr(value)
    elif kind is list:
        yield f"[{', '.join(''.join(_source(item)) for item in value)}]"
    elif kind is tuple:
        items = ", ".join("".join(_source(item)) for item in value)
        yield f"({items},)" if len(value) == 1 else f"({items})"
    elif kind in (set, frozenset):
        items = ", ".join(sorted("".join(_source(item)) for item in value))
        yield (
            (f"{{{items}}}" if kind is set else f"frozenset({{{items}}})")
            if value
            else (f"{kind.__name__}()")
        )
    elif isinstance(value, dict):  # its relatives (Counter, OrderedDict, defaultdict) equal a dict
        pairs = (f"{''.join(_source(key))}: {''.join(_source(value[key]))}" for key in value)
        yield f"{{{', '.join(pairs)}}}"
    else:
        raise _NotLiteralError


def _facts(test: str, entry_point: str) -> dict[str, Any]:
    found: dict[str, Any] = {"problem": "", "fault": "", "key": test, "call": None}
    found |= {"direct": False, "stable": False}
    try:
        tree = ast.parse(test)
        table = symtable.symtable(test, "<test>", "exec")
        found["fault"], found["problem"] = _problem(test, tree, table, entry_point)
        found["direct"] = any(_calls_always(node, entry_point) for node in tree.body)
        found["stable"] = _is_stable(tree)
        call = found["call"] = _equality(test, tree.body, entry_point)
        if call is not None:
            found["key"] = equality(call["canonical"], call["predicted"])
        else:
            found["key"] = ast.unparse(_Normaliser().visit(tree))
    except _PARSE_ERRORS as error:
        message = error.msg if isinstance(error, SyntaxError) else error
        found["fault"] = "unparsable"
        found["problem"] = f"cannot be parsed: {message or type(error).__name__}"
    return found


def _problem(
    test: str, tree: ast.Module, table: symtable.SymbolTable, entry_point: str
) -> tuple[str, str]:
    """Why a text is no test: the kind, and the reason in words."""
    if not re.search(rf"(?<!\w){re.escape(entry_point)}(?!\w)", test):
        return "never calls", f"never calls {entry_point}"
    tables = [table]
    while tables:
        scope = tables.pop()
        tables += scope.get_children()
        for symbol in scope.get_symbols():
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
    if asserts and all(_always_true(node.test) for node in asserts):
        return "tests nothing", "asserts what is always true"
    return "", ""


def _looks_inside(node: ast.AST, entry_point: str) -> bool:
    if isinstance(node, ast.Attribute):
        of_function = isinstance(node.value, ast.Name) and node.value.id == entry_point
        inside = node.attr in _INSIDES or node.attr.startswith(_INSIDE_PREFIXES)
        return inside or (of_function and node.attr.startswith("__"))
    return isinstance(node, ast.Constant) and node.value in _INSIDES


def _always_true(node: ast.expr) -> bool:
    if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
        return True
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(not isinstance(item, ast.Starred) for item in node.elts)
    if isinstance(node, ast.Dict):
        return any(key is not None for key in node.keys)
    if isinstance(node, ast.BoolOp):
        values = map(_always_true, node.values)
        return any(values) if isinstance(node.op, ast.Or) else all(values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        same = ast.dump(node.left) == ast.dump(node.comparators[0])
        return same and isinstance(node.ops[0], (ast.Eq, ast.LtE, ast.GtE, ast.Is))
    try:
        return bool(_literal(node))
    except _NotLiteralError:
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
    """The asserted expression, if nothing comes before it but values that are used once."""
    if not body or not isinstance(body[-1], ast.Assert):
        return None
    if len(body) == 1:
        return body[-1].test
    body = ast.parse(test).body  # a copy to change
    uses = Counter(
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    inline = _Inline()
    for statement in body[:-1]:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        if not isinstance(target, ast.Name) or target.id in inline.values:
            return None
        # A number may be used often; a list could be changed between two uses.
        if uses[target.id] != 1 and not isinstance(statement.value, ast.Constant):
            return None
        inline.values[target.id] = inline.visit(statement.value)
    assert isinstance(body[-1], ast.Assert)
    asserted: ast.expr = inline.visit(body[-1].test)
    return asserted


def _equality(test: str, body: list[ast.stmt], entry_point: str) -> dict[str, Any] | None:
    """The call and the predicted value, if that is all that the test is about."""
    asserted = _asserted(test, body)
    if not isinstance(asserted, ast.Compare) or len(asserted.ops) != 1:
        return None
    if not isinstance(asserted.ops[0], ast.Eq):
        return None
    for call, other in (
        (asserted.left, asserted.comparators[0]),
        (asserted.comparators[0], asserted.left),
    ):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        if call.func.id != entry_point or any(word.arg is None for word in call.keywords):
            continue
        try:
            args = [_literal(argument) for argument in call.args]
            kwargs = {str(word.arg): _literal(word.value) for word in call.keywords}
            expected = _literal(other)
            words = ["".join(_source(value)) for value in args]
            words += [f"{name}={''.join(_source(value))}" for name, value in kwargs.items()]
            predicted = "".join(_source(expected))
        except _NotLiteralError:
            continue
        canonical = f"{entry_point}({', '.join(words)})"
        written = ast.get_source_segment(test, call) if len(body) == 1 else None
        return {
            "source": written or canonical,
            "canonical": canonical,
            "args": args,
            "kwargs": kwargs,
            "expected": expected,
            "predicted": predicted,
        }
    return None


def _literal(node: ast.expr) -> Any:
    """The value of an expression that is plain data; arithmetic as people write it in tests is done.

    Raises:
        _NotLiteralError: It is something else, or too large.
    """
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        return node.value
    try:
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            return kind([_literal(item) for item in node.elts])
        if isinstance(node, ast.Dict):
            keys = [_literal(key) for key in node.keys if key is not None]
            return dict(zip(keys, map(_literal, node.values), strict=True))  # ** has no key
        if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
            return _SIGNS[type(node.op)](_number(_literal(node.operand)))
        if isinstance(node, ast.BinOp):
            return _arithmetic(node.op, _literal(node.left), _literal(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return _made(node.func.id, node.args)
    except (ArithmeticError, TypeError, ValueError):
        raise _NotLiteralError from None
    raise _NotLiteralError


_SIGNS: dict[type[ast.unaryop], Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _number(value: Any) -> Any:
    if type(value) not in (int, float, complex, bool):
        raise _NotLiteralError
    return value


def _arithmetic(kind: ast.operator, left: Any, right: Any) -> Any:
    sequences = (str, bytes, list, tuple)
    function = _OPERATORS.get(type(kind))
    if function is None:
        raise _NotLiteralError
    if isinstance(kind, ast.Mult) and type(right) in sequences:
        left, right = right, left
    if type(left) in sequences:
        if isinstance(kind, ast.Mult) and type(right) is int and len(left) * right <= _MAX_ITEMS:
            return left * right
        if isinstance(kind, ast.Add) and type(left) is type(right):
            return left + right
        raise _NotLiteralError
    left, right = _number(left), _number(right)
    if isinstance(kind, ast.Pow):
        bits = left.bit_length() if type(left) is int else 1
        if type(right) is complex or abs(right) * max(bits, 1) > _MAX_BITS:
            raise _NotLiteralError
    return function(left, right)


def _made(name: str, arguments: list[ast.expr]) -> Any:
    """What a call of a builtin type makes of plain data: set(), float("inf"), list(range(5))."""
    kinds: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    if name == "dict" and not arguments:
        return {}
    if name == "float" and len(arguments) == 1:
        value = _literal(arguments[0])
        if value in ("inf", "-inf"):
            return float(value)
    if name in kinds and not arguments:
        return kinds[name]()
    if name in kinds and len(arguments) == 1:
        inner = arguments[0]
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range":
            numbers = range(*(_literal(argument) for argument in inner.args))
            if len(numbers) <= _MAX_ITEMS and not inner.keywords:
                return kinds[name](numbers)
        value = _literal(inner)
        if type(value) in (list, tuple, str) or name in ("set", "frozenset"):
            return kinds[name](value)
    raise _NotLiteralError


class _Normaliser(ast.NodeTransformer):
    """Makes tests that say the same alike: no messages, literals in one form, the call on the left."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            try:
                return ast.Name("".join(_source(_literal(node))))  # printed as it is
            except (_NotLiteralError, ValueError):
                pass
        return super().visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # its parts are no expressions

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        test = self.visit(node.test)
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            left, right = test.left, test.comparators[0]
            if isinstance(left, ast.Name) and isinstance(right, ast.Call):
                test = ast.Compare(right, test.ops, [left])
        return ast.Assert(test)
