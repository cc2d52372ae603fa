"""What the names of a text stand for, as far as statements bind them to literals and calls.

And what methods of unittest and functions of numpy.testing say that assert something.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import UNKNOWN, LiteralMeter, NotLiteralError, read

from .predictions import (
    ENTRY_POINT,
    INSTANCE,
    UNSAID,
    Call,
    Conditions,
    Names,
    Prediction,
    Tolerance,
    UnreadableError,
)

PURE = frozenset(dir(builtins)) - {"delattr", "eval", "exec", "next", "setattr", "vars"}
"""Functions of Python that change no argument."""
_PURE_METHODS = frozenset({
    "allclose", "approx", "array_equal", "copy", "count", "deepcopy", "encode", "endswith", "fabs", "find", "format",
    "get", "index", "isclose", "isdigit", "issubset", "issuperset", "items", "join", "keys", "lower", "lstrip",
    "replace", "rstrip", "split", "startswith", "strip", "title", "union", "upper", "values",
})  # fmt: skip
"""Methods of plain data, and functions of modules, that change neither it nor their arguments."""


class Bindings:
    """Binds names, and forgets them where code that cannot be read may change them."""

    def __init__(self, entry_point: str, meter: LiteralMeter, strict: bool) -> None:
        self._meter = meter
        self._conditions = Conditions(entry_point, meter, strict)

    def _assign(self, node: Any, names: Names) -> None:
        if node.value is None:
            return
        value = self._value(node.value, names)
        for target in node.targets if type(node) is ast.Assign else [node.target]:
            self._bind(target, value, names)

    def _value(self, node: ast.expr, names: Names) -> Any:
        if self._conditions.is_function(node, names):
            return ENTRY_POINT
        if self._conditions.is_instance(node, names):
            return INSTANCE
        if type(node) is ast.Name:  # the same object under another name
            return names.get(node.id, UNKNOWN)
        try:
            call = self._conditions.call(node, names)
        except NotLiteralError as error:
            self._forget(node, names)
            return Call([], {}, str(error))
        if call is not None:
            return call
        try:
            return read(node, names, self._meter)
        except NotLiteralError:
            if type(node) is ast.Tuple:  # a, b = f(1), 2
                return tuple([self._value(each, names) for each in node.elts])
            self._forget(node, names)
            return UNKNOWN

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        if type(target) is ast.Name:
            names[target.id] = value
        elif type(target) in (ast.Tuple, ast.List):
            parts = target.elts  # type: ignore[attr-defined]
            self._meter.work(len(parts))
            fits = type(value) in (list, tuple, str) and len(value) == len(parts)
            fits = fits and not any(type(part) is ast.Starred for part in parts)
            items = list(value) if fits else [UNKNOWN] * len(parts)
            for part, item in zip(parts, items, strict=True):
                self._bind(part, item, names)
        elif type(target) is ast.Attribute and type(target.value) is ast.Name:
            names[f"{target.value.id}.{target.attr}"] = value
        else:
            self._forget(target, names)

    def _augmented(self, node: Any, names: Names) -> None:
        target = node.target
        if type(target) is not ast.Name or target.id not in names:
            self._forget(target, names)
            return
        total = ast.BinOp(ast.Name(target.id, ast.Load()), node.op, node.value)
        try:
            value = read(total, names, self._meter)
        except NotLiteralError:
            value = UNKNOWN
        self._forget_name(target.id, names)
        names[target.id] = value

    def _forget(self, node: ast.AST, names: Names) -> None:
        """Names that a piece of code may change have no known value any more."""
        for each in self._conditions.walk(node):
            if type(each) is ast.Call:
                self._forget_call(each, names)
            elif isinstance(getattr(each, "ctx", None), (ast.Store, ast.Del)):
                if type(each) is ast.Name:
                    names[each.id] = UNKNOWN
                elif type(each) in (ast.Attribute, ast.Subscript):
                    self._forget_base(each.value, names)  # type: ignore[attr-defined]

    def _forget_call(self, node: Any, names: Names) -> None:
        if self._conditions.is_function(node.func, names):
            return
        if type(node.func) is ast.Attribute:
            if node.func.attr in _PURE_METHODS:
                return
            self._forget_base(node.func.value, names)
            if node.func.attr.lower().startswith("assert"):
                return
        elif type(node.func) is ast.Name and node.func.id in PURE:
            return
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self._forget_base(argument, names)

    def _forget_base(self, node: ast.AST, names: Names) -> None:
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            key = self._conditions.key(node)
            if key in names:
                return self._forget_name(key, names)
            node = node.value
        return self._forget_name(node.id if isinstance(node, ast.Name) else "", names)

    def _forget_name(self, name: str, names: Names) -> None:
        if name in names:
            self._meter.work(self._size(names))
            self._forget_object(names[name], names)

    @staticmethod
    def _forget_object(value: Any, names: Names) -> None:
        if type(value) in (list, dict, set):
            for name in [each for each, bound in names.items() if bound is value]:
                names[name] = UNKNOWN

    @staticmethod
    def _size(names: Names) -> int:
        """Return what it costs to copy or search names; much less than following code does."""
        return 1 + len(names) // 8


_EQUAL = frozenset({
    "assertequal", "assertequals", "assertlistequal", "asserttupleequal", "assertdictequal", "assertsetequal",
    "assertsequenceequal", "assertmultilineequal", "assertarrayequal", "eq",
})  # fmt: skip


def said_by(
    conditions: Conditions, name: str, call: ast.Call, names: Names
) -> Iterator[Prediction]:
    """Yield what a call such as `self.assertEqual(f(1), 2)` says; the name is in lower case, without underscores."""
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    parts = list(call.args)
    parts += [
        given[key] for key in ("first", "second", "expr", "actual", "desired") if key in given
    ]
    if name in _EQUAL and len(parts) >= 2:
        yield conditions.equal(parts[0], parts[1], names)
    elif name in ("asserttrue", "assert") and parts:
        yield from conditions.predictions(parts[0], names)
    elif name == "assertfalse" and parts and (found := conditions.call(parts[0], names)):
        yield Prediction(found, False)
    elif name == "assertisnone" and parts:
        yield conditions.equal(parts[0], ast.Constant(None), names)
    elif name == "assertis" and len(parts) >= 2:
        yield from conditions.predictions(ast.Compare(parts[0], [ast.Is()], [parts[1]]), names)
    elif name in ("assertalmostequal", "assertalmostequals", "assertallclose") and len(parts) >= 2:
        yield _almost(conditions, parts, given, name, names)
    else:
        raise UnreadableError(UNSAID)


def _almost(
    conditions: Conditions,
    parts: list[ast.expr],
    given: dict[str, ast.expr],
    name: str,
    names: Names,
) -> Prediction:
    if name == "assertallclose":
        relative = given.get("rtol", parts[2] if len(parts) > 2 else None)
        stated = Tolerance(
            conditions.number(given["atol"], names) if "atol" in given else None,
            1e-7 if relative is None else conditions.number(relative, names),
        )
    elif "delta" in given:
        stated = Tolerance(absolute=conditions.number(given["delta"], names))
    else:
        places = given.get("places", given.get("decimal", parts[2] if len(parts) > 2 else None))
        digits = 7.0 if places is None else conditions.number(places, names)
        stated = Tolerance(absolute=0.5 * 10.0 ** -min(digits, 300.0))
    return conditions.almost(parts[0], parts[1], stated, names)
