"""The calls with literal arguments in golden tests and prompts. Runs inside `Sandbox.analyse`."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.assertions import arguments_of
from codea1_env.sandbox.inside.analysis.literals import LiteralMeter, NotLiteralError, read

from .syntax import expression, parsed

Call = tuple[list[Any], dict[str, Any]]

MAX_CHARS = 1 << 18
"""Of a test or prompt that is read."""
MAX_CALLS = 200
"""Calls of one problem that are looked at."""
_MAX_CALL = 5_000
_CANDIDATE = "candidate"
"""What HumanEval calls the function in its tests."""


def literal_calls(tests: list[str], name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return (arguments, keyword arguments) of the calls of a function with literal arguments.

    Tests that cannot be parsed, and calls with other arguments, are passed over.

    Example:
        >>> literal_calls(["assert f([1], key='a') == f(x)", "assert g(2)"], "f")
        [(([1],), {'key': 'a'})]
    """
    found = (call for test in tests for call in _calls_in(test, (name,)))
    return [(tuple(arguments), keywords) for arguments, keywords in found]


def seen_calls(prompt: str, name: str, tests: list[str]) -> list[Call]:
    """Return the first calls of a function in golden tests, and in the examples of a prompt."""
    of_tests = (
        _calls_in(test, (name, _CANDIDATE) if _CANDIDATE in test else (name,))
        for test in tests
        if len(test) <= MAX_CHARS
    )
    found = itertools.chain(*of_tests, _calls_in_prose(prompt, name))
    return list(itertools.islice(found, MAX_CALLS))


def _calls_in(test: str, names: tuple[str, ...]) -> Iterator[Call]:
    for node in ast.walk(ast.Module(parsed(test) or [], [])):
        if (call := _literal_call(node, names)) is not None:
            yield call


def _calls_in_prose(prompt: str, name: str) -> Iterator[Call]:
    """Call in examples: what stands in brackets behind the name, where that is Python."""
    owner, _, method = name.rpartition(".")
    before = rf"(?:{re.escape(owner)}(?:\(\))?\.)?+" if owner else ""
    for found in re.finditer(rf"(?<!def )(?<![\w.]){before}{re.escape(method)}\(", prompt):
        text, depth = prompt[found.start() : found.start() + _MAX_CALL], 0
        for bracket in re.finditer(r"[()\[\]{}]", text):
            depth += 1 if bracket[0] in "([{" else -1
            if depth == 0 and bracket[0] == ")":
                node = expression(text[: bracket.end()])
                if node is None:
                    continue  # a bracket within a string
                call = _literal_call(node, (name, method))
                if call is not None:
                    yield call
                break
            if depth < 0:
                break


def _called(node: ast.expr) -> str:
    """Return the name of a function, or "Solution.f" for `Solution().f`."""
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, ast.Attribute):
        return ""
    base = node.value.func if isinstance(node.value, ast.Call) else node.value
    return f"{base.id}.{node.attr}" if isinstance(base, ast.Name) else ""


def _literal_call(node: ast.AST, names: tuple[str, ...]) -> Call | None:
    """Return the arguments of a call of one of some names; None if it is none, or they are no literals."""
    if not isinstance(node, ast.Call) or _called(node.func) not in names:
        return None
    meter = LiteralMeter()
    try:
        return arguments_of(node, lambda each: read(each, None, meter))
    except NotLiteralError:
        return None
