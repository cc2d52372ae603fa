"""A condition, or a method of unittest -> calls of the function under test, and the values that it predicts.

What is on the sandbox's list of assertions is read by it (`form_of`, `sides`); what more testers write is read here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.assertions import Rule, form_of, sides
from codea1_env.sandbox.inside.analysis.literals import (
    LIBRARY,
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
    rounds,
)
from codea1_env.sandbox.inside.analysis.plain import check_unchanged

from .examples import RUN
from .syntax import name_of
from .tolerances import Tolerance, or_else, unusable, wider

Names = dict[str, Any]
"""What names stand for: plain data, or one of the marks below. Attributes are kept by "self.items"."""
_CONVERTS: dict[str, type | None] = {
    "round": None, "int": int, "float": float, "str": str, "bool": bool, "list": list, "tuple": tuple, "set": set,
    "frozenset": frozenset, "dict": dict,
}  # fmt: skip
_LISTS = frozenset({ast.List, ast.Tuple, ast.ListComp})
_EQUAL = frozenset({
    "assertequal", "assertequals", "assertlistequal", "asserttupleequal", "assertdictequal", "assertsetequal",
    "assertsequenceequal", "assertmultilineequal", "assertarrayequal", "eq",
})  # fmt: skip
_CLOSE = ("isclose", "is_close", "allclose")
_LEAVES = frozenset({ast.Constant, ast.Name})
_MAIN_CLASS = "Solution"
"""The class whose method the function under test may be, if the entry point names none."""
UNSAID = "does not say what a call returns"


class UnreadableError(Exception):
    """A condition predicts no value of a call, or none that can be read. The message says why."""


ENTRY_POINT = object()
"""What a name is bound to that is another name of the function under test."""
MODULE = object()
"""What a name is bound to that is a module which may hold the function under test."""
INSTANCE = object()
"""What a name is bound to that is an object of the class whose method is under test."""


@dataclass(eq=False, slots=True)
class Helper:
    """What a name is bound to that is a function or class of the text. A function is followed once: where it is called, or at the end."""

    node: Any
    scope: Names
    """What names stand for around it when it runs."""
    own: Names = field(default_factory=dict)
    """What more names stand for in it: attributes of its class. Of a class, all names in its body."""
    tables: list[list[Names]] = field(default_factory=list)
    """What its parameters stand for, by its defaults and by each table above it."""
    is_followed: bool = False


class Call(NamedTuple):
    """A call of the function under test, or why its arguments cannot be read."""

    arguments: list[Any]
    keywords: dict[str, Any]
    error: str = ""
    stripped: str = ""
    """A method that takes blanks off what a program prints: "strip" or "rstrip"."""


class Prediction(NamedTuple):
    """What a test says."""

    call: Call
    value: Any
    tolerance: Tolerance | None = None
    through: str = ""
    """A type that the test converts what is returned to: "list" for `list(f(x)) == [1]`."""


Say = Callable[[Any, Names], Iterable[Prediction]]
"""Returns what a condition says."""


class Conditions:
    """Reads conditions of one text, see `Statements`."""

    def __init__(self, entry_point: str, meter: LiteralMeter, strict: bool = False) -> None:
        self._strict = strict
        self._prints = not entry_point  # a program: blanks at the ends of an output do not count
        owner, _, self._entry_point = (entry_point or RUN).rpartition(".")
        self._owner = owner or _MAIN_CLASS
        self._meter = meter
        self._volatile: set[str] = set()  # names, and attributes as ".name", bound from elsewhere
        self._in_rounds = False

    def predictions(self, node: ast.expr, names: Names) -> list[Prediction]:
        """Return what a condition says if it holds.

        Raises:
            UnreadableError, NotLiteralError: It says something else. So with the other methods.
        """
        self._meter.work(1)
        rule, left, right = form_of(
            node, lambda f: self._names_library(f, _CLOSE, names) and not self.is_function(f, names)
        )
        if rule == "close" and right is not None:
            return [self.almost(left, right, self._closeness(node, names), names)]
        if right is not None:
            return self._equality(rule, left, right, names)
        call = self.call(left if rule == "false" else node, names)
        if call is not None and self._prints:
            raise UnreadableError("does not say what the program prints")
        return [Prediction(call, rule != "false")] if call else self._more(node, names)

    def _more(self, node: ast.expr, names: Names) -> list[Prediction]:
        """Return what a condition says that is not on the list."""
        match node:
            case ast.BoolOp(op=ast.And()):
                return [each for part in node.values for each in self.predictions(part, names)]
            case ast.Compare(ops=[ast.Lt() | ast.LtE() as less], comparators=[limit]):
                return [self._difference(node.left, limit, names, isinstance(less, ast.Lt))]
            case ast.Compare(ops=[ast.Gt() | ast.GtE() as more], comparators=[difference]):
                return [self._difference(difference, node.left, names, isinstance(more, ast.Gt))]
            case ast.Compare(ops=[ast.NotEq()]):
                raise UnreadableError("says what a call does not return")
            case ast.Compare(ops=[_, _, *_]):
                return self._chain(node, names)
            case ast.Call(args=arguments):
                self._meter.work(len(arguments) + len(node.keywords))
                if self._names_library(node.func, ("all",), names) and len(arguments) == 1:
                    return self._each(arguments[0], names, self.predictions)
        raise UnreadableError(UNSAID)

    def said_by(self, name: str, call: ast.Call, names: Names) -> Iterator[Prediction]:
        """Yield what a call such as `self.assertEqual(f(1), 2)` says; the name is in lower case, without underscores."""
        given = {str(keyword.arg): keyword.value for keyword in call.keywords}
        keys = ("first", "second", "expr", "actual", "desired")
        parts = [*call.args, *(given[key] for key in keys if key in given)]
        match name, parts:
            case _, [one, other, *_] if name in _EQUAL:
                yield self.equal(one, other, names)
            case (("asserttrue" | "assert"), [condition, *_]):
                yield from self.predictions(condition, names)
            case "assertfalse", [part, *_] if found := self.call(part, names):
                yield Prediction(found, False)
            case "assertisnone", [part, *_]:
                yield self.equal(part, ast.Constant(None), names)
            case "assertis", [one, other, *_]:
                yield from self.predictions(ast.Compare(one, [ast.Is()], [other]), names)
            case "assertallclose", [one, other, *_]:
                stated = self.tolerance(call, 2, ("rtol", "atol"), names)
                yield self.almost(one, other, or_else(stated, Tolerance(None, 1e-7)), names)
            case (("assertalmostequal" | "assertalmostequals"), [one, other, *more]):
                if "delta" in given:
                    stated = Tolerance(self.number(given["delta"], names))
                else:
                    places = [*(given[key] for key in ("places", "decimal") if key in given), *more]
                    digits = self.number(places[0], names) if places else 7.0
                    stated = Tolerance(0.5 * 10.0 ** -min(digits, 300.0))
                yield self.almost(one, other, stated, names)
            case _:
                raise UnreadableError(UNSAID)

    def call(self, node: Any, names: Names) -> Call | None:
        """Return the call that an expression is, or None if it is something else."""
        kind = type(node)
        if kind is ast.Call:
            if self._prints and name_of(node.func) in ("strip", "rstrip"):
                return self._stripped(node, names)
            return self._called(node, names) if self.is_function(node.func, names) else None
        if kind is ast.Name:
            bound = names.get(node.id)
            if type(bound) is not Call:
                return None
            if bound.error:
                raise NotLiteralError(bound.error)
            check_unchanged(bound, self._meter)
            return bound
        if kind is not ast.NamedExpr:
            return None
        call = self.call(node.value, names)
        if call is not None:
            if self._in_rounds or node.target.id in self._volatile:
                raise NotLiteralError("a name that is bound in a comprehension, or elsewhere")
            names[node.target.id] = call
        return call

    def _stripped(self, node: ast.Call, names: Names) -> Call | None:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]):
                call = self.call(inner, names)
                return call and call._replace(stripped=max(call.stripped, method))
        return None

    def _called(self, node: ast.Call, names: Names) -> Call:
        self._meter.work(1 + len(node.args) + len(node.keywords))
        arguments: list[Any] = []
        for argument in node.args:
            if type(argument) is ast.Starred:
                arguments += read_items(argument.value, names, self._meter)
            else:
                arguments.append(read(argument, names, self._meter))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = read(keyword.value, names, self._meter)
            given = {keyword.arg: value} if keyword.arg is not None else value
            if type(given) is not dict or any(
                type(name) is not str or name in keywords for name in given
            ):
                raise NotLiteralError("keyword arguments that no call has")
            keywords |= given
        return Call(arguments, keywords)

    def key(self, node: ast.AST) -> str:
        """Return under which key `names` keeps a name or an attribute of a name; "" for others."""
        if type(node) is ast.Name:
            return node.id
        if type(node) is ast.Attribute and type(node.value) is ast.Name:
            self._meter.work((len(node.value.id) + len(node.attr)) // 100)
            return f"{node.value.id}.{node.attr}"
        return ""

    def is_function(self, node: ast.expr, names: Names) -> bool:
        """Whether an expression is the function under test: its name, another name, or `module.name`."""
        if type(node) is ast.Name and node.id not in names:
            return node.id == self._entry_point
        key = self.key(node)
        if key in names:  # whatever it is named
            return names[key] is ENTRY_POINT
        if type(node) is not ast.Attribute:
            return key == self._entry_point
        if node.attr != self._entry_point:
            return False
        home = node.value
        is_home = type(home) is ast.Name and names.get(home.id) is MODULE
        return is_home or self.is_instance(home, names) or self._is_owner(home, names)

    def is_instance(self, node: ast.expr, names: Names) -> bool:
        """Whether an expression is an object of the class under test: `Solution()`, or a name of one."""
        if type(node) is ast.Call:
            return not node.args and not node.keywords and self._is_owner(node.func, names)
        return names.get(self.key(node)) is INSTANCE

    def _is_owner(self, node: ast.expr, names: Names) -> bool:
        if type(node) is ast.Name:
            return node.id == self._owner and node.id not in names
        if type(node) is ast.Attribute and type(node.value) is ast.Name:
            return node.attr == self._owner and names.get(node.value.id) is MODULE
        return False

    def walk(self, node: ast.AST) -> Iterator[Any]:
        """Yield all nodes of a piece of code, which costs work each time."""
        found = [node]
        for each in found:  # which grows; faster than `ast.walk`, without contexts
            self._meter.work(1)
            yield each
            for name in () if type(each) in _LEAVES else each._fields:
                part = getattr(each, name, None)
                if type(part) is list:
                    found += [item for item in part if isinstance(item, ast.AST)]
                elif isinstance(part, ast.AST) and name != "ctx":
                    found.append(part)

    def mentions(self, node: ast.AST, names: Names) -> bool:
        """Whether something is about the function."""
        for each in self.walk(node):
            if self._strict and _asserts(each):
                return True
            if type(each) is ast.Name:
                bound = names.get(each.id)
                if each.id == self._entry_point or bound is ENTRY_POINT or type(bound) is Call:
                    return True
            elif type(each) is ast.Attribute:
                base = each.value.id if type(each.value) is ast.Name else ""
                if each.attr == self._entry_point and base != "self":
                    return True
        return False

    def equal(self, left: ast.expr, right: ast.expr, names: Names) -> Prediction:
        """Return what `left == right` says."""
        call, other = sides(left, right, lambda side: self.call(side, names))
        if call is None:
            return self._converted(left, right, names)
        other, tolerance = self._approximate(other, names)
        return prediction(call, read(_stated(other, names), names, self._meter), tolerance)

    def _approximate(self, node: ast.expr, names: Names) -> tuple[ast.expr, Tolerance | None]:
        """Return the value in `approx(value)`, and its tolerance; what is none as it is."""
        if type(node) is not ast.Call or not self._names_library(node.func, ("approx",), names):
            return node, None
        self._meter.work(len(node.args) + len(node.keywords))
        if not node.args:
            raise UnreadableError("approx without a value")
        stated = self.tolerance(node, 1, ("rel", "abs"), names)
        only = stated.absolute is not None and stated.relative is None
        return node.args[0], stated if only else or_else(stated, Tolerance(1e-12, 1e-6))

    def almost(
        self, left: ast.expr, right: ast.expr, tolerance: Tolerance, names: Names
    ) -> Prediction:
        """Return what it says that two numbers differ by no more than a tolerance."""
        found = self.equal(left, right, names)
        return prediction(found.call, found.value, wider(tolerance, found.tolerance))

    def number(self, node: ast.expr, names: Names) -> float:
        """Return a number that must be one."""
        value = read(node, names, self._meter)
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise UnreadableError("a tolerance that is no number")
        return float(min(value, 1e300))

    def _equality(
        self, rule: Rule, left: ast.expr, right: ast.expr, names: Names
    ) -> list[Prediction]:
        for condition, constant in ((left, right), (right, left)):
            if type(condition) is ast.Compare and getattr(constant, "value", None) is True:
                return self.predictions(condition, names)
        if rule == "==" and (several := self._several(left, right, names)) is not None:
            return several
        found = self.equal(left, right, names)
        if rule == "is" and type(found.value) not in (bool, type(None)):
            raise UnreadableError("compares identity")
        return [found]

    def _chain(self, node: ast.Compare, names: Names) -> list[Prediction]:
        """`f(1) == f(2) == 3`: 3 of both."""
        parts = [node.left, *node.comparators]
        calls = [call for part in parts if (call := self.call(part, names)) is not None]
        if any(type(kind) is not ast.Eq for kind in node.ops) or len(calls) != len(parts) - 1:
            raise UnreadableError("a chain of comparisons predicts no value")
        (other,) = (part for part in parts if self.call(part, names) is None)
        return [Prediction(call, read(other, names, self._meter)) for call in calls]

    def _several(self, left: ast.expr, right: ast.expr, names: Names) -> list[Prediction] | None:
        """`[f(1), f(2)] == [3, 4]`, `[f(n) for n in (1, 2)] == [3, 4]`: each of them."""
        for part, other in ((left, right), (right, left)):
            first = [part.elt] if isinstance(part, ast.ListComp) else getattr(part, "elts", [])[:1]
            if type(part) not in _LISTS or not any(self._calls(each, names) for each in first):
                continue
            found = self._each(part, names, self._as_calls)
            values = read(other, names, self._meter)
            if type(values) not in (list, tuple) or len(values) != len(found):
                raise UnreadableError(UNSAID)
            return [each._replace(value=value) for each, value in zip(found, values, strict=True)]
        return None

    def _calls(self, node: ast.expr, names: Names) -> bool:
        return type(node) is ast.Call and self.is_function(node.func, names)

    def _as_calls(self, node: ast.expr, names: Names) -> list[Prediction]:
        call = self.call(node, names)
        if call is None:
            raise UnreadableError(UNSAID)
        return [Prediction(call, None)]

    def _each(self, node: ast.expr, names: Names, say: Say) -> list[Prediction]:
        if type(node) in (ast.List, ast.Tuple):
            return [each for part in node.elts for each in say(part, names)]  # type: ignore[attr-defined]
        if type(node) not in (ast.GeneratorExp, ast.ListComp):
            raise UnreadableError(UNSAID)
        found: list[Prediction] = []
        self._in_rounds, before = True, self._in_rounds
        try:
            for inner in rounds(node.generators, names, self._meter):  # type: ignore[attr-defined]
                found += say(node.elt, dict(inner))  # type: ignore[attr-defined]
                self._meter.work(1 + len(inner) // 8)
        finally:
            self._in_rounds = before
        return found

    def _difference(
        self, left: ast.expr, right: ast.expr, names: Names, strict: bool
    ) -> Prediction:
        """`abs(f(x) - value) < tolerance`."""
        match left:
            case ast.Call(func=called, args=[ast.BinOp(one, ast.Sub(), other)]):
                if self._names_library(called, ("abs", "fabs", "absolute"), names):
                    tolerance = self.number(right, names)
                    if strict and not tolerance:
                        raise UnreadableError("no difference is less than 0")
                    return self.almost(one, other, Tolerance(absolute=tolerance), names)
        raise UnreadableError(UNSAID)

    def _converted(self, left: ast.expr, right: ast.expr, names: Names) -> Prediction:
        """`list(f(x)) == [1]`: the list; `round(f(x), 2) == value`: the value, give or take half of the last place."""
        for each, other in ((left, right), (right, left)):
            if type(each) is not ast.Call or not each.args or each.keywords:
                continue
            name = name_of(each.func)
            known = name in _CONVERTS and self._names_library(each.func, (name,), names)
            call = self.call(each.args[0], names) if known else None
            if call is None:
                continue
            other, tolerance = self._approximate(other, names)
            value = read(other, names, self._meter)
            if name == "round" and len(each.args) == 2:
                places = read(each.args[1], names, self._meter)
                if type(places) is not int or not 0 <= places <= 300:
                    raise UnreadableError("rounded in a way that cannot be read")
                rounded = Tolerance(absolute=0.5 * 10.0**-places)
                return prediction(call, value, wider(rounded, tolerance))
            is_printed = self._prints and name in ("int", "float")  # as a number, behind blanks
            if len(each.args) == 1 and (
                type(value) is _CONVERTS[name] or (is_printed and type(value) is int)
            ):
                if is_printed:
                    call = call._replace(stripped="strip")
                    tolerance = wider(tolerance, Tolerance(0.0) if name == "float" else None)
                return prediction(call, value, tolerance)._replace(through=name)
        raise UnreadableError(UNSAID)

    def _names_library(self, node: ast.expr, known: tuple[str, ...], names: Names) -> bool:
        """Whether an expression has one of some names, and is nothing that the text defines itself."""
        if name_of(node) not in known or names.get(self.key(node)) is UNKNOWN:
            return False
        while type(node) is ast.Attribute:
            node = node.value
        bound = names.get(node.id, LIBRARY) if type(node) is ast.Name else None
        return bound is LIBRARY or bound is MODULE

    def _closeness(self, node: Any, names: Names) -> Tolerance:
        """Return the tolerance of a call such as `math.isclose(f(1), 0.5, rel_tol=1e-3)`."""
        self._meter.work(len(node.args) + len(node.keywords))
        home = node.func.value if type(node.func) is ast.Attribute else node.func
        is_numpy = name_of(node.func) == "allclose" or getattr(home, "id", "") in ("np", "numpy")
        keys = ("rtol", "atol") if is_numpy else ("rel_tol", "abs_tol")
        default = Tolerance(1e-8, 1e-5) if is_numpy else Tolerance(None, 1e-9)
        return or_else(self.tolerance(node, 2, keys, names), default)

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


def _stated(node: ast.expr, names: Names) -> ast.expr:
    """Return a value without a remark behind it, with which no value would be left: `3 // basic`, `0 (zero)`."""
    match node:
        case ast.UnaryOp(op=sign, operand=ast.Call() as operand):
            return ast.UnaryOp(sign, _stated(operand, names))
        case ast.Call(func=ast.Constant() | ast.List() | ast.Tuple() | ast.Dict() | ast.Set()):
            return node.func
        case ast.BinOp(left=value, op=ast.FloorDiv(), right=ast.Name(id=word)):
            return value if word.islower() and word not in names else node
    return node


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name.startswith("test")
    if isinstance(node, ast.Call):
        return name_of(node.func).lower().startswith(("assert", "raises"))
    return isinstance(node, ast.Assert)


def prediction(call: Call, value: Any, tolerance: Tolerance | None) -> Prediction:
    """Return a prediction, if its tolerance can be one: that of numbers, and small."""
    if tolerance is not None and (reason := unusable(tolerance, value)):
        raise UnreadableError(reason)
    return Prediction(call, value, tolerance)
