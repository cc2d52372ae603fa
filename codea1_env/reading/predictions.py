"""A condition, or a method of unittest -> calls of the function under test, and the values that it predicts."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.literals import (
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)

MAX_TOLERANCE = 0.01
"""A larger tolerance says too little. Of values above 1 an absolute one is taken by their size."""
_NUMBERS = (int, float, complex)
Names = Mapping[str, Any]
"""What names stand for: plain data, or one of the marks below."""
_CONVERTS: dict[str, type | None] = {
    "round": None, "int": int, "float": float, "str": str, "bool": bool, "list": list, "tuple": tuple, "set": set,
    "frozenset": frozenset, "dict": dict,
}  # fmt: skip
MAIN_CLASS = "Solution"
"""The class whose method the function under test may be, if the entry point names none."""
_UNSAID = "does not say what a call returns"


class UnreadableError(Exception):
    """A condition predicts no value of a call, or none that can be read. The message says why."""


ENTRY_POINT = object()
"""What a name is bound to that is another name of the function under test."""
MODULE = object()
"""What a name is bound to that is a module which may hold the function under test."""
INSTANCE = object()
"""What a name is bound to that is an object of the class whose method is under test."""


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


class Tolerance(NamedTuple):
    """How much numbers may differ from a value; where both are stated, the wider one counts."""

    absolute: float | None = None
    relative: float | None = None


class Prediction(NamedTuple):
    """What a test says."""

    call: Call
    value: Any
    tolerance: Tolerance | None = None
    through: str = ""
    """A type that the test converts what is returned to: "list" for `list(f(x)) == [1]`."""


class Conditions:
    """Reads conditions of one text.

    Args:
        entry_point: The function under test: `f`, or `Solution.f` for a method of a new instance.
        meter: What the whole text may cost.
        strict: Whether every assertion counts as one about the function.
    """

    def __init__(self, entry_point: str, meter: LiteralMeter, strict: bool = False) -> None:
        self._strict = strict
        owner, _, self.entry_point = entry_point.rpartition(".")
        self.owner = owner or MAIN_CLASS
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
        if type(node) is not ast.Attribute:
            return False
        if type(node.value) is ast.Name:
            self.meter.work((len(node.value.id) + len(node.attr)) // 100)
            if f"{node.value.id}.{node.attr}" in names:
                return names[f"{node.value.id}.{node.attr}"] is ENTRY_POINT
            if node.attr == self.entry_point and names.get(node.value.id) is MODULE:
                return True
        return node.attr == self.entry_point and (
            self.is_instance(node.value, names) or self._is_owner(node.value, names)
        )

    def is_instance(self, node: ast.expr, names: Names) -> bool:
        """Whether an expression is an object of the class under test: `Solution()`, or a name of one."""
        if type(node) is ast.Name:
            return names.get(node.id) is INSTANCE
        if type(node) is ast.Attribute and type(node.value) is ast.Name:
            self.meter.work((len(node.value.id) + len(node.attr)) // 100)
            return names.get(f"{node.value.id}.{node.attr}") is INSTANCE
        is_call = type(node) is ast.Call and not node.args and not node.keywords
        return is_call and self._is_owner(node.func, names)  # type: ignore[attr-defined]

    def _is_owner(self, node: ast.expr, names: Names) -> bool:
        if type(node) is ast.Name:
            return node.id == self.owner and node.id not in names
        if type(node) is ast.Attribute and type(node.value) is ast.Name:
            return node.attr == self.owner and names.get(node.value.id) is MODULE
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
            if self._strict and _asserts(each):
                return True
            if type(each) is ast.Name:
                if each.id == self.entry_point:
                    return True
                bound = names.get(each.id)
                if bound is ENTRY_POINT or type(bound) is Call:
                    return True
                if type(bound) is Helper and bound.is_about:
                    return True
            elif type(each) is ast.Attribute:
                base = each.value.id if type(each.value) is ast.Name else ""
                if each.attr == self.entry_point and base != "self":
                    return True
                helper = names.get(f"self.{each.attr}") if base == "self" else None
                if type(helper) is Helper and helper.is_about:
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
            return self._converted(left, right, names)
        tolerance = None
        if type(other) is ast.Call and name_of(other.func) == "approx":
            self.meter.work(len(other.args) + len(other.keywords))
            if not other.args:
                raise UnreadableError("approx without a value")
            stated = self.tolerance(other, 1, ("rel", "abs"), names)
            only = stated.absolute is not None and stated.relative is None
            tolerance = stated if only else _or_else(stated, Tolerance(1e-12, 1e-6))
            other = other.args[0]
        return prediction(call, read(other, names, self.meter), tolerance)

    def almost(
        self, left: ast.expr, right: ast.expr, tolerance: Tolerance, names: Names
    ) -> Prediction:
        """Return what it says that two numbers differ by no more than the tolerance."""
        found = self.equal(left, right, names)
        return prediction(found.call, found.value, _wider(tolerance, found.tolerance))

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
                return self.almost(one, other, Tolerance(absolute=tolerance), names)
        raise UnreadableError(_UNSAID)

    def _converted(self, left: ast.expr, right: ast.expr, names: Names) -> Prediction:
        """`list(f(x)) == [1]`: the list; `round(f(x), 2) == value`: the value, give or take half of the last place."""
        for each, other in ((left, right), (right, left)):
            if type(each) is not ast.Call or not each.args or each.keywords:
                continue
            name = name_of(each.func)
            call = (
                self.call(each.args[0], names) if name in _CONVERTS and name not in names else None
            )
            if call is None:
                continue
            value = read(other, names, self.meter)
            if name == "round" and len(each.args) == 2:
                places = read(each.args[1], names, self.meter)
                if type(places) is not int or not 0 <= places <= 300:
                    raise UnreadableError("rounded in a way that cannot be read")
                return prediction(call, value, Tolerance(absolute=0.5 * 10.0**-places))
            if len(each.args) == 1 and type(value) is _CONVERTS[name]:
                return Prediction(call, value, None, name)
        raise UnreadableError(_UNSAID)

    def _close(self, node: Any, names: Names) -> list[Prediction]:
        self.meter.work(len(node.args) + len(node.keywords))
        name = name_of(node.func)
        if name == "all" and len(node.args) == 1 and type(node.args[0]) in (ast.List, ast.Tuple):
            return [each for part in node.args[0].elts for each in self.predictions(part, names)]
        if name not in ("isclose", "is_close", "allclose") or len(node.args) < 2:
            raise UnreadableError(_UNSAID)
        home = node.func.value if type(node.func) is ast.Attribute else node.func
        is_numpy = name == "allclose" or getattr(home, "id", "") in ("np", "numpy")
        keys = ("rtol", "atol") if is_numpy else ("rel_tol", "abs_tol")
        default = Tolerance(1e-8, 1e-5) if is_numpy else Tolerance(None, 1e-9)
        tolerance = _or_else(self.tolerance(node, 2, keys, names), default)
        return [self.almost(node.args[0], node.args[1], tolerance, names)]

    def tolerance(
        self, node: ast.Call, places: int, keys: tuple[str, str], names: Names
    ) -> Tolerance:
        """Return the tolerances in a call, which stand behind so many arguments, or under keys: relative, absolute."""
        given = dict(zip(keys, node.args[places:], strict=False))
        given |= {str(keyword.arg): keyword.value for keyword in node.keywords}
        relative, absolute = (
            self.number(given[key], names) if key in given else None for key in keys
        )
        return Tolerance(absolute, relative)


def _or_else(stated: Tolerance, default: Tolerance) -> Tolerance:
    return Tolerance(*(b if a is None else a for a, b in zip(stated, default, strict=True)))


def _wider(one: Tolerance, other: Tolerance | None) -> Tolerance:
    pairs = zip(one, other or Tolerance(), strict=True)
    return Tolerance(*(max((x for x in pair if x is not None), default=None) for pair in pairs))


def _asserts(node: ast.AST) -> bool:
    if type(node) in (ast.FunctionDef, ast.AsyncFunctionDef):
        return node.name.startswith("test")  # type: ignore[attr-defined]
    return type(node) is ast.Assert or (
        type(node) is ast.Call and name_of(node.func).lower().startswith(("assert", "raises"))
    )


def name_of(node: ast.expr) -> str:
    """Return the last part of a name, such as "approx" of `pytest.approx`."""
    if type(node) is ast.Name:
        return node.id
    return node.attr if type(node) is ast.Attribute else ""


def prediction(call: Call, value: Any, tolerance: Tolerance | None) -> Prediction:
    """Return a prediction, if its tolerance can be one.

    Raises:
        UnreadableError: It is large, or that of something else than numbers.
    """
    if tolerance is not None:
        size = _size(value)
        if size is None:
            raise UnreadableError("a tolerance of something else than numbers")
        absolute, relative = tolerance.absolute or 0.0, tolerance.relative or 0.0
        if absolute > MAX_TOLERANCE * max(1.0, size) or relative > MAX_TOLERANCE:
            raise UnreadableError(f"a tolerance of {max(absolute, relative):g} says too little")
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
