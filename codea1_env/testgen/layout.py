"""Bodies of tests -> test functions: alike ones as one parametrised test, the others named after what they call.

Runs inside `Sandbox.analyse`; standard library only. A test keeps its name, and its place, as long as it is there: a
second file for a function that has changed a little differs only a little from the first.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Iterable

_ALIKE = 2
"""As many are written as one."""
_MAX_NAME = 40
_MODULES = ("pytest", "asyncio", "datetime", "decimal", "fractions")
_INSIDE = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.Starred)
_TAKEN = ("expected", "pytest", "list", "repr", "type")
"""Names that a test of a table uses."""
_NAME = "\0"
"""Where the name of a test comes when it is known; in no text of ours."""


def snake_case(name: str) -> str:
    """Return a name in the form that functions and variables have.

    Example:
        >>> snake_case("LRUCacheOf2")
        'lrucache_of2'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def laid_out(
    bodies: list[str], function: str, snake: str, parameters: list[str]
) -> list[str]:
    r"""Write test functions, those that return before those that raise.

    Args:
        bodies: Of the tests.
        function: Name of what is tested.
        snake: The same as a part of a name.
        parameters: Names of its parameters by position.

    Example:
        >>> bodies = ["assert half(2) == 1", "assert half(-3) == -2", "assert half(1) is None"]
        >>> print("\n\n\n".join(laid_out(bodies, "half", "half", ["n"])))
        @pytest.mark.parametrize(
            ("n", "expected"),
            [
                (2, 1),
                (-3, -2),
            ],
        )
        def test_half(n, expected):
            assert half(n) == expected
        <BLANKLINE>
        <BLANKLINE>
        def test_half_1():
            assert half(1) is None
    """
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    alone: dict[tuple[str, ...], list[str]] = {}
    for number, body in enumerate(bodies):
        way = _way(body, function, parameters) if function != "pytest" else None
        key: tuple[str, ...] = (str(number),)
        if way is not None:
            key, row = way
            tables.setdefault(key, []).append(row)
        alone.setdefault(key, []).append(body)
    tables = {key: rows for key, rows in tables.items() if len(rows) >= _ALIKE}
    parts = [_parametrised(key, rows, snake) for key, rows in tables.items()]
    singles = [body for key, some in alone.items() if key not in tables for body in some]
    singles.sort(key=lambda body: (len(body), body))
    parts += [_single(body, function, snake) for body in singles]
    parts.sort(key=lambda part: "pytest.raises(" in part[1])
    return list(_named(parts))


def _way(
    body: str, function: str, parameters: list[str]
) -> tuple[tuple[str, ...], list[str]] | None:
    """How a body calls the function, and with what; None if it is no single call in a simple statement."""
    [statement, *more] = ast.parse(body).body
    nodes = [*ast.walk(statement)]
    calls = [
        each for each in nodes if isinstance(each, ast.Call) and _named_so(each.func, function)
    ]
    if more or "#" in body or len(calls) != 1 or any(isinstance(each, _INSIDE) for each in nodes):
        return None
    [call] = calls
    places = [*parameters, *[""] * len(call.args)][: len(call.args)]
    names = [*places, *(each.arg or "" for each in call.keywords)]
    if not names or "" in names or len({*names}) < len(names):
        return None
    row = [ast.unparse(each) for each in [*call.args, *(word.value for word in call.keywords)]]
    names = [f"{name}_" if name in (function, *_TAKEN) else name for name in names]
    call.args = [ast.Name(name) for name in names[: len(call.args)]]
    for word, name in zip(call.keywords, names[len(call.args) :], strict=True):
        word.value = ast.Name(name)
    match statement:
        case ast.Assert(test=ast.Compare(ops=[how], comparators=[expected]) as test):
            if call in ast.walk(expected):
                return None
            row.append(ast.unparse(expected))
            test.comparators = [ast.Name("expected")]
            names.append("expected")
            what = "is" if isinstance(how, ast.Is) else ""
        case ast.With(items=[ast.withitem(context_expr=ast.Call(args=[error]))]):
            what = "raises_" + snake_case(ast.unparse(error))
        case _:
            return None
    return (what, ast.unparse(statement), *names), row


def _named_so(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parametrised(key: tuple[str, ...], rows: list[list[str]], snake: str) -> tuple[str, str]:
    what, statement, *names = key
    rows = sorted(rows, key=lambda row: (sum(map(len, row)), row))
    one = len(names) == 1
    shown = ", ".join(f'"{name}"' for name in names)
    cells = [row[0] if one else f"({', '.join(row)})" for row in rows]
    lines = [
        "@pytest.mark.parametrize(",
        f"    {shown}," if one else f"    ({shown}),",
        "    [",
        *(f"        {cell}," for cell in dict.fromkeys(cells)),
        "    ],",
        ")",
        f"def {_NAME}({', '.join(names)}):",
        textwrap.indent(statement, "    "),
    ]
    return "_".join(filter(None, ["test", snake, what])), "\n".join(lines)


def _single(body: str, function: str, snake: str) -> tuple[str, str]:
    """One test function, named after the arguments of the first call, or the methods that are called."""
    body = _on_lines_of_its_own(body)
    words = [*_steps(ast.parse(body), function)] or [snake]
    words = [word for word, _ in itertools.groupby(words)]
    name = "_".join(["test", snake, *words])[: _MAX_NAME + len(snake)].rstrip("_")
    return name, f"def {_NAME}():\n{textwrap.indent(body, '    ')}"


def _steps(tree: ast.Module, function: str) -> list[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    own = [node for node in nodes if isinstance(node, ast.Call) and _named_so(node.func, function)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    if methods := list(filter(None, map(_method, nodes))):
        return [snake_case(each).strip("_") for each in methods]
    given = [*own[0].args, *own[0].keywords] if own else []
    return [_words(each) for each in given] or ["without_arguments"] * bool(own)


def _method(node: ast.expr) -> str:
    """Return what is done with an object that has a name; "" if that is not all."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return "" if name in _MODULES else method
        case ast.Call(func=ast.Name(id="str" | "repr" | "bool" | "next" | "reversed" as method), args=[ast.Name()]):  # fmt: skip
            return method
        case ast.Subscript(value=ast.Name()):
            return "item"
        case ast.Compare(ops=[ast.In()], comparators=[ast.Name()]):
            return "contains"
    return ""


def _words(node: ast.AST) -> str:
    """Return a short text for an argument."""
    if isinstance(node, ast.keyword):
        return f"{node.arg}_{_words(node.value)}"
    text = ast.unparse(node)
    if not re.search(r"[^][(){}'\"]", text.removeprefix("set").removeprefix("b")):
        return "empty"
    text = re.sub(r"-(?=\d)", "minus_", text).replace(".", "_")
    return "_".join(re.findall(r"[a-z0-9_]+", text.lower(), re.A)).strip("_") or "signs"


def _named(parts: Iterable[tuple[str, str]]) -> Iterable[str]:
    taken: set[str] = set()
    for name, text in parts:
        free = (f"{name}_{number}" for number in itertools.count(2))
        while name in taken:
            name = next(free)
        taken.add(name)
        yield text.replace(_NAME, name, 1)


def _on_lines_of_its_own(text: str) -> str:
    """Return the text so that indenting it changes no string in it."""
    tree = ast.parse(text)
    strings = [each for each in ast.walk(tree) if isinstance(each, (ast.Constant, ast.JoinedStr))]
    long = any(each.end_lineno != each.lineno for each in strings)
    return ast.unparse(tree) if long else text.strip("\n")
