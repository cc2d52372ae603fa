"""Which programs keep nothing from one call to the next, by their text. Runs inside `Sandbox.analyse`.

The calls of such a program may share a process whatever suite they come from: none can tell which calls went before. The
rule is a list of what is allowed. Whoever writes anything else gets a process for each run, and loses nothing but time.
"""

from __future__ import annotations

import ast
import collections
import collections.abc
import datetime
import fractions
import itertools
import math
import re
import statistics
import string
import types
import typing

from .chunks import PARSE_ERRORS, parse

_FUNCTIONS: dict[str, set[str]] = {
    "__future__": {"annotations"},
    "bisect": {"bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"},
    "collections": set(collections.__all__) - {"UserDict", "UserList", "UserString"},
    "collections.abc": set(collections.abc.__all__),
    "datetime": set(datetime.__all__),
    "fractions": {"Fraction"},
    "functools": {"reduce"},
    "heapq": {"heapify", "heappop", "heappush", "heappushpop", "heapreplace", "merge", "nlargest", "nsmallest"},
    "itertools": {name for name in dir(itertools) if name[0] != "_"},
    "math": {name for name in dir(math) if name[0] != "_"},
    "operator": {"add", "sub", "mul", "itemgetter", "truediv", "floordiv", "mod", "neg", "lt", "le", "gt", "ge", "eq", "ne", "xor"},
    "os": {"_exit", "abort", "getpid", "kill"},
    "re": set(re.__all__) - {"purge", "template"},
    "signal": {"raise_signal", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGTERM"},
    "statistics": set(statistics.__all__) - {"NormalDist"},
    "string": set(string.__all__) - {"Formatter", "Template"},
    "sys": {"exit", "maxsize"},
    "time": {"sleep"},
    "typing": {name for name in typing.__all__ if name[0].isupper()} | {"cast", "get_args", "get_origin"},
}  # fmt: skip
"""Modules, and the names of them that keep nothing. To end a process keeps nothing either."""
_TYPES = (
    str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range, slice, BaseException, StopIteration,
    types.GeneratorType, re.Pattern, re.Match, collections.deque, collections.Counter, collections.OrderedDict,
    collections.defaultdict, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    fractions.Fraction,
)  # fmt: skip
_ATTRIBUTES = {name for kind in _TYPES for name in dir(kind) if name[:3] != "gi_"} - {
    "format", "format_map", "with_traceback",
}  # fmt: skip
"""Attributes of plain objects; a template of `format` may name any other."""
_TEMPLATE = re.compile(r"(?:[^{}]|\{\{|\}\}|\{\w*(?:![rs])?(?::[^{}]*)?\})*")
"""A text whose fields name no attribute."""
_FORBIDDEN_NAMES = frozenset({
    "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "hash", "help", "id", "input", "locals",
    "memoryview", "object", "open", "setattr", "vars",
})  # fmt: skip
"""Names of builtins that change things, run texts, or tell how memory is used."""
_FORBIDDEN_NODES = (ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.MatchClass)
_MAKES_OR_BINDS = (
    ast.Call, ast.NamedExpr, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_VALUES = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load)
_MAIN = ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)


def keep_nothing(programs: list[str]) -> list[bool]:
    r"""Whether each program keeps nothing from one call to the next. One that cannot be read may keep something.

    Example:
        >>> keep_nothing(["import math\ndef f(x): return math.sqrt(x)", "seen = []\ndef f(x): seen.append(x)"])
        [True, False]
    """
    return [_keeps_nothing(code) for code in programs]


def _keeps_nothing(code: str) -> bool:
    try:
        body = parse(code)
    except PARSE_ERRORS:
        return False
    body = [node for node in body if not _is_main(node)]
    inside = [node for statement in body for node in ast.walk(statement)]
    if not all(map(_may_stand_at_the_top, body)) or any(map(_may_keep, inside)):
        return False
    imports = [node for node in inside if isinstance(node, ast.Import)]
    modules = {alias.name for node in imports for alias in node.names}
    attributes = [node for node in inside if isinstance(node, ast.Attribute)]
    of_modules = [each for each in attributes if _module_of(each) in modules]
    others = [each for each in attributes if _module_of(each) not in modules]
    calls = [node.func for node in inside if isinstance(node, ast.Call)]
    # A module stands before one of its names wherever it is named, and `format` behind a text, where it is called.
    named = sum(isinstance(node, ast.Name) and node.id in modules for node in inside)
    return (
        named == len(of_modules)
        and all(each.attr in _FUNCTIONS[_module_of(each)] for each in of_modules)
        and all(
            each.attr in _ATTRIBUTES or (_is_template(each) and each in calls) for each in others
        )
    )


def _module_of(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""


def _is_template(node: ast.Attribute) -> bool:
    """Whether it is `format` of a text that names no attribute."""
    text = node.value.value if isinstance(node.value, ast.Constant) else None
    return node.attr == "format" and isinstance(text, str) and bool(_TEMPLATE.fullmatch(text))


def _is_main(node: ast.stmt) -> bool:
    """Whether it is what runs only where the text is started as a program, which is never."""
    return type(node) is ast.If and not node.orelse and ast.dump(node.test) == _MAIN


def _may_stand_at_the_top(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):  # of a value that nobody can change
        return node.value is not None and all(
            isinstance(each, _VALUES) for each in ast.walk(node.value)
        )
    return False


def _may_keep(node: ast.AST) -> bool:
    if isinstance(node, _FORBIDDEN_NODES):
        return True
    if isinstance(node, ast.Name):
        return node.id in _FORBIDDEN_NAMES or node.id.startswith("__")
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Import):
        return any(
            each.name not in _FUNCTIONS or "." in each.name or each.asname for each in node.names
        )
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return node.level > 0 or not names <= _FUNCTIONS.get(node.module or "", set())
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return _may_keep_in_head(node)
    annotation = getattr(node, "annotation", None)
    return annotation is not None and _makes_or_binds(annotation)


def _may_keep_in_head(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a default value can be changed, or evaluating the head may do more than name a type."""
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    if any(not isinstance(each, _VALUES) for default in defaults for each in ast.walk(default)):
        return True
    if isinstance(node, ast.Lambda):
        return False
    returns = node.returns is not None and _makes_or_binds(node.returns)
    return returns or bool(node.decorator_list or getattr(node, "type_params", ()))


def _makes_or_binds(annotation: ast.expr) -> bool:
    return any(isinstance(each, _MAKES_OR_BINDS) for each in ast.walk(annotation))
