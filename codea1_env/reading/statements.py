"""The statements of a tester's text, followed as far as they deal in literals."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from codea1_env.sandbox.inside.analysis.literals import (
    LIBRARY,
    UNKNOWN,
    LiteralMeter,
    NotLiteralError,
    read,
    read_items,
)
from codea1_env.sandbox.inside.analysis.plain import MAX_WORK

from .bindings import PURE, Bindings
from .functions import (
    Leaves,
    called_or_named,
    defaults_of,
    ends,
    is_main,
    is_table,
    may_end,
    rows_of,
    table_of,
)
from .predictions import ENTRY_POINT, MODULE, Helper, Names, Prediction, Say, UnreadableError
from .syntax import FUNCTIONS, bound_by, parameters_of

MAX_DROPPED = 256
_MAX_NAME = 80
_RAISES = frozenset({
    "raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp", "warns", "assertWarns", "deprecated_call",
    "assert_raises", "suppress",
})  # fmt: skip
_RAISING = "says that a call raises"
_LEFT_OUT = "pytest may leave it out or replace it"
_YIELDS = (ast.Yield, ast.YieldFrom)
_INNER_SCOPES = frozenset({ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
_REPLACING = (PURE - {"classmethod", "staticmethod"}) | {
    "getattr", "skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure",
}  # fmt: skip
_MARKS = frozenset({"pytestmark", "__test__"})
_NUMERIC = frozenset({"builtins", "cmath", "math", "numpy"})
_LIBRARIES = sys.stdlib_module_names | {"numpy", "pytest"}
_MATHS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793, "e": 2.718281828459045}


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
    """Follows statements as Python runs them, and reports predictions.

    A function of the text is followed once, with what names stand for then: where it is called without arguments, or
    behind the statements of the text, where pytest runs it. Functions within functions run only where they are called.

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
        self._add = add
        self._drop = drop
        self._steps = self._tests = 0
        self._told = 0  # assertions about the function, read or not
        self._waiting: list[Helper] = []
        self._is_blind = False  # whether what is followed may never run
        self._lines: list[str] = []  # of the text
        self._reported: set[int] = set()

    def run(self, body: list[ast.stmt], text: str) -> None:
        """Follow the statements of a text; names keep their values from one text to the next."""
        self._lines, self._reported = text.split("\n"), set()
        self._waiting = []
        self._look_over(body, text)
        self._body(body, self._names)
        for helper in sorted(self._waiting, key=lambda each: not each.node.name.startswith("test")):
            if self._has_hooks:
                self._look_into_functions()
                self._meter.work(len(self._touched))
                for names in (helper.scope, helper.own):
                    touched = [names[name] for name in self._touched if name in names]
                    self._meter.changed.update(self._parts(touched))
            home = helper.own.get("self", helper)
            names = home.own or helper.scope
            is_last = helper.scope.get(home.node.name) is home and names[helper.node.name] is helper
            if is_last and not any(each in names or each in helper.scope for each in _MARKS):
                self._enter(helper)
            elif not helper.is_followed:
                self._unreadable(helper.node, helper.node, helper.scope, _LEFT_OUT)

    def _body(self, body: list[ast.stmt], names: Names) -> Leaves | None:
        """Follow a block, and return how it ends before its end."""
        for node in body:
            self._steps += 1
            if self._steps > self._bounds.steps:
                raise Enough(f"more than {self._bounds.steps} statements")
            if type(node) is ast.Assert:
                self._meter.work(1)
                self._assertion(node, node.test, names, self.predictions)
                continue
            parts = vars(node).values()
            self._meter.work(1 + sum([len(part) for part in parts if type(part) is list]))
            if leaves := ends(node):
                self._forget(node, names)
                return leaves
            follow = _FOLLOW.get(type(node))
            if follow is not None and (leaves := follow(self, node, names)):
                return leaves
        return None

    # Conditions

    def _assertion(self, node: ast.stmt, part: ast.expr, names: Names, say: Say) -> None:
        try:
            found = list(say(part, names))
            if self._is_blind and found:
                raise UnreadableError("may never run")
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
        if id(node) not in self._reported and self.mentions(part, names):
            self._told += 1
            self._say(node, reason)

    def _say(self, node: ast.stmt, reason: str) -> None:
        """Drop a statement, once however often it runs."""
        if id(node) not in self._reported:
            self._reported.add(id(node))
            lines = self._lines[node.lineno - 1 : node.end_lineno]
            self._drop("unreadable", reason, "\n".join(lines)[:1000], True)

    # Statements

    def _expression(self, node: Any, names: Names) -> None:
        call = node.value
        if type(call) is ast.Constant:
            return
        if type(call) is not ast.Call:
            self._forget(call, names)
            return
        self._meter.work(len(call.args) + len(call.keywords))
        bound = names.get(self.key(call.func), LIBRARY)
        name = called_or_named(call)[:_MAX_NAME]
        plain = name.replace("_", "").lower()
        if type(bound) is Helper and isinstance(bound.node, FUNCTIONS):
            self._helper(node, bound, names)
        elif bound is LIBRARY and (plain.startswith("assert") or name == "eq_"):
            known = "" if name in self._methods else plain
            self._assertion(node, call, names, functools.partial(self.said_by, known))
        elif name in _RAISES:
            self._unreadable(node, call, names, _RAISING)
        else:
            self._forget(call, names)

    def _helper(self, node: Any, helper: Helper, names: Names) -> None:
        """Follow a call of a function of the text, or note what it may change."""
        call = node.value
        is_check = self._is_check(helper.node)
        if is_check and any(self._is_own(each, names) for each in call.args):
            is_check, helper.is_followed = False, True  # it is no check of the function under test
        is_known = is_check or not (call.args or call.keywords)
        if not is_known:
            self._unreadable(node, call, names, "calls a function that is not followed")
        runs = is_known and not helper.is_followed and not self._is_blind
        if runs and (is_check or self.mentions(helper.node, names)):
            self._enter(helper)
        else:
            self._forget(call, names)

    def _is_own(self, node: ast.expr, names: Names) -> bool:
        """Whether it is a function of the text."""
        return type(node) is ast.Lambda or type(names.get(self.key(node))) is Helper

    def _for(self, node: Any, names: Names) -> Leaves | None:
        if not self.mentions(node, names):
            return self._unfollowed(node, names)
        is_display = type(node.iter) in (ast.List, ast.Tuple)
        parts = () if is_display else self.walk(node.iter)
        sources = [names.get(self.key(part)) for part in parts]
        try:
            items = read_items(node.iter, names, self._meter)
        except NotLiteralError:
            self._blindly([*node.body, *node.orelse], node, names)
            return may_end(node, self._meter)
        for item in items:
            self._bind(node.target, item, names)
            leaves = self._body(node.body, names)
            if leaves is Leaves.BREAK:
                return None
            if leaves in (Leaves.RETURN, Leaves.RAISE):
                return leaves
            if leaves is Leaves.UNSURE or any(id(each) in self._meter.changed for each in sources):
                self._blindly(node.orelse, node, names)
                return None
        return self._body(node.orelse, names)

    def _blindly(self, body: list[ast.stmt], node: ast.stmt, names: Names) -> None:
        """Follow a part of a statement that may never run: nothing that it asserts is a test."""
        self._forget(node, names)
        before, self._is_blind = self._is_blind, True
        try:
            self._body(body, names)
        finally:
            self._is_blind = before

    def _unfollowed(self, node: ast.stmt, names: Names, reason: str = "") -> Leaves | None:
        self._forget(node, names)
        if reason:
            self._unreadable(node, node, names, reason)
        return may_end(node, self._meter)

    def _if(self, node: Any, names: Names) -> Leaves | None:
        if is_main(node.test):
            leaves = self._body(node.body, names)
            self._forget(node, names)  # pytest does not run it
            return leaves
        try:
            branch = node.body if read(node.test, names, self._meter) else node.orelse
        except NotLiteralError:
            return self._unfollowed(node, names, "under a condition that cannot be read")
        return self._body(branch, names)

    def _with(self, node: Any, names: Names) -> Leaves | None:
        for item in node.items:
            call = item.context_expr
            if type(call) is ast.Call and called_or_named(call) in _RAISES:
                return self._unfollowed(node, names, _RAISING)
            self._forget(item, names, kept=True)
        return self._body(node.body, names)

    def _try(self, node: Any, names: Names) -> Leaves | None:
        # Whoever catches what an assertion raises has said it all the same.
        leaves = self._body(node.body, names)
        for handler in node.handlers:
            self._forget(handler, names)
        if leaves is None:
            leaves = self._body(node.orelse, names)
        elif leaves is Leaves.RAISE and node.handlers:
            leaves = next(filter(None, [may_end(it, self._meter) for it in node.handlers]), None)
        return self._body(node.finalbody, names) or leaves

    def _import(self, node: Any, names: Names) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if name in self._volatile:
                names[name] = UNKNOWN
            elif name == "*":
                self._meter.work(len(names))
                known = (LIBRARY, MODULE, ENTRY_POINT)
                names |= {each: UNKNOWN for each, value in names.items() if value not in known}
                names |= dict.fromkeys(PURE if node.module == "numpy" else (), UNKNOWN)
            elif type(node) is ast.Import:
                if alias.name == self._entry_point:
                    continue  # a file that is named like the function
                is_library = alias.name.partition(".")[0] in _LIBRARIES
                names[name] = LIBRARY if is_library else MODULE
            elif alias.name == self._entry_point:
                names[name] = ENTRY_POINT
            elif alias.name == self._owner and name == self._owner:
                names.pop(name, None)
            elif node.module == "math" and alias.name in _MATHS:
                self._bind(ast.Name(name, ast.Store()), _MATHS[alias.name], names)
            elif alias.asname or alias.name not in PURE or node.module not in _NUMERIC:
                names[name] = LIBRARY

    def _other(self, node: ast.stmt, names: Names) -> Leaves | None:
        return self._unfollowed(node, names, "in a statement that cannot be read")

    # Functions

    def _function(self, node: Any, names: Names) -> None:
        is_check = self._is_check(node)
        if node.name == self._entry_point and names is self._names and not is_check:
            return  # the program is repeated: what it asserts is no test
        helper = Helper(node, names)
        self._define(helper, names)
        is_known = is_check or node.name != self._entry_point
        names[node.name] = helper if is_known and node.name not in self._volatile else UNKNOWN
        is_test = is_check or node.name.startswith("test")
        is_run = is_known and names is self._names
        if is_run and (is_test or self.mentions(node, names)):
            self._waiting.append(helper)

    def _define(self, helper: Helper, names: Names, outer: Sequence[list[Names]] = ()) -> None:
        """Read the head of a function, which runs where it is defined; with the tables above its class."""
        tables = self._head(helper.node, names)
        helper.tables = [[defaults_of(helper.node, names, self._meter)], *tables, *outer]
        helper.is_followed = self._is_marked(helper.node, names)

    def _head(self, node: Any, names: Names) -> list[list[Names]]:
        """Return the tables above a function or class, and note what else its head may change."""
        tables = []
        for each in filter(is_table, reversed(node.decorator_list)):
            tables.append(table_of(each, node, names, self._meter))
            kept = any(value is UNKNOWN for row in tables[-1] for value in row.values())
            self._forget(ast.Tuple([*each.args, *each.keywords], ast.Load()), names, kept)
        called = [ast.Call(each, [], []) for each in node.decorator_list if not is_table(each)]
        head = dict(ast.iter_fields(node)) | {"body": [], "decorator_list": called}
        self._forget(type(node)(**head), names, kept=True)
        return tables

    def _is_check(self, node: Any) -> bool:
        """Whether a function holds tests as HumanEval writes them: it is called with the function under test.

        In data files its parameter may have the name of that function, which may be `check` itself.
        """
        parameter = ["candidate"], [self._entry_point]
        return (
            node.name.startswith("check") and parameters_of(node) in parameter[: 1 + self._strict]
        )

    def _enter(self, helper: Helper) -> None:
        node, before = helper.node, self._told
        if helper.is_followed:
            return
        helper.is_followed = True
        parameters = parameters_of(node)
        own: list[str] = list(parameters)
        for each in [each for part in node.body for each in self.walk(part)]:
            own += bound_by(each)
            if type(each) in _YIELDS:
                return  # it makes an iterator, and runs nothing
        local = dict.fromkeys(own, UNKNOWN)
        owners = {"self", "cls", helper.own.get("self", helper).node.name}
        attributes = helper.own if owners.isdisjoint(local) else {}
        for row in rows_of(helper.tables):
            self._meter.work(1 + len(row) + (len(helper.scope) + len(attributes)) // 8 + len(own))
            inner = helper.scope | attributes | local
            if self._is_check(node):
                inner[parameters[0]] = ENTRY_POINT
            inner.update((k, UNKNOWN if k in self._volatile else v) for k, v in row.items())
            self._body(node.body, inner)
        if self._strict and self._told == before and node.name.startswith("test"):
            self._say(node, "asserts nothing")

    def _is_marked(self, node: Any, names: Names) -> bool:
        """Whether a decorator of a function or class may replace it, or say that it does not run."""
        marks = [each for each in node.decorator_list if not is_table(each)]
        keys = [self.key(it) for each in marks for it in self.walk(each)]
        is_own = any(names.get(k) is UNKNOWN or type(names.get(k)) is Helper for k in keys)
        is_skipped = not _REPLACING.isdisjoint(map(called_or_named, marks))
        is_marked = is_own or is_skipped or (self._strict and bool(marks))
        if is_marked:
            self._unreadable(node, node, names, _LEFT_OUT)
        return is_marked

    def _class(self, node: Any, names: Names) -> None:
        if node.name in (self._entry_point, self._owner) and names is self._names:
            return  # the program is repeated
        tables = self._head(node, names)
        names[node.name] = home = Helper(node, names)
        is_run = names is self._names and self.mentions(node, names)
        if not is_run or self._is_marked(node, names):
            self._other(node, {**names})
            return
        self._meter.work(4 + len(names) // 2)
        home.own = inner = dict(names)  # its names are no names of its methods
        own: Names = {"self": home}
        for each in node.body:
            is_method = isinstance(each, FUNCTIONS)
            head = ast.Tuple([*each.decorator_list, each.args], ast.Load()) if is_method else each
            is_followed = is_method or not hasattr(each, "body")
            if not is_followed or self._looks_past(head, inner, names):
                self._forget(each, {**names})  # scopes in it see these
                self._other(each, inner)
            elif is_method:
                helper = Helper(each, names, own)
                self._define(helper, inner, tables)
                inner[each.name] = helper
                self._waiting += [helper] if each.name != self._entry_point else []
            else:
                self._body([each], inner)
        tests = [it.name for it in node.body if getattr(it, "name", "").startswith("test")]
        if node.bases and tests != sorted(tests):  # unittest sorts them
            self._look_into_functions()
            self._touched |= self._tested
            self._has_hooks = True
        bases = [names.get(self.key(base), LIBRARY) for base in node.bases]
        is_set_up = self._reaches_all or node.keywords or node.name in self._methods
        if is_set_up or any(base is not LIBRARY for base in bases):
            return  # what a class of the text sets up is not followed
        for name, value in inner.items():
            if names.get(name, inner) is not value and f".{name}" not in self._volatile:
                self._meter.work(1 + len(name) // 100)
                own |= {f"{owner}.{name}": value for owner in ("self", node.name, "cls")}

    def _looks_past(self, node: ast.AST, inner: Names, names: Names) -> bool:
        """Whether a statement in a class mentions names of the class where Python may not see them."""
        scopes = [each for each in self.walk(node) if type(each) in _INNER_SCOPES]
        parts = [part for each in scopes for part in self.walk(each)]
        keys = map(self.key, parts)
        return any(inner.get(key) is not names.get(key) for key in keys)


_FOLLOW: dict[type, Callable[[Statements, Any, Names], Leaves | None]] = {
    ast.Assign: Statements._assign, ast.AnnAssign: Statements._assign, ast.AugAssign: Statements._augmented,
    ast.Expr: Statements._expression, ast.For: Statements._for, ast.While: Statements._other,
    ast.If: Statements._if, ast.With: Statements._with, ast.AsyncWith: Statements._with, ast.Try: Statements._try,
    ast.Import: Statements._import, ast.ImportFrom: Statements._import, ast.FunctionDef: Statements._function,
    ast.AsyncFunctionDef: Statements._function, ast.ClassDef: Statements._class, ast.Delete: Statements._forget,
    ast.Match: Statements._other, ast.AsyncFor: Statements._other, ast.TryStar: Statements._other,
}  # fmt: skip
