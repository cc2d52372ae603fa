"""What the names of a text stand for, as far as statements bind them to literals and calls.

Values are shared as in Python and never changed: of code that is not followed it is noted which containers it may
change, and no value that holds one of them is read again.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import UNKNOWN, LiteralMeter, NotLiteralError, read
from codea1_env.sandbox.inside.analysis.plain import ATOMS, CONTAINERS

from .predictions import ENTRY_POINT, INSTANCE, Call, Conditions, Helper, Names
from .syntax import FUNCTIONS, bound_by, name_of, parameters_of

PURE = frozenset(dir(builtins)) - {
    "delattr", "eval", "exec", "getattr", "next", "setattr", "vars",
}  # fmt: skip
"""Functions of Python that change no argument, and return no method of one."""
_CALLING = frozenset({"filter", "iter", "map", "max", "min", "sorted"})
"""Those of them that call an argument."""
_PURE_METHODS = frozenset({
    "allclose", "approx", "array_equal", "copy", "count", "deepcopy", "encode", "endswith", "fabs", "find", "format",
    "get", "index", "isclose", "isdigit", "issubset", "issuperset", "items", "join", "keys", "lower", "lstrip", "param",
    "replace", "rstrip", "split", "startswith", "strip", "subTest", "title", "union", "upper", "values",
})  # fmt: skip
"""Methods of plain data, and functions of modules, that change neither it nor their arguments."""
_COPYING = frozenset(
    {"copy", "deepcopy", "frozenset", "join", "len", "list", "set", "sorted", "str", "sum", "tuple"}
)
"""Those of both that return none of what they are given, but at most what is in it."""
_REACHING = frozenset({"globals", "locals", "exec", "eval", "setattr", "delattr", "vars", "__dict__"})  # fmt: skip
"""What binds names that no statement shows."""
_PATCH = re.compile(r"\bpatch(?:\.\w+)?\(")
_HOOK = re.compile(r"\bdef\s+(?:async)?(?:set_?up|tear_?down|pytest_|run\()|fixture", re.IGNORECASE)
"""What pytest runs between tests."""
_ASSIGNING = (ast.Assign, ast.AnnAssign)
_MODULES = ("cmath", "math", "np", "numpy")
_CHANGED = (ast.Store, ast.Del)
_MAY_BE_METHODS = (
    Helper,
    ast.Attribute,
    ast.Subscript,
    ast.IfExp,
    ast.BoolOp,
    ast.NamedExpr,
    ast.Starred,
)
_HANDS_OUT = frozenset({ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Lambda})
"""With these, whoever calls a function may change what it mentions."""


class Bindings(Conditions):
    """Binds names, and notes what code that is not followed may bind or change."""

    def __init__(self, entry_point: str, meter: LiteralMeter, strict: bool) -> None:
        super().__init__(entry_point, meter, strict)
        self._names: Names = {}
        self._methods: set[str] = set()  # also classes that others extend
        self._reaches_all = self._has_hooks = False
        self._escaped: dict[int, Any] = {}  # containers that an unknown value may hold
        self._unseen: list[ast.Module] = []
        self._touched: set[str] = set()  # names in functions that change something, but tests
        self._tested: set[str] = set()  # names in such tests

    def _look_over(self, body: list[ast.stmt], text: str) -> None:
        """Note which names are bound in other places than where a reader of statements meets them."""
        whole = ast.Module(body, [])
        self._unseen.append(whole)
        self._has_hooks |= _HOOK.search(text) is not None
        self._reaches_all |= _PATCH.search(text) is not None
        for each in self.walk(whole):
            kind = type(each)
            if kind in (ast.Global, ast.Nonlocal):
                self._volatile.update(each.names)
            elif kind in FUNCTIONS:
                self._methods.add(each.name)
            elif kind is ast.ClassDef:
                self._methods.update(map(self.key, each.bases))
                own = [
                    part for it in each.body if isinstance(it, _ASSIGNING) for part in self.walk(it)
                ]
                self._methods.update(name for part in own for name in bound_by(part))
            elif kind is ast.keyword:  # SimpleNamespace(get=...)
                self._methods.add(each.arg or "")
            elif kind in (ast.Name, ast.Attribute):
                self._reaches_all |= name_of(each) in _REACHING
                if kind is ast.Attribute and isinstance(each.ctx, _CHANGED):
                    is_own = name_of(each.value) in ("self", "cls")
                    self._volatile |= {f".{each.attr}"} if is_own else {f".{each.attr}", each.attr}
        if self._reaches_all:
            self._volatile.update(_MODULES)
        attributes = [name for name in self._volatile if name[:1] == "."]
        unknown = {home + name for home in (*_MODULES, "pytest", "self") for name in attributes}
        self._names |= dict.fromkeys(unknown | self._volatile, UNKNOWN)

    def _assign(self, node: Any, names: Names) -> None:
        if node.value is None:
            return
        value = self._value(node.value, names)
        for target in node.targets if type(node) is ast.Assign else [node.target]:
            self._bind(target, value, names)

    def _value(self, node: ast.expr, names: Names) -> Any:
        if self.is_function(node, names):
            return ENTRY_POINT
        if self.is_instance(node, names):
            return INSTANCE
        if type(node) is ast.Name:  # the same object under another name
            return names.get(node.id, UNKNOWN)
        try:
            call = self.call(node, names)
        except NotLiteralError as error:
            self._forget(node, names, kept=True)
            # It may return what its arguments hold.
            held = [names[key] for each in self.walk(node) if (key := self.key(each)) in names]
            return Call(held, {}, str(error))
        if call is not None:
            return call
        try:
            return read(node, names, self._meter)
        except NotLiteralError:
            if type(node) is ast.Tuple:  # a, b = f(1), 2
                return tuple([self._value(each, names) for each in node.elts])
            self._forget(node, names, kept=True)
            return UNKNOWN

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        if type(target) is ast.Name:
            is_sure = not self._reaches_all and target.id not in self._volatile
            names[target.id] = value if is_sure else UNKNOWN
            if is_sure:
                return
        elif type(target) in (ast.Tuple, ast.List):
            parts = target.elts  # type: ignore[attr-defined]
            self._meter.work(len(parts))
            fits = type(value) in (list, tuple, str) and len(value) == len(parts)
            fits = fits and not any(type(part) is ast.Starred for part in parts)
            items = list(value) if fits else [UNKNOWN] * len(parts)
            for part, item in zip(parts, items, strict=True):
                self._bind(part, item, names)
            if fits:
                return
        else:
            self._forget(target, names)
        self._escaped.update(self._parts([value]))

    def _augmented(self, node: Any, names: Names) -> None:
        before = names.get(self.key(node.target))
        try:
            value = read(ast.BinOp(node.target, node.op, node.value), names, self._meter)
        except NotLiteralError:
            self._forget(node, names, kept=True)
            return
        self._bind(node.target, value, names)
        if type(before) in (list, dict, set):
            self._meter.changed[id(before)] = before

    # Code that is not followed

    def _forget(self, node: ast.AST, names: Names, kept: bool = False) -> None:
        """Forget the names that a piece of code may bind, and the containers that it may change.

        It is taken to change all that it mentions, if anything. Where it may run functions of the text, or has hold of
        something unknown, it changes what those mention, or what that may hold. `kept`: its value is bound.
        """
        if type(node) is ast.Compare:  # what stands beside a call is not given to it
            for part in (node.left, *node.comparators):
                self._forget(part, names, kept)
            return
        changes = False
        bound: list[str] = []
        seen: list[Any] = []
        copied: set[int] = set()  # nodes of which only what is in them can be changed
        for each in self.walk(node):
            changes = changes or self._changes(each, names)
            if type(each) is ast.Call and self._copies(each.func, names):
                copied.update(map(id, [*each.args, getattr(each.func, "value", None)]))
            key = self.key(each)
            if key in names:
                value = names[key]
                is_copied = id(each) in copied and type(value) in CONTAINERS
                seen += items_of(value) if is_copied else [value]
            bound += bound_by(each)
        if changes:
            self._change(seen, names)
        elif kept or bound:
            self._escaped.update(self._parts(seen))
        names.update(dict.fromkeys(bound, UNKNOWN))

    def _copies(self, function: ast.expr, names: Names) -> bool:
        """Whether a function returns none of what it is given, but at most what is in it."""
        is_own = name_of(function) in self._methods or self.key(function) in names
        return name_of(function) in _COPYING and not is_own

    def _change(self, seen: list[Any], names: Names) -> None:
        changed = self._meter.changed
        if any(x is UNKNOWN or type(x) is Helper or id(x) in changed for x in seen):
            self._look_into_functions()
            touched = self._touched | self._tested
            self._meter.work(len(touched))
            for scope in (names, self._names):
                seen += [scope[name] for name in touched if name in scope]
            changed.update(self._escaped)
            self._escaped.clear()
        changed.update(self._parts(seen))

    def _look_into_functions(self) -> None:
        for each in [part for whole in self._unseen for part in self.walk(whole)]:
            if type(each) in (*FUNCTIONS, ast.Lambda):
                inner = list(self.walk(each))
                if any(type(it) in _HANDS_OUT or self._changes(it, self._names) for it in inner):
                    is_test = getattr(each, "name", "").startswith("test")
                    touched = self._tested if is_test else self._touched
                    touched.update({*map(self.key, inner)}.difference(parameters_of(each)))
        self._unseen = []

    def _changes(self, node: Any, names: Names) -> bool:
        """Whether a node, without what is in it, may change an object."""
        kind = type(node)
        if kind is ast.Call:
            return not (self.is_instance(node, names) or self._is_pure(node, names))
        if kind is ast.Attribute or kind is ast.Subscript:
            return isinstance(node.ctx, _CHANGED)
        if kind is not ast.AugAssign:
            return False
        # With a whole number only a product changes a list.
        return type(node.op) is ast.Mult or type(getattr(node.value, "value", None)) is not int

    def _is_pure(self, node: ast.Call, names: Names) -> bool:
        function = node.func
        if self.is_function(function, names):
            return True
        if type(function) is ast.Attribute:
            name = function.attr
            is_known = name in _PURE_METHODS or name.lower().startswith("assert")
            return (is_known or name == self._entry_point) and name not in self._methods
        if type(function) is not ast.Name or function.id in names or function.id not in PURE:
            return False
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return function.id not in _CALLING or not any(self._may_run(each, names) for each in given)

    def _may_run(self, node: ast.expr, names: Names) -> bool:
        """Whether an argument may be a function that changes something."""
        value = names.get(self.key(node), node)
        return value is UNKNOWN or type(value) in _MAY_BE_METHODS

    def _parts(self, values: Iterable[Any]) -> dict[int, Any]:
        """Return the containers in values that can be changed, and the calls whose results can."""
        found: dict[int, Any] = {}
        left = list(values)
        while left:
            value = left.pop()
            kind = type(value)
            if kind in (list, dict, set, Call):
                if id(value) in found:
                    continue
                found[id(value)] = value
            if kind is Call:
                left += [*value.arguments, *value.keywords.values()]
            elif kind in (list, dict, tuple):
                self._meter.work(1 + len(value))
                left += items_of(value)
        return found


def items_of(value: Any) -> list[Any]:
    """Return the items of a container, without those that nobody can change."""
    items = value.values() if type(value) is dict else value
    return [item for item in items if type(item) not in ATOMS]
