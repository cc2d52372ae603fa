"""Which programs keep nothing from one call to the next, by their text. Runs inside `Sandbox.analyse`.

The calls of such a program may share a process whatever suite they come from: none can tell which calls went before. The
rule is a list of what is allowed. Whoever writes anything else gets a process for each run, and loses nothing but time.
"""

from __future__ import annotations

import ast

from .chunks import PARSE_ERRORS, parse

_MODULES = frozenset({
    "bisect", "collections", "datetime", "fractions", "heapq", "itertools", "math", "re", "statistics", "string", "typing",
})  # fmt: skip
"""Modules whose functions keep nothing, and whose objects nobody can change without naming an attribute."""
_FUNCTIONS = {
    "ctypes": {"string_at"},
    "functools": {"reduce"},
    "operator": {"add", "sub", "mul", "itemgetter", "truediv", "floordiv", "mod", "neg", "lt", "le", "gt", "ge", "eq", "ne", "xor"},
    "os": {"_exit", "abort", "getpid", "kill"},
    "signal": {"raise_signal", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGTERM"},
    "sys": {"exit", "maxsize"},
    "time": {"sleep"},
}  # fmt: skip
"""Modules of which only these names may be used. To end a process keeps nothing either."""
_FORBIDDEN_NAMES = frozenset({
    "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "hash", "id", "input", "locals",
    "memoryview", "object", "open", "setattr", "vars",
    "evaluate_forward_ref", "get_annotations", "get_type_hints", "register",
})  # fmt: skip
"""Names of functions that change things, run texts, or tell how memory is used; also as attributes."""
_FORBIDDEN_NODES = (ast.AsyncFunctionDef, ast.ClassDef, ast.Global)
_MAKES_OR_BINDS = (
    ast.Call, ast.NamedExpr, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_VALUES = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load)
_MAIN = "Compare(left=Name(id='__name__'"


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
    # A module of which only some names may be used stands before one of them wherever it is named.
    used = [node for node in inside if isinstance(node, ast.Name) and node.id in _FUNCTIONS]
    return len(used) == sum(map(_is_function_of_module, inside))


def _is_function_of_module(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in _FUNCTIONS.get(node.value.id, ())
    )


def _is_main(node: ast.stmt) -> bool:
    """Whether it is what runs only where the text is started as a program, which is never."""
    return (
        type(node) is ast.If
        and not node.orelse
        and ast.dump(node.test).startswith(_MAIN)
        and "ops=[Eq()]" in ast.dump(node.test)
        and "Constant(value='__main__')" in ast.dump(node.test)
    )


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
        hidden = node.attr.startswith("_") and node.attr not in ("__name__", "_exit")
        return hidden or not isinstance(node.ctx, ast.Load) or node.attr in _FORBIDDEN_NAMES
    if isinstance(node, ast.Import):
        return not all(
            alias.name in _MODULES or (alias.name in _FUNCTIONS and alias.asname is None)
            for alias in node.names
        )
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        if node.module in _FUNCTIONS:
            return not names <= _FUNCTIONS[node.module]
        return node.module not in _MODULES or any(
            name[0] in "_*" or name in _FORBIDDEN_NAMES for name in names
        )
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
