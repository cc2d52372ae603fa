"""The statements of a tester's text, followed as far as they deal in literals."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.literals import (
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)
from codea1_env.sandbox.inside.analysis.plain import MAX_WORK

from .bindings import PURE, Bindings, said_by
from .functions import called_or_named, ends, is_main, is_table, parameters_of, rows_of
from .predictions import ENTRY_POINT, HELPER, MODULE, Names, Prediction, UnreadableError

MAX_DROPPED = 256
_MAX_NAME = 80
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_RAISES = frozenset({
    "raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "warns", "assertWarns", "deprecated_call",
    "assert_raises", "suppress",
})  # fmt: skip
_RAISING = "says that a call raises"
_MATHS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793, "e": 2.718281828459045}

Say = Callable[[Any, Names], Iterable[Prediction]]


class Bounds(NamedTuple):
    """What reading one text may cost."""

    items: int
    """See `LiteralMeter`."""
    work: int
    tests: int
    steps: int
    """Statements that are followed, those in loops as often as they run."""


ANSWER = Bounds(items=60_000, work=MAX_WORK, tests=64, steps=5_000)
"""Of a model's answer."""


class Enough(Exception):  # noqa: N818 - no error: what was read stays
    """A bound is reached."""


class Statements(Bindings):
    """Follows statements, and reports predictions.

    Args:
        entry_point: The function under test: `f`, or `Solution.f` for a method of a new instance.
        add: Called with each prediction. It may raise `NotLiteralError`.
        drop: Called with fault, reason, text, and whether it counts as invalid.
        bounds: What reading may cost.
        strict: Whether to report each assertion that is not read, also those that do not mention the function.
    """

    def __init__(
        self,
        entry_point: str,
        add: Callable[[Prediction], None],
        drop: Callable[[str, str, str, bool], None],
        bounds: Bounds = ANSWER,
        strict: bool = False,
    ) -> None:
        meter = LiteralMeter(bounds.items, work=bounds.work, loops=True)
        super().__init__(entry_point, meter, strict)
        self._bounds = bounds
        self._entry_point = self._conditions.entry_point
        self._owner = self._conditions.owner
        self._add = add
        self._drop = drop
        self._strict = strict
        self._steps = self._tests = 0
        self._told = 0  # assertions about the function, read or not
        self._outer: list[ast.expr] = []  # tables above the class that is followed
        self._names: Names = {}
        self._text = ""
        self._reported: set[int] = set()

    def run(self, body: list[ast.stmt], text: str) -> None:
        """Follow the statements of a text; names keep their values from one text to the next."""
        self._text, self._reported = text, set()
        self._body(body, self._names)

    def _body(self, body: list[ast.stmt], names: Names) -> bool:
        """Follow a block, and return whether what stands behind it does not run either."""
        for node in body:
            self._steps += 1
            if self._steps > self._bounds.steps:
                raise Enough(f"more than {self._bounds.steps} statements")
            if type(node) is ast.Assert:
                self._meter.work(1)
                self._assertion(node, node.test, names, self._conditions.predictions)
                continue
            parts = vars(node).values()
            self._meter.work(1 + sum([len(part) for part in parts if type(part) is list]))
            if ends(node):
                return True
            follow = _FOLLOW.get(type(node))
            if follow is not None and follow(self, node, names):
                return True
        return False

    # Conditions

    def _assertion(self, node: ast.stmt, part: ast.expr, names: Names, say: Say) -> None:
        try:
            found = list(say(part, names))
        except (UnreadableError, NotLiteralError) as error:
            self._unreadable(node, node if self._strict else part, names, str(error))
            self._forget(part, names)  # one that was read calls nothing that changes a value
            return
        for each in found:
            self._told += 1
            self._tests += 1
            if self._tests > self._bounds.tests:
                raise Enough(f"more than {self._bounds.tests} tests")
            try:
                self._add(each)
            except NotLiteralError as error:
                self._say(node, str(error))

    def _unreadable(self, node: ast.stmt, part: ast.AST, names: Names, reason: str) -> None:
        if id(node) not in self._reported and self._conditions.mentions(part, names):
            self._told += 1
            self._say(node, reason)

    def _say(self, node: ast.stmt, reason: str) -> None:
        """Drop a statement, once however often it runs."""
        if id(node) not in self._reported:
            self._reported.add(id(node))
            lines = _lines_of(self._text)[node.lineno - 1 : node.end_lineno]
            self._drop("unreadable", reason, "\n".join(lines)[:1000], True)

    # Statements

    def _expression(self, node: Any, names: Names) -> None:
        call = node.value
        if type(call) is not ast.Call:
            return
        self._meter.work(len(call.args) + len(call.keywords))
        if names.get(self._conditions.key(call.func)) is HELPER:
            self._unreadable(node, call, names, "calls a function that is not followed")
            self._forget(call, names)
            return
        name = called_or_named(call)[:_MAX_NAME]
        plain = name.replace("_", "").lower()
        if plain.startswith("assert") or plain == "eq":
            self._assertion(
                node, call, names, lambda *given: said_by(self._conditions, plain, *given)
            )
        elif name in _RAISES:
            self._unreadable(node, call, names, _RAISING)
        else:
            self._forget(call, names)

    def _for(self, node: Any, names: Names) -> None:
        if not self._conditions.mentions(node, names):
            self._forget(node, names)
            return
        inside = {type(each) for each in self._conditions.walk(node)}
        try:
            if not inside.isdisjoint((ast.Break, ast.Continue)):
                raise NotLiteralError("which rounds there are is not known")
            items = read_items(node.iter, names, self._meter)
        except NotLiteralError:
            self._forget(node, names)
            self._body(node.body, names)
        else:
            for item in items:
                self._bind(node.target, item, names)
                self._body(node.body, names)
        self._body(node.orelse, names)

    def _while(self, node: Any, names: Names) -> None:
        self._forget(node, names)
        self._unreadable(node, node, names, "in a loop whose end cannot be read")

    def _if(self, node: Any, names: Names) -> bool:
        if is_main(node.test):
            self._body(node.body, names)
            return False
        try:
            branch = node.body if read(node.test, names, self._meter) else node.orelse
        except NotLiteralError:
            self._forget(node, names)
            self._unreadable(node, node, names, "under a condition that cannot be read")
            return False
        return self._body(branch, names)

    def _with(self, node: Any, names: Names) -> bool:
        for item in node.items:
            call = item.context_expr
            if type(call) is ast.Call and called_or_named(call) in _RAISES:
                self._unreadable(node, node, names, _RAISING)
                return False
            if item.optional_vars is not None:
                self._forget(item.optional_vars, names)
        return self._body(node.body, names)

    def _try(self, node: Any, names: Names) -> None:
        # Whoever catches what an assertion raises has said it all the same.
        self._body(node.body, names)
        for handler in node.handlers:
            self._forget(handler, names)
        self._body([*node.orelse, *node.finalbody], names)

    def _import(self, node: Any, names: Names) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if type(node) is ast.Import:
                if alias.name == self._entry_point:
                    continue  # a file that is named like the function
                is_library = alias.name.partition(".")[0] in sys.stdlib_module_names
                names[name] = UNKNOWN if is_library else MODULE
            elif alias.name == self._entry_point:
                names[name] = ENTRY_POINT
            elif alias.name == self._owner and name == self._owner:
                names.pop(name, None)
            elif node.module == "math" and alias.name in _MATHS:
                names[name] = _MATHS[alias.name]
            elif alias.name not in PURE:
                names[name] = UNKNOWN

    def _other(self, node: ast.stmt, names: Names) -> None:
        self._forget(node, names)
        self._unreadable(node, node, names, "in a statement that cannot be read")

    # Functions

    def _function(self, node: Any, names: Names) -> None:
        is_check = self._is_check(node)
        if node.name == self._entry_point and names is self._names and not is_check:
            return  # the program is repeated: what it asserts is no test
        names[node.name] = UNKNOWN if is_check else HELPER
        if node.name == self._entry_point and not is_check:
            return
        if is_check or self._conditions.mentions(node, names):
            self._enter(node, names)

    def _is_check(self, node: Any) -> bool:
        """Whether a function holds tests as HumanEval writes them: it is called with the function under test.

        In data files its parameter may have the name of that function, which may be `check` itself.
        """
        parameter = ["candidate"], [self._entry_point]
        return (
            node.name.startswith("check") and parameters_of(node) in parameter[: 1 + self._strict]
        )

    def _enter(self, node: Any, names: Names) -> None:
        if self._is_marked(node):
            return
        before = self._told
        parameters = parameters_of(node)
        for row in rows_of(node, names, self._meter, self._outer):
            self._meter.work(len(row) + self._size(names) + len(parameters))
            inner = dict(names)
            inner.update(dict.fromkeys(parameters, UNKNOWN))
            if self._is_check(node):
                inner[parameters[0]] = ENTRY_POINT
            inner.update(row)
            self._body(node.body, inner)
        if self._strict and self._told == before and node.name.startswith("test"):
            self._say(node, "asserts nothing")

    def _is_marked(self, node: Any) -> bool:
        """Whether a test of a data file has a decorator that may say that it does not run, or is to fail."""
        is_marked = self._strict and not all(map(is_table, node.decorator_list))
        if is_marked:
            self._say(node, "has a decorator that is not read")
        return is_marked

    def _class(self, node: Any, names: Names) -> None:
        if node.name in (self._entry_point, self._owner) and names is self._names:
            return  # the program is repeated
        if node.name == self._entry_point or not self._conditions.mentions(node, names):
            names[node.name] = UNKNOWN
            return
        if self._is_marked(node):
            return
        methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
        inner = self._in_class(node, names)
        before, self._outer = self._outer, list(filter(is_table, node.decorator_list))
        for method in methods:
            if method.name != self._entry_point:
                self._enter(method, inner)
        self._outer = before

    def _in_class(self, node: Any, names: Names) -> Names:
        """Return what names stand for in a class."""
        self._meter.work(4 * self._size(names))
        inner = dict(names)
        self._body([each for each in node.body if not isinstance(each, _FUNCTIONS)], inner)
        for name in inner.keys() - names.keys():
            self._meter.work(1 + len(name) // 100)
            for owner in ("self", node.name, "cls"):
                inner[f"{owner}.{name}"] = inner[name]
        return inner


@functools.lru_cache(maxsize=4)
def _lines_of(text: str) -> list[str]:
    return text.split("\n")


_FOLLOW: dict[type, Callable[[Statements, Any, Names], bool | None]] = {
    ast.Assign: Statements._assign, ast.AnnAssign: Statements._assign, ast.AugAssign: Statements._augmented,
    ast.Expr: Statements._expression, ast.For: Statements._for, ast.While: Statements._while,
    ast.If: Statements._if, ast.With: Statements._with, ast.AsyncWith: Statements._with, ast.Try: Statements._try,
    ast.Import: Statements._import, ast.ImportFrom: Statements._import, ast.FunctionDef: Statements._function,
    ast.AsyncFunctionDef: Statements._function, ast.ClassDef: Statements._class, ast.Delete: Statements._forget,
    ast.Match: Statements._other, ast.AsyncFor: Statements._other, ast.TryStar: Statements._other,
}  # fmt: skip
