"""A file -> the packages that it imports. Runs inside `Sandbox.analyse`; standard library only."""

from __future__ import annotations

import ast


def imported(source: str) -> list[str]:
    r"""The top-level names of what a text imports absolutely, anywhere in it.

    Example:
        >>> imported("import os.path, six\ndef f():\n    from . import a\n    from attr.x import b")
        ['attr', 'os', 'six']
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return sorted(names)
