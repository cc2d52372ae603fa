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
from typing import Any, NamedTuple

from .chunks import PARSE_ERRORS

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
_OF_NUMBERS = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ABSENCE = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "NameError"})
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda})
_NOTED = frozenset({
    ast.Assign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.Import, ast.ImportFrom, ast.ExceptHandler,
    ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Attribute,
    *(getattr(ast, each) for each in ("ParamSpec", "TypeVar", "TypeVarTuple") if hasattr(ast, each)),  # from Python 3.12
})  # fmt: skip
_SPARING = frozenset({ast.If, ast.Try})
_LOOKED_AT = frozenset({
    ast.Expr, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.Compare, ast.Import, ast.ImportFrom,
})  # fmt: skip
_SAY_NOTHING = frozenset(
    {ast.Load, ast.Store, ast.Del, ast.Constant, *ast.operator.__subclasses__()}
)
"""Nodes below which no name stands; a set of types is asked faster than `isinstance`."""


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
        return bool(tree.body) and not _Faults(_collect(tree), _collected(given)).any()
    except PARSE_ERRORS:
        return False


class _Names(NamedTuple):
    """What a program binds and uses."""

    bound: dict[str, list[ast.expr | str | None]]
    """What each name is bound to: an expression, a module by its name, or something else."""
    used: set[str]
    used_at_once: set[str]
    """Outside of functions, which may never be called."""
    stars: set[str]
    """Modules of which all names are imported."""
    looked_at: list[ast.AST]
    """What is not guarded against other versions of Python."""
    defined: set[str]
    """Functions, methods and attributes."""

    def bind(self, name: str, value: ast.expr | str | None = None) -> None:
        """Note one binding of a name."""
        self.bound.setdefault(name, []).append(value)


@functools.lru_cache
def _collected(given: str) -> _Names:
    return _collect(ast.parse(given))


def _collect(tree: ast.Module) -> _Names:
    names = _Names({}, set(), set(), set(), [], set())
    stack: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while stack:
        node, guarded, inside = stack.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.bind(node.id)
            elif not guarded:
                names.used.add(node.id)
                if not inside:
                    names.used_at_once.add(node.id)
            continue
        kind = type(node)
        if not guarded and kind in _LOOKED_AT:
            names.looked_at.append(node)
        inside = inside or kind in _FUNCTIONS
        noted = _note(node, names) if kind in _NOTED else ""
        spared = _spared(node) if kind in _SPARING and not guarded else ()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list) and field != noted:
                spare = guarded or field in spared
                stack += [(each, spare, inside) for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and type(value) not in _SAY_NOTHING:
                stack.append((value, guarded, inside))
    return names


def _note(node: Any, names: _Names) -> str:
    """Note what a node binds; return the field of it that needs no other look, if there is one."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            names.bind(name, value)
            return "targets"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            names.bind(node.name)
            names.defined.add(node.name)
        case ast.arg():
            names.bind(node.arg)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                if alias.name == "*":
                    names.stars.add(getattr(node, "module", None) or "")
                name = alias.asname or alias.name.partition(".")[0]
                plain = isinstance(node, ast.Import) and (not alias.asname or "." not in alias.name)
                names.bind(name, alias.name.partition(".")[0] if plain else None)
        case ast.MatchMapping(rest=str(name)):
            names.bind(name)
        case _ if isinstance(own := getattr(node, "name", None), str):
            names.bind(own)
        case ast.Attribute(ctx=ast.Store()):
            names.defined.add(node.attr)
    return ""


def _spared(node: ast.AST) -> tuple[str, ...]:
    """Return the parts of a statement that run only where a version of Python has what they need."""
    if isinstance(node, ast.If):
        test = {getattr(each, "attr", getattr(each, "id", "")) for each in ast.walk(node.test)}
        return ("body", "orelse") if test & {"version", "version_info", "PY2", "PY3"} else ()
    if not isinstance(node, ast.Try):
        return ()
    caught = {each.id for h in node.handlers if h.type for each in ast.walk(h.type) if isinstance(each, ast.Name)}  # fmt: skip
    short = all(
        isinstance(each, (ast.Import, ast.ImportFrom))
        or (isinstance(each, ast.Assign) and isinstance(each.value, (ast.Name, ast.Attribute)))
        for each in node.body
    )
    return ("body", "handlers") if caught & _ABSENCE or short else ()


@functools.cache
def _exports(module: str) -> frozenset[str] | None:
    """Return the names that a star imports; None where nobody looks."""
    if module not in _KNOWN_MODULES:
        return None
    found = importlib.import_module(module)
    public = (name for name in dir(found) if not name.startswith("_"))
    return frozenset(getattr(found, "__all__", public))


class _Faults:
    """What Python 3 would refuse in a program."""

    def __init__(self, program: _Names, given: _Names) -> None:
        self._program, self._given = program, given
        self._kinds: dict[str, str] = {}

    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._unknown()) or any(map(self._refused, self._program.looked_at))

    def _unknown(self) -> set[str]:
        """Return names that are nowhere bound: all that are used at once, elsewhere those that Python 2 has."""
        program, given = self._program, self._given
        exports = [_exports(each) for each in program.stars | given.stars]
        used = (program.used & _OF_PYTHON_2) | program.used_at_once
        used -= _BUILTINS | program.bound.keys() | given.bound.keys()
        used = {name for name in used if name[:2] != "__"}.difference(*filter(None, exports))
        return used & _OF_PYTHON_2 if None in exports or program.used & _REACHING else used

    def _refused(self, node: Any) -> bool:
        match node:
            case ast.Expr():
                return self._is_print_statement(node.value)
            case ast.Attribute():
                return self._lacks(node)
            case ast.Subscript():
                kind = self._kind(node.value)
                return kind in ("iterator", "view") or (
                    kind == "range" and not isinstance(node.ctx, ast.Load)
                )
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
        return (
            isinstance(node, ast.Name) and node.id in names and node.id not in self._program.bound
        )

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
                case ast.Tuple(elts=[first, *_]):
                    value = first
                case ast.BinOp(left=first) | ast.Call(func=first) | ast.Compare(left=first):
                    value = first
                case ast.Subscript(value=first) | ast.Attribute(value=first):
                    value = first
                case _:
                    return False
        return True

    def _lacks(self, node: ast.Attribute) -> bool:
        """Whether an attribute is one of Python 2."""
        if node.attr in self._program.defined or not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in _METHODS_OF_PYTHON_2:
            return True
        if not isinstance(node.value, ast.Name):
            return False
        name = node.value.id
        values = self._program.bound.get(name) or self._given.bound.get(name, [])
        modules = {value if isinstance(value, str) else None for value in values}
        if len(modules) != 1 or (module := modules.pop()) is None:
            return False
        return _is_absent(module, node.attr)

    def _kind(self, node: ast.expr) -> str:
        """Return what a value is in Python 3, where the text shows it; "" where it does not."""
        if isinstance(node, ast.Name):
            if node.id not in self._kinds:
                values = self._program.bound.get(node.id, [None])
                kinds = {self._kind(value) if isinstance(value, ast.Call) else "" for value in values}  # fmt: skip
                self._kinds[node.id] = kinds.pop() if len(kinds) == 1 else ""
            return self._kinds[node.id]
        if isinstance(node, ast.Call):
            if self._is_builtin(node.func, *_KINDS):
                return _KINDS[node.func.id]  # type: ignore[attr-defined]
            if isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
                is_view = node.func.attr in {"keys", "values", "items"} - self._program.defined
                return "view" if is_view else ""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return "number"
        return "list" if isinstance(node, ast.List) else ""

    def _is_no_call(self, node: ast.Call) -> bool:
        kinds = [self._kind(each) for each in node.args]
        if self._is_builtin(node.func, "len") and kinds == ["iterator"]:
            return True
        if self._is_builtin(node.func, "range") and "text" in kinds:
            return True
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in _OF_LISTS and self._kind(node.func.value) in _LAZY:  # type: ignore[attr-defined]
            return True
        sorts = method == "sort" or self._is_builtin(node.func, "sorted")
        return sorts and any(each.arg == "cmp" for each in node.keywords)

    def _is_no_sum(self, node: ast.BinOp) -> bool:
        if not isinstance(node.op, (ast.Add, ast.Mult, ast.Mod, *_OF_NUMBERS)):
            return False
        left, right = kinds = self._kind(node.left), self._kind(node.right)
        if isinstance(node.op, (ast.Add, ast.Mult)) and not _LAZY.isdisjoint(kinds):
            return True
        if isinstance(node.op, _OF_NUMBERS):
            return "text" in kinds
        if isinstance(node.op, ast.Mult):
            return {*kinds} == {"text", "list"}
        if isinstance(node.op, ast.Mod):
            return (left, right) == ("text", "number")
        return {*kinds} == {"text", "number"}


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
