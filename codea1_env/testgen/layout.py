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
_NAME = "\0"
"""Where the name of a test comes when it is known; in no text of ours."""


def laid_out(
    tests: list[tuple[str, str, str]], function: str, snake: str, parameters: list[str], local: str
) -> list[str]:
    r"""Write test functions.

    Args:
        tests: For each its body, a note for people ("" for none), and the reason why it is skipped ("" if it is not).
        function: Name of what is tested.
        snake: The same as a part of a name.
        parameters: Names of its parameters by position.
        local: A statement that every test function begins with; or nothing.

    Example:
        >>> tests = [("assert half(2) == 1", "", ""), ("assert half(-3) == -2", "", ""), ("assert half(1) is None", "", "")]
        >>> print("\n\n\n".join(laid_out(tests, "half", "half", ["n"], "")))
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
    alike: dict[tuple[str, ...], list[list[str]]] = {}
    alone: list[tuple[str, str, str]] = []
    ways = [_way(body, function, parameters) for body, _, _ in tests]
    for (body, note, why), way in zip(tests, ways, strict=True):
        if way is None or why or function == "pytest":
            alone.append((body, note, why))
        else:
            alike.setdefault((note, *way[0]), []).append(way[1])
    parts: list[tuple[str, str]] = []
    for key, rows in alike.items():
        if len(rows) < _ALIKE:
            alone += [
                test
                for test, way in zip(tests, ways, strict=True)
                if way is not None and (test[1], *way[0]) == key and not test[2]
            ]
        else:
            parts.append(_parametrised(key, rows, snake, local))
    # What is asked stands at the end.
    alone.sort(key=lambda test: (bool(test[2]), not test[1], len(test[0]), test[0]))
    parts += [_single(*test, function, snake, local) for test in alone]
    return list(_named(parts))


def _way(
    body: str, function: str, parameters: list[str]
) -> tuple[tuple[str, ...], list[str]] | None:
    """How a body calls the function, and with what; None if it is no single call in a simple statement."""
    if "#" in body:
        return None
    [statement, *more] = ast.parse(body).body
    calls = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
    ]
    if more or len(calls) != 1 or any(_is_lambda(node) for node in ast.walk(statement)):
        return None
    [call] = calls
    if any(isinstance(each, ast.Starred) for each in call.args) or None in [
        each.arg for each in call.keywords
    ]:
        return None
    places = [
        parameters[number] if number < len(parameters) else "" for number in range(len(call.args))
    ]
    names = [*places, *(str(each.arg) for each in call.keywords)]
    row = [ast.unparse(each) for each in [*call.args, *(word.value for word in call.keywords)]]
    if not names or "" in names or len({*names}) < len(names):
        return None
    names = [
        f"{name}_" if name in (function, "expected", "pytest", "list", "repr", "type") else name
        for name in names
    ]
    call.args = [ast.Name(name) for name in names[: len(call.args)]]
    for word, name in zip(call.keywords, names[len(call.args) :], strict=True):
        word.value = ast.Name(name)
    what = ""
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        [expected] = statement.test.comparators[-1:]
        if len(statement.test.comparators) > 1 or call in ast.walk(expected):
            return None
        row.append(ast.unparse(expected))
        statement.test.comparators = [ast.Name("expected")]
        names.append("expected")
        what = "is" if isinstance(statement.test.ops[0], ast.Is) else ""
    elif isinstance(statement, ast.With):
        first = statement.items[0].context_expr
        what = "raises_" + _snake(ast.unparse(first).rpartition("(")[2].rstrip(")"))
    else:
        return None
    return (what, ast.unparse(statement), *names), row


def _is_lambda(node: ast.AST) -> bool:
    return isinstance(node, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield))


def _parametrised(
    key: tuple[str, ...], rows: list[list[str]], snake: str, local: str
) -> tuple[str, str]:
    note, what, statement, *names = key
    rows = sorted(rows, key=lambda row: (sum(map(len, row)), row))
    shown = (
        f'"{names[0]}"' if len(names) == 1 else "(" + ", ".join(f'"{name}"' for name in names) + ")"
    )
    cells = [row[0] if len(names) == 1 else f"({', '.join(row)})" for row in rows]
    lines = [
        "@pytest.mark.parametrize(",
        f"    {shown},",
        "    [",
        *(f"        {cell}," for cell in dict.fromkeys(cells)),
        "    ],",
        ")",
    ]
    documented = "as_documented" if note else ""
    name = "_".join(filter(None, ["test", snake, documented, what]))
    body = textwrap.indent(statement, "    ")
    return name, "\n".join(
        [*lines, f"def {_NAME}({', '.join(names)}):{_comment(note)}", f"{local}{body}"]
    )


def _single(
    body: str, note: str, why: str, function: str, snake: str, local: str
) -> tuple[str, str]:
    """One test function, named after the arguments of the first call, or the methods that are called."""
    body = _on_lines_of_its_own(body)
    tree = ast.parse(body)
    words = [*_steps(tree, function)] or [snake]
    name = "_".join(["test", snake, *words])[: _MAX_NAME + len(snake)].rstrip("_")
    head = [f"@pytest.mark.skip(reason={why!r})"] if why else []
    lines = [*head, f"def {_NAME}():{_comment(note)}", f"{local}{textwrap.indent(body, '    ')}"]
    return name, "\n".join(lines)


def _steps(tree: ast.Module, function: str) -> list[str]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    own = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == function]
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    methods = list(filter(None, map(_method, nodes)))
    if methods:
        return [_snake(each).strip("_") for each in methods]
    if not own:
        return []
    given = [*own[0].args, *own[0].keywords]
    return [_words(each) for each in given] if given else ["without_arguments"]


def _method(node: ast.expr) -> str:
    """What is done with an object that has a name; "" if that is not all."""
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
    """A short text for an argument."""
    if isinstance(node, ast.keyword):
        return f"{node.arg}_{_words(node.value)}"
    text = ast.unparse(node)
    if text in ("''", '""', "[]", "()", "{}", "set()", "b''"):
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


def _comment(note: str) -> str:
    return f"  # {note}" if note else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _on_lines_of_its_own(text: str) -> str:
    """The text so that indenting it changes no string in it."""
    tree = ast.parse(text)
    long = any(
        isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno
        for node in ast.walk(tree)
    )
    return ast.unparse(tree) if long else text.strip("\n")
