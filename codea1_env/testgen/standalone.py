"""A function of a file -> a program of its own, and what a coder is shown. Runs inside `Sandbox.analyse`."""

from __future__ import annotations

import ast
import sys
from typing import Any

from codea1_env.testgen.source import bound_names, describe, first_line, imports_of

_SIMPLE = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
_GENERATES = (ast.Yield, ast.YieldFrom)


def standalone(source: str, name: str) -> dict[str, Any]:
    r"""Take a function out of its file, with the statements that it needs.

    Returns:
        ``program``: only these statements. ``prompt``: the statements that the signature needs, the signature without
        decorators, and the docstring. ``reason``: why this is no
        problem for a coder; "" if it may be one.

    Example:
        >>> text = "import os\nfrom typing import Any\nONE = 1\n\ndef inc(n: Any):\n    'Add 1.'\n    return n + ONE\n"
        >>> found = standalone(text, "inc")
        >>> found["program"]
        "from typing import Any\n\nONE = 1\n\n\ndef inc(n: Any):\n    'Add 1.'\n    return n + ONE\n"
        >>> found["prompt"]
        "from typing import Any\n\n\ndef inc(n: Any):\n    'Add 1.'\n"
    """
    found = describe(source, name)
    if found["problem"]:
        return {"reason": f"it is no program: {found['problem']}"}
    if "kind" not in found:
        return {"reason": "", "others": found["names"]}
    if found["kind"] != "function":
        return {"reason": "it is a class"}
    lines = found["needed"].splitlines()
    tree = ast.parse(found["needed"])
    program = _joined([_text(lines, node) for node in tree.body], tree.body)
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ]
    function = nodes[-1]
    reason = _refused(function, tree.body)
    if reason:
        return {"reason": reason}
    shown, unknown = _for_signature(tree.body, function)
    if unknown:
        reason = f"its signature needs {unknown}, which only its file defines"
    head = lines[function.lineno - 1 : function.body[0].end_lineno]
    texts = [*(_text(lines, node) for node in shown), "\n".join(head)]
    return {"program": program, "prompt": _joined(texts, [*shown, function]), "reason": reason}


def _refused(function: ast.FunctionDef | ast.AsyncFunctionDef, body: list[ast.stmt]) -> str:
    if not ast.get_docstring(function):
        return "it has no docstring"
    if isinstance(function, ast.AsyncFunctionDef):
        return "it is asynchronous"
    if function not in body:
        return "it is defined under a condition"
    if function.body[0].lineno == function.lineno:
        return "its docstring stands beside its signature"
    if any(isinstance(each, _GENERATES) for each in ast.walk(function)):
        return "it is a generator"
    for node in body:
        if isinstance(node, ast.Try):  # it does without, perhaps
            continue
        for module in imports_of(node):
            if module.startswith("."):
                return f"it needs {module} of its package"
            if module.partition(".")[0] not in (*sys.stdlib_module_names, "numpy"):
                return f"it needs {module}"
    return ""


def _for_signature(
    body: list[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[list[ast.stmt], str]:
    """The statements that define the names in a signature, and the first name that another sort of statement defines."""
    parts: list[ast.AST] = [function.args]
    parts += [function.returns] if function.returns is not None else []
    wanted = {name for part in parts for name in _names(part)}
    shown: list[ast.stmt] = []
    for node in reversed(body):
        names = bound_names(node) & wanted
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not names and not future:
            continue
        if not (isinstance(node, _SIMPLE) or _is_for_checkers(node)):
            return [], min(names)
        wanted |= _names(node)
        shown.insert(0, node)
    return shown, ""


def _is_for_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _names(node: ast.AST) -> set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    for each in ast.walk(node):  # annotations in quotes
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            names |= set(each.value.replace("[", " ").replace("]", " ").replace(",", " ").split())
    return names


def _text(lines: list[str], node: ast.stmt) -> str:
    return "\n".join(lines[first_line(node) - 1 : node.end_lineno])


def _joined(texts: list[str], nodes: list[Any]) -> str:
    """Statements below each other, functions and classes apart; each line once."""
    imports = (ast.Import, ast.ImportFrom)
    found = texts[0] if texts else ""
    for text, before, node in zip(texts[1:], nodes, nodes[1:], strict=False):
        if node.lineno == before.end_lineno:  # the text of the other is that of this one
            continue
        both = isinstance(before, imports) and isinstance(node, imports)
        plain = not isinstance(node, _DEFINITIONS) and not isinstance(before, _DEFINITIONS)
        found += ("\n" if both else "\n\n" if plain else "\n\n\n") + text
    return found + "\n"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
