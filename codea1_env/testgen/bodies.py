"""Test text -> the body of a function. Runs inside `Sandbox.analyse`; standard library only."""

from __future__ import annotations

import ast
import textwrap


def bodies(texts: list[str]) -> list[str]:
    r"""Indent texts, without changing what the strings in them say.

    Example:
        >>> bodies(["x = 1\nassert f(x) == 2", "assert f('''a\nb''') == 1"])
        ['    x = 1\n    assert f(x) == 2', "    assert f('a\\nb') == 1"]
    """
    return [textwrap.indent(_on_lines_of_its_own(text), "    ") for text in texts]


def _on_lines_of_its_own(text: str) -> str:
    tree = ast.parse(text)
    long = any(
        isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno
        for node in ast.walk(tree)
    )
    return ast.unparse(tree) if long else text.strip("\n")
