"""Finds where a fault may make a program endless. Runs in a helper process; standard library only."""

import ast


def lines_before_loops_end(source: str) -> list[int]:
    r"""Return the lines of each function up to the end of its last `while` loop.

    A fault there easily makes the loop endless: in the loop itself, in what it starts from, or in the check
    that protects it.

    Example:
        >>> lines_before_loops_end("def f(n):\n    while n > 9:\n        n -= 9\n    return n")
        [1, 2, 3]
    """
    found: set[int] = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            ends = [
                loop.end_lineno or 0 for loop in ast.walk(function) if isinstance(loop, ast.While)
            ]
            if ends:
                found.update(range(function.lineno, max(ends) + 1))
    return sorted(found)
