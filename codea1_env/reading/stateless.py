"""Which programs keep nothing from one call to the next, by their text. Runs inside `Sandbox.analyse`.

The calls of such a program may share a process whatever suite they come from: none can tell which calls went before. The
rule is a list of what is allowed. Whoever writes anything else gets a process for each run, and what it passes behind a
call that ended its process does not count.
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
from collections.abc import Sequence

from .chunks import PARSE_ERRORS, parse
from .readonly import are_only_read, bound_names, is_constant, is_container

_PATTERN_ARGUMENTS = {
    "compile": 1, "escape": 1, "findall": 2, "finditer": 2, "fullmatch": 2, "match": 2, "search": 2, "split": 2, "sub": 3, "subn": 3,
}  # fmt: skip
"""Functions of `re`, and how many arguments they have before flags, which its cache would compare with those of earlier calls."""
_FUNCTIONS: dict[str, set[str]] = {
    "__future__": {"annotations"},
    "bisect": {"bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"},
    "collections": {"ChainMap", "Counter", "OrderedDict", "defaultdict", "deque"},
    "collections.abc": set(collections.abc.__all__),
    "datetime": set(datetime.__all__),
    "fractions": {"Fraction"},
    "functools": {"reduce"},
    "heapq": {"heapify", "heappop", "heappush", "heappushpop", "heapreplace", "merge", "nlargest", "nsmallest"},
    "itertools": {name for name in dir(itertools) if name[0] != "_"},
    "math": {name for name in dir(math) if name[0] != "_"},
    "operator": {"add", "sub", "mul", "itemgetter", "truediv", "floordiv", "mod", "neg", "lt", "le", "gt", "ge", "eq", "ne", "xor"},
    "os": {"_exit", "abort", "getpid", "kill"},
    "re": {*_PATTERN_ARGUMENTS, "DOTALL", "I", "IGNORECASE", "M", "MULTILINE", "S", "VERBOSE", "X", "ASCII", "A", "error"},
    "signal": {"raise_signal", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGTERM"},
    "statistics": set(statistics.__all__) - {"NormalDist"},
    "string": set(string.__all__) - {"Formatter", "Template"},
    "sys": {"exit", "maxsize"},
    "time": {"sleep"},
    "typing": {name for name in typing.__all__ if name[0].isupper()},
}  # fmt: skip
"""Modules, and the names of them that keep nothing. To end a process keeps nothing either."""
_MAY_HAVE_OTHER_NAMES = {
    "bisect",
    "collections",
    "heapq",
    "itertools",
    "math",
    "operator",
    "statistics",
    "string",
}
"""Modules that nothing here looks for by name."""
_TYPES = (
    str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range, slice, BaseException, StopIteration,
    types.GeneratorType, re.Pattern, re.Match, collections.deque, collections.Counter, collections.OrderedDict,
    collections.defaultdict, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    fractions.Fraction,
)  # fmt: skip
_ATTRIBUTES = {
    name for kind in _TYPES for name in dir(kind) if name[0] != "_" and name[:3] != "gi_"
} - {"format", "format_map", "with_traceback", "now", "today", "utcnow"}
"""Attributes of plain objects; a template of `format` may name any other. A clock may say something else when it is asked again."""
_TEMPLATE = re.compile(r"(?:[^{}]|\{\{|\}\}|\{\w*(?:![rs])?(?::[^{}]*)?\})*")
"""A text whose fields name no attribute."""
_FORBIDDEN_NAMES = frozenset({
    "breakpoint", "classmethod", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "hash", "help", "id",
    "input", "locals", "memoryview", "object", "open", "property", "setattr", "staticmethod", "super", "vars",
    "BaseException", "Exception", "MemoryError", "RecursionError", "RuntimeError",
})  # fmt: skip
"""Names of builtins that change things, run texts, make classes, or tell how memory is used."""
_FORBIDDEN_NODES = (ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.MatchClass, ast.TryStar)
_CONSTANTS = (None, True, False, ...)
_MAKES_OR_BINDS = (
    ast.Call, ast.NamedExpr, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
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
    bound = bound_names(inside)
    if any(name.startswith("__") for name in bound) or any(map(_may_keep, inside)):
        return False
    if not _top_never_changes(body, inside, bound):
        return False
    aliases = [each for node in inside if isinstance(node, ast.Import) for each in node.names]
    modules = {each.asname or each.name: each.name for each in aliases}
    if len({(each.asname or each.name, each.name) for each in aliases}) > len(modules):
        return False
    attributes = [node for node in inside if isinstance(node, ast.Attribute)]
    of_modules = [each for each in attributes if _module_of(each) in modules]
    others = [each for each in attributes if _module_of(each) not in modules]
    calls = [node.func for node in inside if isinstance(node, ast.Call)]
    # A module stands before one of its names wherever it is named, and `format` behind a text, where it is called.
    named = sum(isinstance(node, ast.Name) and node.id in modules for node in inside)
    return (
        named == len(of_modules)
        and _types_are_compared(inside)
        and _patterns_have_plain_flags(inside)
        and _kills_itself(inside)
        and _typing_annotates(body, inside)
        and all(each.attr in _FUNCTIONS[modules[_module_of(each)]] for each in of_modules)
        and all(
            each.attr in _ATTRIBUTES or (_is_template(each) and each in calls) for each in others
        )
    )


def _types_are_compared(inside: Sequence[ast.AST]) -> bool:
    """Whether `type` is only asked for the type of a value, in a comparison: with more it makes classes."""
    named = sum(isinstance(node, ast.Name) and node.id == "type" for node in inside)
    sides = [
        side
        for node in inside
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
    ]
    return named == sum(map(_is_type_of, sides))


def _patterns_have_plain_flags(inside: Sequence[ast.AST]) -> bool:
    """Whether functions of `re` are only called, and with flags by their names."""
    named = sum(
        isinstance(node, ast.Attribute)
        and _module_of(node) == "re"
        and node.attr in _PATTERN_ARGUMENTS
        for node in inside
    )
    called = 0
    for node in inside:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _module_of(node.func) == "re"
        ):
            flags = [
                *node.args[_PATTERN_ARGUMENTS.get(node.func.attr, 0) :],
                *[each.value for each in node.keywords if each.arg not in ("count", "maxsplit")],
            ]
            starred = any(isinstance(each, ast.Starred) for each in node.args)
            called += not starred and all(map(_is_flag, flags))
    return called == named


def _is_flag(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_flag(node.left) and _is_flag(node.right)
    return isinstance(node, ast.Attribute) and _module_of(node) == "re"


def _kills_itself(inside: Sequence[ast.AST]) -> bool:
    """Whether the number of the process is only asked for to end it: another process has another."""
    named = [node.attr for node in inside if isinstance(node, ast.Attribute)]
    named += [node.name for node in inside if isinstance(node, ast.alias)]
    calls = [node for node in inside if isinstance(node, ast.Call) and node.args]
    kills = [node.args[0] for node in calls if _is_of_os(node.func, "kill")]
    itself = sum(
        isinstance(each, ast.Call)
        and _is_of_os(each.func, "getpid")
        and not (each.args or each.keywords)
        for each in kills
    )
    return named.count("getpid") == itself == named.count("kill")


def _is_of_os(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and _module_of(node) == "os" and node.attr == name


def _is_type_of(node: ast.expr) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return called and node.func.id == "type" and len(node.args) == 1 and not node.keywords  # type: ignore[attr-defined]


def _typing_annotates(body: Sequence[ast.stmt], inside: Sequence[ast.AST]) -> bool:
    """Whether names of typing stand in annotations only: what they make is kept, and found again by equality."""
    names = {"typing"} | {
        alias.asname or alias.name
        for node in inside
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections.abc")
        for alias in node.names
    }
    annotations = [
        each
        for node in inside
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if each is not None
    ]
    # Those of functions in functions are evaluated at each call.
    inner = [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef) and node is not statement
    ]
    again = {
        id(node)
        for each in inner
        for part in (each.args, each.returns)
        if part
        for node in ast.walk(part)
    }
    within = {id(node) for each in annotations for node in ast.walk(each)} - again
    return not any(
        isinstance(node, ast.Name) and node.id in names and id(node) not in within
        for node in inside
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


def _top_never_changes(
    body: Sequence[ast.stmt], inside: Sequence[ast.AST], bound: set[str]
) -> bool:
    """Whether what the program makes when it loads stays as it is."""
    constants: set[str] = set()
    containers: set[str] = set()
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {each.id for each in targets if isinstance(each, ast.Name)}
            known = frozenset(constants - containers)
            if node.value is None or len(names) < len(targets) or _binds(node):
                return False
            if is_container(node.value, known):
                containers |= names
            elif is_constant(node.value, known) or _is_pattern(node.value):
                constants |= names
            elif not isinstance(node.value, ast.Lambda):
                return False
            if any(isinstance(each, ast.Call) for each in ast.walk(node.value)) and bound & _MAKERS:
                return False
        elif not _only_says(node):
            return False
    return are_only_read(containers, inside, bound)


_MAKERS = {"dict", "float", "frozenset", "int", "list", "set", "tuple"}
"""Builtins that may make what stands at the top; a program may have others of these names."""


def _is_pattern(node: ast.expr) -> bool:
    """Whether it is a pattern, which nobody can change; its text and flags are looked at as everywhere."""
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute)
        and (_module_of(node.func), node.func.attr) == ("re", "compile")
    )


def _only_says(node: ast.stmt) -> bool:
    """Whether a statement shows or checks something when the program loads, and binds no name."""
    shows = (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "print"
    )
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or ((shows or isinstance(node, ast.Assert)) and not _binds(node))


def _binds(node: ast.stmt) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _may_keep(node: ast.AST) -> bool:
    if isinstance(node, _FORBIDDEN_NODES):
        return True
    if isinstance(node, ast.Name):
        return node.id in _FORBIDDEN_NAMES or node.id.startswith("__")
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.ExceptHandler):
        return node.type is None  # it might catch that there is no memory
    if (
        isinstance(node, ast.Try) and node.finalbody
    ):  # it sees every error, as that there is no memory
        return True
    if isinstance(node, (ast.Try, ast.With)):  # what closes a generator may come at any time
        return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))
    if isinstance(node, ast.Compare):
        sides = itertools.pairwise((node.left, *node.comparators))
        return any(
            isinstance(op, (ast.Is, ast.IsNot)) and not any(map(_is_one_of_its_kind, pair))
            for op, pair in zip(node.ops, sides, strict=True)
        )
    if isinstance(node, ast.Import):
        return any(
            each.name not in _FUNCTIONS
            or "." in each.name
            or (each.asname and each.name not in _MAY_HAVE_OTHER_NAMES)
            for each in node.names
        )
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return (
            node.level > 0
            or node.module == "re"
            or not names <= _FUNCTIONS.get(node.module or "", set())
        )
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return _may_keep_in_head(node)
    annotation = getattr(node, "annotation", None)
    return annotation is not None and _makes_or_binds(annotation)


def _is_one_of_its_kind(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and any(node.value is each for each in _CONSTANTS)
    return constant or _is_type_of(node)


def _may_keep_in_head(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a default value can be changed, or evaluating the head may do more than name a type."""
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    if any(isinstance(each, ast.Call) or not is_constant(each) for each in defaults):
        return True
    if isinstance(node, ast.Lambda):
        return False
    returns = node.returns is not None and _makes_or_binds(node.returns)
    return returns or bool(node.decorator_list or getattr(node, "type_params", ()))


def _makes_or_binds(annotation: ast.expr) -> bool:
    yields = (ast.Yield, ast.YieldFrom)
    return any(isinstance(each, (*_MAKES_OR_BINDS, *yields)) for each in ast.walk(annotation))
