"""Which of several texts is the first program in Python 3. Runs inside `Sandbox.analyse`.

A text that compiles may still be Python 2, which has other names and other values: names and attributes that nobody defines
show it, and uses of `map`, `range` and `input` that Python 3 refuses. What only a run shows is not looked for.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from .syntax import DEFINITIONS, FUNCTIONS, IMPORTS, PARSE_ERRORS, name_of

LONGEST = 1 << 20
"""Characters of a text that is read."""
_BUILTINS = frozenset(dir(builtins)) | {"exit", "quit"}
"""Of a program that runs; the last two are not in the analysis process."""
_OF_PYTHON_2 = frozenset({
    "StandardError", "apply", "basestring", "buffer", "cmp", "coerce", "execfile", "file", "intern", "long", "raw_input",
    "reduce", "reload", "unichr", "unicode", "xrange",
})  # fmt: skip
_METHODS_OF_PYTHON_2 = frozenset({
    "has_key", "iteritems", "iterkeys", "itervalues", "viewitems", "viewkeys", "viewvalues",
})  # fmt: skip
_MODULES_OF_PYTHON_2 = frozenset({
    "ConfigParser", "HTMLParser", "Queue", "StringIO", "Tkinter", "__builtin__", "cPickle", "cStringIO", "commands",
    "exceptions", "sets", "thread", "urllib2", "urlparse",
})  # fmt: skip
_KNOWN_MODULES = frozenset({
    "bisect", "builtins", "collections", "copy", "datetime", "fractions", "functools", "heapq", "io", "itertools", "json",
    "math", "operator", "random", "re", "statistics", "string", "sys", "time", "typing",
})  # fmt: skip
"""Modules of the standard library whose names are looked up."""
_REACHING = frozenset({"exec", "globals", "locals", "setattr", "vars"})
"""What binds names that no statement shows."""
_KINDS = {"map": "iterator", "filter": "iterator", "zip": "iterator", "range": "range", "input": "text"}  # fmt: skip
_LAZY = frozenset({"iterator", "range", "view"})
"""Kinds of values that are lists in Python 2."""
_OF_LISTS = frozenset({"append", "extend", "insert", "pop", "remove", "reverse", "sort"})
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ABSENCE = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "NameError"})
_VERSIONS = frozenset({"version", "version_info", "PY2", "PY3"})


def first_python3(texts: list[str], given: str) -> int:
    r"""Return the place of the first text that is a program in Python 3, behind the given text; -1 for none.

    Example:
        >>> first_python3(["print 1", "print(reduce(max, [1]))", "print(1)"], "")
        2
        >>> first_python3(["print 1", "print(reduce(max, [1]))", "print(1)"], "from functools import *")
        1
    """
    return next((place for place, text in enumerate(texts) if _is_python3(text, given)), -1)


def _is_python3(text: str, given: str) -> bool:
    if len(text) > LONGEST:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" and the like
            tree = ast.parse(text)
            compile(tree, "<text>", "exec", dont_inherit=True)
        return bool(tree.body) and not _Faults(tree, _names_in(given)).any()
    except PARSE_ERRORS:
        return False


class _Names:
    """What a program binds and uses."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        guarded = set(_guarded(nodes))
        functions = [node for node in nodes if isinstance(node, (*FUNCTIONS, ast.Lambda))]
        in_functions = {each for node in functions for each in ast.walk(node)}
        self.looked_at = [node for node in nodes if node not in guarded]
        uses = [node for node in self.looked_at if isinstance(node, ast.Name)]
        uses = [node for node in uses if not isinstance(node.ctx, ast.Store)]
        self.used = {node.id for node in uses}
        self.used_at_once = {node.id for node in uses if node not in in_functions}
        """Outside of functions, which may never be called."""
        self.stars: set[str] = set()
        """Modules of which all names are imported."""
        self.defined: set[str] = set()
        """Functions, methods and attributes."""
        self.bound: defaultdict[str, list[ast.expr | str | None]] = defaultdict(list)
        """What each name is bound to: an expression, a module by its name, or something else."""
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        values = {each.targets[0]: each.value for each in assigned if len(each.targets) == 1}
        for node in nodes:
            self._note(node, values)

    def _note(self, node: Any, values: dict[ast.expr, ast.expr]) -> None:
        """Note what a node binds; `values` are those of targets."""
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                self.bound[name].append(values.get(node))
            case ast.Attribute(attr=name, ctx=ast.Store()):
                self.defined.add(name)
            case ast.arg(arg=name) | ast.MatchMapping(rest=str(name)):
                self.bound[name].append(None)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    home = alias.name.partition(".")[0]
                    is_home = isinstance(node, ast.Import) and (
                        not alias.asname or alias.name == home
                    )
                    self.bound[alias.asname or home].append(home if is_home else None)
                    if alias.name == "*":
                        self.stars.add(getattr(node, "module", None) or "")
            case _ if type(node) is not ast.alias and isinstance(getattr(node, "name", None), str):
                self.bound[node.name].append(None)
                if isinstance(node, DEFINITIONS):
                    self.defined.add(node.name)


@functools.lru_cache
def _names_in(given: str) -> _Names:
    return _Names(ast.parse(given))


def _guarded(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield what runs only where a version of Python has what it needs."""
    for node in nodes:
        parts: list[ast.AST] = []
        if isinstance(node, ast.If):
            if not _VERSIONS.isdisjoint(map(name_of, ast.walk(node.test))):
                parts = [*node.body, *node.orelse]
        elif isinstance(node, ast.Try) and (
            _catches_absence(node) or all(map(_is_short, node.body))
        ):
            parts = [*node.body, *node.handlers]
        for part in parts:
            yield from ast.walk(part)


def _catches_absence(node: ast.Try) -> bool:
    types = [each for h in node.handlers if h.type for each in ast.walk(h.type)]
    return any(isinstance(each, ast.Name) and each.id in _ABSENCE for each in types)


def _is_short(node: ast.stmt) -> bool:
    """Whether a statement only imports something, or gives it another name."""
    is_name = isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute))
    return is_name or isinstance(node, IMPORTS)


@functools.cache
def _exports(module: str) -> frozenset[str] | None:
    """Return the names that a star imports; None where nobody looks."""
    if module not in _KNOWN_MODULES:
        return None
    found = importlib.import_module(module)
    public = (name for name in dir(found) if not name.startswith("_"))
    return frozenset(getattr(found, "__all__", public))


class _Faults(_Names):
    """What Python 3 would refuse in a program that stands behind another text."""

    def __init__(self, tree: ast.Module, given: _Names) -> None:
        super().__init__(tree)
        self._given = given
        self._kinds: dict[str, str] = {}

    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._unknown()) or any(map(self._refused, self.looked_at))

    def _unknown(self) -> set[str]:
        """Return names that are nowhere bound: all that are used at once, elsewhere those that Python 2 has."""
        exports = [_exports(each) for each in self.stars | self._given.stars]
        used = (self.used & _OF_PYTHON_2) | self.used_at_once
        used -= _BUILTINS | self.bound.keys() | self._given.bound.keys()
        used = {name for name in used if name[:2] != "__"}.difference(*filter(None, exports))
        return used & _OF_PYTHON_2 if None in exports or self.used & _REACHING else used

    def _refused(self, node: Any) -> bool:
        match node:
            case ast.Expr():
                return self._is_print_statement(node.value)
            case ast.Attribute():
                return self._lacks(node)
            case ast.Subscript(ctx=ast.Load()):
                return self._kind(node.value) in ("iterator", "view")
            case ast.Subscript():
                return self._kind(node.value) in _LAZY
            case ast.Call():
                return self._is_no_call(node)
            case ast.BinOp():
                return self._is_no_sum(node)
            case ast.Compare(left=left, ops=ops, comparators=[right, *_]):
                kinds = {self._kind(left), self._kind(right)}
                return isinstance(ops[0], _ORDER) and kinds == {"text", "number"}
            case ast.Import():
                return any(alias.name in _MODULES_OF_PYTHON_2 for alias in node.names)
            case ast.ImportFrom(module=module, level=0):
                return module in _MODULES_OF_PYTHON_2 or any(
                    alias.name != "*" and _is_absent(module, alias.name) for alias in node.names
                )
        return False

    def _is_builtin(self, node: ast.expr, *names: str) -> bool:
        return isinstance(node, ast.Name) and node.id in names and node.id not in self.bound

    def _is_print_statement(self, value: ast.expr) -> bool:
        """Whether a statement was written for the `print` of Python 2, such as `print (a), b` or `print (a) % b`."""
        if isinstance(value, ast.Tuple) and value.elts:
            first, *others = value.elts
            if isinstance(first, ast.Call) and any(isinstance(each, ast.Call) for each in others):
                return False
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return False
        while not self._is_builtin(value, "print"):
            match value:
                case (
                    ast.Tuple(elts=[value, *_])
                    | ast.BinOp(left=value)
                    | ast.Compare(left=value)
                    | ast.Call(func=value)
                    | ast.Subscript(value=value)
                    | ast.Attribute(value=value)
                ):
                    pass
                case _:
                    return False
        return True

    def _lacks(self, node: ast.Attribute) -> bool:
        """Whether an attribute is one of Python 2."""
        if node.attr in self.defined or not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in _METHODS_OF_PYTHON_2:
            return True
        name = name_of(node.value) if isinstance(node.value, ast.Name) else ""
        values = self.bound.get(name) or self._given.bound.get(name, [])
        modules = {value if isinstance(value, str) else None for value in values}
        return len(modules) == 1 and _is_absent(modules.pop(), node.attr)

    def _kind(self, node: ast.expr) -> str:
        """Return what a value is in Python 3, where the text shows it; "" where it does not."""
        if isinstance(node, ast.Name):
            if node.id not in self._kinds:
                values = self.bound.get(node.id, [None])
                kinds = {self._kind(it) if isinstance(it, ast.Call) else "" for it in values}
                self._kinds[node.id] = kinds.pop() if len(kinds) == 1 else ""
            return self._kinds[node.id]
        if isinstance(node, ast.Call):
            if self._is_builtin(node.func, *_KINDS):
                return _KINDS[node.func.id]  # type: ignore[attr-defined]
            if isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
                is_view = node.func.attr in {"keys", "values", "items"} - self.defined
                return "view" if is_view else ""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return "number"
        return "list" if isinstance(node, ast.List) else ""

    def _is_no_call(self, node: ast.Call) -> bool:
        kinds = [self._kind(each) for each in node.args]
        match node.func:
            case ast.Attribute(value=value, attr=method):
                if method in _OF_LISTS and self._kind(value) in _LAZY:
                    return True
                sorts = method == "sort"
            case function:
                if self._is_builtin(function, "len") and kinds == ["iterator"]:
                    return True
                if self._is_builtin(function, "range") and "text" in kinds:
                    return True
                sorts = self._is_builtin(function, "sorted")
        return sorts and any(each.arg == "cmp" for each in node.keywords)

    def _is_no_sum(self, node: ast.BinOp) -> bool:
        left, right = self._kind(node.left), self._kind(node.right)
        kinds = {left, right}
        match node.op:
            case ast.Add():
                return not _LAZY.isdisjoint(kinds) or kinds == {"text", "number"}
            case ast.Mult():
                return not _LAZY.isdisjoint(kinds) or kinds == {"text", "list"}
            case ast.Mod():
                return left == "text" and right == "number"
            case ast.Sub() | ast.Div() | ast.FloorDiv() | ast.Pow():
                return "text" in kinds
        return False


def _is_absent(module: str | None, name: str) -> bool:
    if module not in _KNOWN_MODULES:
        return False
    found = importlib.import_module(module)
    if hasattr(found, name):
        return False
    try:
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return True
    return False
