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
from collections.abc import Container, Iterable, Sequence

from .readonly import constant_containers, is_constant, read_by
from .syntax import bound_by, name_of, parsed

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
_MAY_HAVE_OTHER_NAMES = frozenset(
    ["bisect", "collections", "heapq", "itertools", "math", "operator", "statistics", "string"]
)
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
_CONSTANTS = (None, True, False, ...)
_OF_PROCESSES = ("getpid", "kill")
_YIELDS = (ast.Yield, ast.YieldFrom)
_MAKES_OR_BINDS = (
    ast.Call, ast.NamedExpr, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, *_YIELDS,
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
    body = parsed(code)
    if body is None:
        return False
    # What runs only where the text is started as a program never runs.
    body = [node for node in body if not _is_main(node)]
    inside = _walked(body)
    bound = {name for node in inside for name in bound_by(node)}
    bound |= {node.arg for node in inside if isinstance(node, ast.arg)}
    bound |= {node.rest or "" for node in inside if isinstance(node, ast.MatchMapping)}
    if any(name.startswith("__") for name in bound) or any(map(_may_keep, inside)):
        return False
    containers = constant_containers(body, bound)
    return containers is not None and _names_reach_nothing(body, inside, bound, containers)


def _is_main(node: ast.stmt) -> bool:
    return type(node) is ast.If and not node.orelse and ast.dump(node.test) == _MAIN


def _walked(nodes: Iterable[ast.AST | None]) -> list[ast.AST]:
    return [each for node in nodes if node is not None for each in ast.walk(node)]


def _names_reach_nothing(
    body: Sequence[ast.stmt], inside: Sequence[ast.AST], bound: set[str], containers: set[str]
) -> bool:
    """Whether names by which a program could reach more stand only where they do not."""
    attributes = [node for node in inside if isinstance(node, ast.Attribute)]
    calls = [node for node in inside if isinstance(node, ast.Call)]
    compared = [node for node in inside if isinstance(node, ast.Compare)]
    imported = [each for node in inside if isinstance(node, ast.Import) for each in node.names]
    modules = {each.asname or each.name: each.name for each in imported}
    if any(modules[each.asname or each.name] != each.name for each in imported):
        return False  # two modules under one name
    of_typing = [node for node in inside if isinstance(node, ast.ImportFrom)]
    of_typing = [node for node in of_typing if node.module in ("typing", "collections.abc")]
    typing_names = {name for node in of_typing for each in node.names for name in bound_by(each)}
    homes = {node: _home(node) for node in attributes}
    plain = [node for node in attributes if node.attr in _ATTRIBUTES or homes[node] in modules]
    patterns = [node for node in attributes if homes[node] == "re"]
    aliases = [node for node in inside if isinstance(node, ast.alias)]

    def named(names: Container[str]) -> list[ast.Name]:
        return [node for node in inside if isinstance(node, ast.Name) and node.id in names]

    rules: list[tuple[Iterable[ast.AST], Iterable[ast.AST]]] = [
        # What is named, and where it may be. Containers of constants are only read.
        (
            [node for node in named(containers) if isinstance(node.ctx, ast.Load)],
            [part for node in inside for part in read_by(node, bound)],
        ),
        # A module stands before one of its names wherever it is named.
        (
            named(modules),
            [
                each.value
                for each, home in homes.items()
                if each.attr in _FUNCTIONS.get(modules.get(home, ""), ())
            ],
        ),
        # `format` stands behind a text, where it is called.
        (attributes, [*plain, *(node.func for node in calls if _is_template(node.func))]),
        # `type` is only asked for the type of a value, in a comparison: with more it makes classes.
        (named(["type"]), [part for node in compared for part in _types_in(node)]),
        # Functions of `re` are only called, and with flags by their names.
        (
            [node for node in patterns if node.attr in _PATTERN_ARGUMENTS],
            [node.func for node in calls if _has_plain_flags(node)],
        ),
        # The number of the process is only asked for to end it: another process has another.
        (
            [node for node in attributes if node.attr in _OF_PROCESSES]
            + [node for node in aliases if node.name in _OF_PROCESSES],
            [part for node in calls for part in _own_end_in(node)],
        ),
        # Names of typing stand in annotations: what they make is kept, and found again by equality.
        (named({"typing", *typing_names}), _annotations(body, inside)),
    ]
    return all(set(those) <= set(allowed) for those, allowed in rules)


def _annotations(body: Sequence[ast.stmt], inside: Sequence[ast.AST]) -> set[ast.AST]:
    """Return what stands in annotations, without those of functions in functions, which are evaluated at each call."""
    whole = [getattr(each, kind, None) for each in inside for kind in ("annotation", "returns")]
    inner = [node for node in inside if isinstance(node, ast.FunctionDef) and node not in body]
    heads = [part for node in inner for part in (node.args, node.returns)]
    return set(_walked(whole)) - set(_walked(heads))


def _home(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""


def _is_template(node: ast.expr) -> bool:
    """Whether it is `format` of a text that names no attribute."""
    match node:
        case ast.Attribute(value=ast.Constant(value=str(text)), attr="format"):
            return bool(_TEMPLATE.fullmatch(text))
    return False


def _types_in(node: ast.Compare) -> list[ast.expr]:
    """Return `type` of the sides that are `type(value)`."""
    return [part for side in (node.left, *node.comparators) for part in _type_in(side)]


def _type_in(node: ast.expr) -> list[ast.expr]:
    """Return `type` in `type(value)`."""
    match node:
        case ast.Call(func=ast.Name(id="type") as function, args=[_], keywords=[]):
            return [function]
    return []


def _own_end_in(node: ast.Call) -> list[ast.expr]:
    """Return the functions in `os.kill(os.getpid(), ...)`."""
    match node.func, node.args:
        case (
            ast.Attribute(value=ast.Name(id="os"), attr="kill") as kill,
            [
                ast.Call(
                    func=ast.Attribute(value=ast.Name(id="os")) as getpid, args=[], keywords=[]
                ),
                *_,
            ],
        ) if getpid.attr == "getpid":
            return [kill, getpid]
    return []


def _has_plain_flags(node: ast.Call) -> bool:
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    given = node.args[_PATTERN_ARGUMENTS.get(name_of(node.func), 0) :]
    named = [each.value for each in node.keywords if each.arg not in ("count", "maxsplit")]
    return not starred and all(map(_is_flag, [*given, *named]))


def _is_flag(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_flag(node.left) and _is_flag(node.right)
    return isinstance(node, ast.Attribute) and _home(node) == "re"


def _may_keep(node: ast.AST) -> bool:
    match node:
        case (
            ast.AsyncFunctionDef()
            | ast.ClassDef()
            | ast.Global()
            | ast.MatchClass()
            | ast.TryStar()
        ):
            return True
        case ast.Name(id=name):
            return name in _FORBIDDEN_NAMES or name.startswith("__")
        case ast.Attribute(ctx=context):
            return not isinstance(context, ast.Load)
        # What sees every error might see that there is no memory.
        case ast.ExceptHandler(type=None) | ast.Try(finalbody=[_, *_]):
            return True
        case ast.Try() | ast.With():  # what closes a generator may come at any time
            return any(isinstance(each, _YIELDS) for each in ast.walk(node))
        case ast.Compare():
            sides = itertools.pairwise((node.left, *node.comparators))
            return any(
                isinstance(op, (ast.Is, ast.IsNot)) and not any(map(_is_one_of_its_kind, pair))
                for op, pair in zip(node.ops, sides, strict=True)
            )
        case ast.Import():
            return any(
                each.name not in _FUNCTIONS
                or "." in each.name
                or (each.asname and each.name not in _MAY_HAVE_OTHER_NAMES)
                for each in node.names
            )
        case ast.ImportFrom(module=module, level=level):
            names = {alias.name for alias in node.names}
            return level > 0 or module == "re" or not names <= _FUNCTIONS.get(module or "", set())
        case ast.FunctionDef() | ast.Lambda():
            return _may_keep_in_head(node)
    return _makes_or_binds(getattr(node, "annotation", None))


def _is_one_of_its_kind(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and any(node.value is each for each in _CONSTANTS)
    return constant or bool(_type_in(node))


def _may_keep_in_head(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a default value can be changed, or evaluating the head may do more than name a type."""
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    # A call in a default makes one object for all calls: `float` may be any name by now.
    if any(isinstance(each, ast.Call) for each in _walked(defaults)):
        return True
    if not all(map(is_constant, defaults)):
        return True
    if isinstance(node, ast.Lambda):
        return False
    marks = [*node.decorator_list, *getattr(node, "type_params", ())]
    return bool(marks) or _makes_or_binds(node.returns)


def _makes_or_binds(annotation: ast.expr | None) -> bool:
    return any(isinstance(each, _MAKES_OR_BINDS) for each in _walked([annotation]))
