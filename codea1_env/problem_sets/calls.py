"""The calls in golden tests. For `Sandbox.analyse`: only the standard library and the reader of literals."""

from __future__ import annotations

import ast
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read, read_items, write


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


MAX_LISTED_CHARS = 1000
"""Of a test that is made of a list of inputs: what a player could write."""


def listed_tests(program: str, name: str) -> list[str]:
    r"""Return the tests of a test program in the style of EvalPlus, which has lists `inputs` and `results`.

    Those that are no literals, or long, are passed over.

    Example:
        >>> listed_tests("def check(c):\n    inputs = [[1, 'a'], [g()]]\n    results = [[1], 2]", "f")
        ["assert f(1, 'a') == [1]"]
    """
    lists: dict[str, list[ast.expr]] = {}
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    lists.setdefault(target.id, node.value.elts)
    tests = []
    for given, returned in zip(lists.get("inputs", []), lists.get("results", []), strict=False):
        try:
            texts = [write(each) for each in read_items(given)]
            value = write(read(returned))
        except NotLiteralError:
            continue
        if value is not None and None not in texts:
            test = f"assert {name}({', '.join(map(str, texts))}) == {value}"
            if len(test) <= MAX_LISTED_CHARS:
                tests.append(test)
    return tests
