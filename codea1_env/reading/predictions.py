"""A condition, or a method of unittest -> calls of the function under test, and the values that it predicts."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.literals import (
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)

MAX_TOLERANCE = 0.01
"""A larger tolerance says too little. Of values above 1 it is relative."""
_NUMBERS = (int, float, complex)
_CLOSE = {"isclose": 1e-9, "allclose": 1e-5, "is_close": 1e-9}
_NUMPY_CLOSE = 1e-5
_APPROX = 1e-6
Names = Mapping[str, Any]
"""What names stand for: plain data, or one of the marks below."""
_LIMITS = ("rel_tol", "abs_tol", "rtol", "atol")
_UNSAID = "does not say what a call returns"


class UnreadableError(Exception):
    """A condition predicts no value of a call, or none that can be read. The message says why."""


ENTRY_POINT = object()
"""What a name is bound to that is another name of the function under test."""
MODULE = object()
"""What a name is bound to that is a module which may hold the function under test."""


class Call(NamedTuple):
    """A call of the function under test, or why its arguments cannot be read."""

    arguments: list[Any]
    keywords: dict[str, Any]
    error: str = ""


class Helper(NamedTuple):
    """What a name is bound to that is a function of the text with parameters."""

    node: ast.FunctionDef
    text: str
    is_about: bool
    """Whether it mentions the function under test."""


class Prediction(NamedTuple):
    """What a test says."""

    call: Call
    value: Any
    tolerance: float | None = None


class Conditions:
    """Reads conditions of one text.

    Args:
        entry_point: The function under test.
        meter: What the whole text may cost.
    """

    def __init__(self, entry_point: str, meter: LiteralMeter) -> None:
        self.entry_point = entry_point
        self.meter = meter

    def predictions(self, node: ast.expr, names: Names) -> list[Prediction]:
        """Return what a condition says if it holds.

        Raises:
            UnreadableError, NotLiteralError: It says something else.
        """
        self.meter.work(1)
        kind = type(node)
        if kind is ast.Compare:
            return self._comparison(node, names)
        if kind is ast.BoolOp and type(node.op) is ast.And:  # type: ignore[attr-defined]
            return [each for part in node.values for each in self.predictions(part, names)]  # type: ignore[attr-defined]
        if kind is ast.UnaryOp and type(node.op) is ast.Not:  # type: ignore[attr-defined]
            call = self.call(node.operand, names)  # type: ignore[attr-defined]
            if call is not None:
                return [Prediction(call, False)]
        call = self.call(node, names)
        if call is not None:
            return [Prediction(call, True)]
        if kind is ast.Call:
            return self._close(node, names)
        raise UnreadableError(_UNSAID)

    def call(self, node: ast.expr, names: Names) -> Call | None:
        """Return the call that an expression is, or None if it is something else.

        Raises:
            NotLiteralError: Its arguments cannot be read.
        """
        if type(node) is ast.Name:
            bound = names.get(node.id)
            if type(bound) is not Call:
                return None
            if bound.error:
                raise NotLiteralError(bound.error)
            return bound
        if type(node) is not ast.Call or not self.is_function(node.func, names):
            return None
        self.meter.work(1 + len(node.args) + len(node.keywords))
        arguments: list[Any] = []
        for argument in node.args:
            if type(argument) is ast.Constant and argument.value is not Ellipsis:
                arguments.append(argument.value)
            elif type(argument) is ast.Starred:
                arguments += read_items(argument.value, names, self.meter)
            else:
                arguments.append(read(argument, names, self.meter))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = read(keyword.value, names, self.meter)
            given = {keyword.arg: value} if keyword.arg is not None else value
            if type(given) is not dict or any(
                type(name) is not str or name in keywords for name in given
            ):
                raise NotLiteralError("keyword arguments that no call has")
            keywords |= given
        return Call(arguments, keywords)

    def is_function(self, node: ast.expr, names: Names) -> bool:
        """Whether an expression is the function under test: its name, another name, or `module.name`."""
        if type(node) is ast.Name:
            if node.id in names:  # whatever it is named
                return names[node.id] is ENTRY_POINT
            return node.id == self.entry_point
        if type(node) is ast.Attribute and type(node.value) is ast.Name:
            self.meter.work((len(node.value.id) + len(node.attr)) // 100)
            if f"{node.value.id}.{node.attr}" in names:
                return names[f"{node.value.id}.{node.attr}"] is ENTRY_POINT
            return node.attr == self.entry_point and names.get(node.value.id) is MODULE
        return False

    def walk(self, node: ast.AST) -> Iterator[ast.AST]:
        """All of a piece of code. Each time it costs work.

        Raises:
            NotLiteralError: It is too much.
        """
        for each in ast.walk(node):
            self.meter.work(1)
            yield each

    def mentions(self, node: ast.AST, names: Names) -> bool:
        """Whether something is about the function.

        Raises:
            NotLiteralError: It takes too much work to say.
        """
        for each in self.walk(node):
            if type(each) is ast.Name:
                if each.id == self.entry_point:
                    return True
                bound = names.get(each.id)
                if bound is ENTRY_POINT or type(bound) is Call:
                    return True
                if type(bound) is Helper and bound.is_about:
                    return True
            elif (
                type(each) is ast.Attribute
                and each.attr == self.entry_point
                and not (type(each.value) is ast.Name and each.value.id == "self")
            ):
                return True
        return False

    def equal(self, left: ast.expr, right: ast.expr, names: Names) -> Prediction:
        """Return what `left == right` says."""
        call, other = self.call(left, names), right
        if call is None:
            call, other = self.call(right, names), left
        elif self.call(right, names) is not None:
            raise UnreadableError("compares two calls, and predicts no value")
        if call is None:
            return self._rounded(left, right, names)
        tolerance = None
        if type(other) is ast.Call and name_of(other.func) == "approx":
            self.meter.work(len(other.args) + len(other.keywords))
            if not other.args:
                raise UnreadableError("approx without a value")
            tolerance = self.tolerance(other, 1, ("rel", "abs"), _APPROX, names)
            other = other.args[0]
        return prediction(call, read(other, names, self.meter), tolerance)

    def almost(self, left: ast.expr, right: ast.expr, tolerance: float, names: Names) -> Prediction:
        """Return what it says that two numbers differ by no more than the tolerance."""
        found = self.equal(left, right, names)
        return prediction(found.call, found.value, max(tolerance, found.tolerance or 0.0))

    def number(self, node: ast.expr, names: Names) -> float:
        """Return a number that must be one."""
        value = read(node, names, self.meter)
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise UnreadableError("a tolerance that is no number")
        return float(min(value, 1e300))

    def _comparison(self, node: Any, names: Names) -> list[Prediction]:
        if len(node.ops) != 1:
            raise UnreadableError("a chain of comparisons predicts no value")
        kind, left, right = type(node.ops[0]), node.left, node.comparators[0]
        if kind is ast.Eq or kind is ast.Is:
            for condition, constant in ((left, right), (right, left)):
                if (
                    type(constant) is ast.Constant
                    and constant.value is True
                    and type(condition) is ast.Compare
                ):
                    return self._comparison(condition, names)
            found = self.equal(left, right, names)
            if kind is ast.Is and type(found.value) not in (bool, type(None)):
                raise UnreadableError("compares identity")
            return [found]
        if kind in (ast.Lt, ast.LtE):
            return [self._difference(left, right, names, kind is ast.Lt)]
        if kind in (ast.Gt, ast.GtE):
            return [self._difference(right, left, names, kind is ast.Gt)]
        if kind is ast.NotEq:
            raise UnreadableError("says what a call does not return")
        raise UnreadableError(_UNSAID)

    def _difference(
        self, left: ast.expr, right: ast.expr, names: Names, strict: bool
    ) -> Prediction:
        """`abs(f(x) - value) < tolerance`."""
        match left:
            case ast.Call(func=called, args=[ast.BinOp(one, ast.Sub(), other)]) if name_of(
                called
            ) in ("abs", "fabs", "absolute"):
                tolerance = self.number(right, names)
                if strict and not tolerance:
                    raise UnreadableError("no difference is less than 0")
                return self.almost(one, other, tolerance, names)
        raise UnreadableError(_UNSAID)

    def _rounded(self, left: ast.expr, right: ast.expr, names: Names) -> Prediction:
        """`round(f(x), 2) == value`: the value, give or take half of the last place."""
        for each, other in ((left, right), (right, left)):
            if type(each) is ast.Call and name_of(each.func) == "round" and len(each.args) == 2:
                call = self.call(each.args[0], names)
                if call is not None:
                    places = read(each.args[1], names, self.meter)
                    if type(places) is not int or not 0 <= places <= 300:
                        raise UnreadableError("rounded in a way that cannot be read")
                    return prediction(call, read(other, names, self.meter), 0.5 * 10.0**-places)
        raise UnreadableError(_UNSAID)

    def _close(self, node: Any, names: Names) -> list[Prediction]:
        self.meter.work(len(node.args) + len(node.keywords))
        name = name_of(node.func)
        if name == "all" and len(node.args) == 1 and type(node.args[0]) in (ast.List, ast.Tuple):
            return [each for part in node.args[0].elts for each in self.predictions(part, names)]
        if name not in _CLOSE or len(node.args) < 2:
            raise UnreadableError(_UNSAID)
        home = node.func.value if type(node.func) is ast.Attribute else node.func
        is_numpy = home is not node.func and getattr(home, "id", "") in ("np", "numpy")
        default = _NUMPY_CLOSE if is_numpy else _CLOSE[name]
        tolerance = self.tolerance(node, 2, _LIMITS, default, names)
        return [self.almost(node.args[0], node.args[1], tolerance, names)]

    def tolerance(
        self, node: ast.Call, places: int, keys: Sequence[str], default: float, names: Names
    ) -> float:
        """Return the largest of the tolerances in a call, which stand behind so many arguments, or under keys."""
        given = dict(zip(keys[-2:], node.args[places:], strict=False))
        given |= {str(keyword.arg): keyword.value for keyword in node.keywords}
        return max(
            (self.number(given[key], names) for key in keys if key in given), default=default
        )


def name_of(node: ast.expr) -> str:
    """Return the last part of a name, such as "approx" of `pytest.approx`."""
    if type(node) is ast.Name:
        return node.id
    return node.attr if type(node) is ast.Attribute else ""


def prediction(call: Call, value: Any, tolerance: float | None) -> Prediction:
    """Return a prediction, if its tolerance can be one.

    Raises:
        UnreadableError: It is large, or that of something else than numbers.
    """
    if tolerance is not None:
        size = _size(value)
        if size is None:
            raise UnreadableError("a tolerance of something else than numbers")
        if tolerance > MAX_TOLERANCE * max(1.0, size):
            raise UnreadableError(f"a tolerance of {tolerance:g} says too little")
    return Prediction(call, value, tolerance)


def _size(value: Any) -> float | None:
    """Return the smallest of the numbers in a value, as far as a tolerance goes; None if there is something else in it."""
    if type(value) in _NUMBERS:
        try:
            return float(abs(value))
        except OverflowError:
            return math.inf
    if type(value) in (list, tuple, dict) and value:
        sizes = [_size(item) for item in (value.values() if type(value) is dict else value)]
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None
    return None


_EQUAL = frozenset({
    "assertequal", "assertequals", "assertlistequal", "asserttupleequal", "assertdictequal", "assertsetequal",
    "assertsequenceequal", "assertmultilineequal", "assertarrayequal", "eq",
})  # fmt: skip


def said_by(
    conditions: Conditions, call: ast.Call, name: str, names: Names
) -> Iterator[Prediction]:
    """Yield what a call such as `self.assertEqual(f(1), 2)` says.

    Args:
        conditions: Reads what stands in it.
        call: The call.
        name: What is called, in lower case and without underscores.
        names: What names stand for.

    Raises:
        UnreadableError: It says something else.
        NotLiteralError: Something in it is no literal.
    """
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
        raise UnreadableError(_UNSAID)


def _almost(
    conditions: Conditions,
    parts: list[ast.expr],
    given: dict[str, ast.expr],
    name: str,
    names: Names,
) -> Prediction:
    if name == "assertallclose":
        limits = [conditions.number(given[key], names) for key in ("rtol", "atol") if key in given]
        tolerance = max(limits, default=1e-7)
    elif "delta" in given:
        tolerance = conditions.number(given["delta"], names)
    else:
        places = given.get("places", given.get("decimal", parts[2] if len(parts) > 2 else None))
        digits = 7.0 if places is None else conditions.number(places, names)
        tolerance = 0.5 * 10.0 ** -min(digits, 300.0)
    return conditions.almost(parts[0], parts[1], tolerance, names)
