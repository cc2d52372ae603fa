"""Inputs in the tests of public data sets. For `Sandbox.analyse`: only the standard library and the reader of literals."""

from __future__ import annotations

import ast
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read_items


def first_inputs(program: str, count: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    r"""Return the first calls of a test program in the style of EvalPlus, which has a list `inputs`.

    Those that are no literals are passed over.

    Example:
        >>> first_inputs("def check(f):\n    inputs = [[1, 'a'], [g()], [2, 'b'], [3, 'c']]", 2)
        [((1, 'a'), {}), ((2, 'b'), {})]
    """
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for node in ast.walk(ast.parse(program)):
        if (
            isinstance(node, ast.Assign)
            and [getattr(target, "id", "") for target in node.targets] == ["inputs"]
            and isinstance(node.value, ast.List)
        ):
            for item in node.value.elts:
                if len(calls) == count:
                    break
                try:
                    calls.append((tuple(read_items(item)), {}))
                except NotLiteralError:
                    continue
    return calls
