"""Python text -> syntax trees, and what the modules here ask of them."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)


def tree_of(text: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" and the like
        return ast.parse(text, mode=mode)


def attempt(text: str) -> list[ast.stmt] | BaseException:
    """Return the statements of a text, or why it is no Python."""
    try:
        return tree_of(text).body  # type: ignore[no-any-return]
    except PARSE_ERRORS as error:
        return error


@functools.lru_cache(maxsize=4)  # one program is looked at several times in a row
def parsed(code: str) -> list[ast.stmt] | None:
    """Return the statements of code, which nobody may change; None if it is no Python."""
    body = attempt(code)
    return body if isinstance(body, list) else None


def expression(text: str) -> ast.expr | None:
    """Return the expression that a text is; None if it is none."""
    try:
        return tree_of(text, "eval").body  # type: ignore[no-any-return]
    except PARSE_ERRORS:
        return None


def message_of(error: BaseException) -> str:
    """Return what a parser's error says, in one line."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"cannot be parsed: {message or type(error).__name__}"[:200]


def name_of(node: ast.AST) -> str:
    """Return the last part of a name, such as "approx" of `pytest.approx`."""
    if type(node) is ast.Name:
        return node.id
    return node.attr if type(node) is ast.Attribute else ""


def parameters_of(node: Any) -> list[str]:
    """Return the names of a function's parameters."""
    arguments = node.args
    rest = filter(None, (arguments.vararg, arguments.kwarg))
    listed = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest)
    return [each.arg for each in listed if each.arg not in ("self", "cls")]


def bound_by(node: Any) -> list[str]:
    """Return the names that a node binds or deletes, without parameters and what is in it."""
    kind = type(node)
    if kind is ast.Name:
        return [] if type(node.ctx) is ast.Load else [node.id]
    if kind is ast.alias:
        return [node.asname or node.name.partition(".")[0]]
    name = getattr(node, "name", None)  # functions, classes, handlers and patterns
    return [name] if type(name) is str else []


def in_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without those of functions and classes in it."""
    left = list(body)
    while left:
        node = left.pop()
        if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            yield node
            left += ast.iter_child_nodes(node)


def first_line(node: ast.stmt) -> int:
    """Return the line in which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def lone_surrogate(text: str) -> str:
    r"""Return the first character of a text that UTF-8 does not have; "" if there is none.

    Example:
        >>> lone_surrogate("a\udc80"), lone_surrogate("\u00e9")
        ('U+DC80', '')
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"U+{ord(text[error.start]):04X}"
    return ""
