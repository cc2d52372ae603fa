"""A file -> its public functions and classes. Runs inside `Sandbox.analyse`; standard library only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONDITIONAL = (ast.If, ast.Try, ast.With)
_WITHOUT_BEHAVIOUR = {"Protocol", "TypedDict", "BaseException", "Exception", "Warning"}


def public(source: str) -> tuple[list[str], str]:
    r"""Functions and classes at the top of a file that are there for others, and why there are none.

    Private ones are left out, those that ``__all__`` does not name where it is a list of words, tests, protocols and
    exceptions.

    Returns:
        The names in the order of the file; and "", or what is wrong with the text.

    Example:
        >>> public("__all__ = ['f']\ndef f(): pass\ndef g(): pass\nclass E(ValueError): pass")
        (['f'], '')
        >>> public("def f(:")
        ([], 'line 1: invalid syntax')
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return [], f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return [], str(error) or type(error).__name__
    offered = _offered(tree.body)
    names = {
        node.name: None
        for node in _definitions(tree.body)
        if not node.name.startswith(("_", "test_", "Test"))
        and (offered is None or node.name in offered)
        and not (isinstance(node, ast.ClassDef) and _has_no_behaviour(node))
    }
    return list(names), ""


def _definitions(
    body: Iterable[ast.AST],
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, _DEFINITIONS):
            yield node
        elif isinstance(node, (*_CONDITIONAL, ast.ExceptHandler)) and not _is_main(node):
            yield from _definitions(ast.iter_child_nodes(node))


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _has_no_behaviour(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in node.bases}
    return any(
        each in _WITHOUT_BEHAVIOUR or each.endswith(("Error", "Exception", "Warning"))
        for each in bases
    )


def _offered(body: list[ast.stmt]) -> set[str] | None:
    """The words of ``__all__``; None where there is none, or it is computed."""
    found: set[str] | None = None
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
            value = getattr(node, "value", None)
            if not isinstance(value, (ast.List, ast.Tuple)):
                return None
            words = {each.value for each in value.elts if isinstance(each, ast.Constant)}
            found = (found or set()) | {word for word in words if isinstance(word, str)}
    return found
