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
from .functions import (
    are_skipped,
    arguments_of,
    called_or_named,
    ends,
    fails,
    is_main,
    is_skipped,
    is_table,
    marks_of,
    parameters_of,
    rows_of,
)
from .predictions import ENTRY_POINT, MODULE, Helper, Names, Prediction, UnreadableError

MAX_DROPPED = 256
_MAX_NAME = 80
_MAX_DEPTH = 4
_FIXTURES = frozenset({list, tuple, dict, set, int, float, str, bool})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SETUP = ("setUpClass", "setup_class", "setUp", "setup_method", "setup", "__init__")
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
        self._fixtures: set[str] = set()
        self._add = add
        self._drop = drop
        self._strict = strict
        self._steps = self._tests = 0
        self._told = 0  # assertions about the function, read or not
        self._outer: list[ast.expr] = []  # tables above the class that is followed
        self._names: Names = {}
        self._text = ""
        self._reported: set[int] = set()
        self._helpers: dict[int, tuple[Helper, Names]] = {}  # those that were not called yet
        self._depth = 0

    def run(self, body: list[ast.stmt], text: str) -> None:
        """Follow the statements of a text; names keep their values from one text to the next."""
        self._text, self._reported = text, set()
        # Other characters may make the same name: Python normalizes names.
        marks = marks_of(body) if "pytestmark" in text or not text.isascii() else []
        if not are_skipped(marks, self._names, self._meter):
            self._body(body, self._names)

    def finish(self) -> None:
        """Follow the functions with parameters that nothing called, when all texts were."""
        for helper, names in list(self._helpers.values()):
            self._text = helper.text
            self._enter(helper.node, names)

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
        helper = names.get(self._conditions.key(call.func))
        if type(helper) is Helper:
            self._called_helper(call, helper, names)
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
            if fails(node.body):
                self._assertion(node, node.test, names, self._conditions.denials)
                return self._body(node.orelse, names)
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
        if node.name == self._entry_point and names is self._names:
            return  # the program is repeated: what it asserts is no test
        names[node.name] = UNKNOWN
        if node.name == self._entry_point:
            return
        if any(called_or_named(each) == "fixture" for each in node.decorator_list):
            names[node.name] = self._returned(node, names)
            self._fixtures.add(node.name)
            return
        # As HumanEval writes its tests: `check` is called with the function.
        is_check = node.name == "check" and "candidate" in parameters_of(node)
        if self._is_helper(node, names) and not is_check:
            self._keep_helper(node, names, node.name)
        elif is_check or node.name in _SETUP or self._conditions.mentions(node, names):
            self._enter(node, names)

    def _keep_helper(self, node: Any, names: Names, *keys: str) -> None:
        helper = Helper(node, self._text, self._conditions.mentions(node, names))
        names.update(dict.fromkeys(keys, helper))
        if helper.is_about:
            self._helpers[id(node)] = helper, names

    def _is_helper(self, node: Any, names: Names) -> bool:
        """Whether a function is no test, but one that tests call with arguments."""
        given = all(self._is_given(each, names) for each in parameters_of(node))
        is_table = bool(node.decorator_list or (self._outer and node.name.startswith("test")))
        return not (given or node.name in _SETUP or is_table)

    def _is_given(self, name: str, names: Names) -> bool:
        return type(names.get(name)) in _FIXTURES or name in self._fixtures

    def _returned(self, node: Any, names: Names) -> Any:
        last = node.body[-1]
        value = last.value if type(last) in (ast.Return, ast.Expr) else None
        value = value.value if type(value) is ast.Yield else value
        return UNKNOWN if value is None or len(node.body) > 2 else self._value(value, names)

    def _called_helper(self, call: ast.Call, helper: Helper, names: Names) -> None:
        given = arguments_of(
            call, helper.node, names, self._meter, lambda node: self._value(node, names)
        )
        if given is None or self._depth >= _MAX_DEPTH:
            self._unreadable(helper.node, call, names, "is called in a way that cannot be read")
            self._forget(call, names)
            return
        self._helpers.pop(id(helper.node), None)
        inner = {**names, **given}
        self._meter.work(self._size(names) + len(given))
        before, self._text = self._text, helper.text
        self._depth += 1
        self._body(helper.node.body, inner)
        self._depth -= 1
        self._text = before
        for name, value in given.items():
            if inner[name] is not value:  # it may have been changed
                self._forget_object(value, names)

    def _enter(self, node: Any, names: Names) -> None:
        if is_skipped(node, names, self._meter):
            return
        before = self._told
        parameters = parameters_of(node)
        for row in rows_of(node, names, self._meter, self._outer):
            self._meter.work(len(row) + self._size(names) + len(parameters))
            inner = dict(names)
            for name in parameters:
                if name == "candidate" and node.name == "check":
                    inner[name] = ENTRY_POINT
                elif not self._is_given(name, names):
                    inner[name] = UNKNOWN
            inner.update(row)
            self._body(node.body, inner)
        if self._strict and self._told == before and node.name.startswith("test"):
            self._say(node, "asserts nothing")

    def _class(self, node: Any, names: Names) -> None:
        if node.name in (self._entry_point, self._owner) and names is self._names:
            return  # the program is repeated
        is_other = node.name == self._entry_point or is_skipped(node, names, self._meter)
        if is_other or not self._conditions.mentions(node, names):
            names[node.name] = UNKNOWN
            return
        methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
        inner = self._in_class(node, methods, names)
        left = (*_SETUP, self._entry_point)
        tests = [each for each in methods if each.name not in left]
        before, self._outer = self._outer, list(filter(is_table, node.decorator_list))
        for method in tests:
            if self._is_helper(method, inner):
                self._keep_helper(method, inner, f"self.{method.name}", f"cls.{method.name}")
        for method in tests:
            if not self._is_helper(method, inner):
                self._enter(method, inner)
        self._outer = before

    def _in_class(self, node: Any, methods: list[Any], names: Names) -> Names:
        """Return what names stand for in a class, when it was set up."""
        self._meter.work(4 * self._size(names))
        inner = dict(names)
        self._body([each for each in node.body if not isinstance(each, _FUNCTIONS)], inner)
        for name in inner.keys() - names.keys():
            self._meter.work(1 + len(name) // 100)
            for owner in ("self", node.name, "cls"):
                inner[f"{owner}.{name}"] = inner[name]
        for method in methods:
            if method.name in _SETUP:
                self._body(method.body, inner)
                self._meter.work(self._size(inner))
                for name in [each for each in inner if each.startswith("cls.")]:
                    inner.setdefault(f"self.{name[4:]}", inner[name])
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
