"""The calls in golden tests. For `Sandbox.analyse`: only the standard library and the reader of literals."""

from __future__ import annotations

import ast
from typing import Any

from codea1_env.sandbox.inside.literals import NotLiteralError, read


def literal_calls(tests: list[str], name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return (arguments, keyword arguments) of the calls of a function with literal arguments.

    Tests that cannot be parsed, and calls with other arguments, are passed over.

    Example:
        >>> literal_calls(["assert f([1], key='a') == f(x)", "assert g(2)"], "f")
        [(([1],), {'key': 'a'})]
    """
    calls = []
    for test in tests:
        try:
            nodes = list(ast.walk(ast.parse(test)))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == name
            ):
                try:
                    arguments = tuple(read(argument) for argument in node.args)
                    keywords = {str(k.arg): read(k.value) for k in node.keywords if k.arg}
                except NotLiteralError:
                    continue
                if len(keywords) == len(node.keywords):
                    calls.append((arguments, keywords))
    return calls
