"""Inputs in the tests of public data sets. For `Sandbox.analyse`: only the standard library."""

from __future__ import annotations

import ast
from typing import Any


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
                    calls.append((tuple(ast.literal_eval(item)), {}))
                except (ValueError, TypeError, MemoryError, RecursionError):
                    continue
    return calls
