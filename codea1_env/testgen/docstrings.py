"""Docstrings -> their examples, as what tests can be made of. Runs inside `Sandbox.analyse`; standard library only."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read

_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_SHOWN = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Call)
_PRINTING = {"print", "pprint", "pp", "help", "write", "writelines", "stdout", "print_stack"}
"""Names of what prints, or may."""
_TIGHT = (
    ast.Call, ast.Attribute, ast.Subscript, ast.Name, ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.BinOp,
)  # fmt: skip
"""Expressions that need no parentheses beside ``==``."""


def examples(docs: list[str], offered: list[str]) -> list[dict[str, Any]]:
    r"""The examples of docstrings as tests.

    Args:
        docs: Docstrings.
        offered: Other names of the file. Where an example imports nothing else from a package, its tests do not.

    Returns:
        For each: ``before`` (the examples above it that show nothing), ``source`` (an expression), ``loads`` (names in
        both that they do not make), and what it should give: ``value`` (a literal; ``holds`` if it is True and the
        expression a comparison), ``shown`` (its repr), ``printed`` (its text, of ``print(expression)``) or ``error``
        (the name of an exception). Examples that print in other ways are left out.

    Example:
        >>> examples([">>> a = [1]\n>>> f(a)\n2\n>>> f(a) or 7\n2"], [])[1]
        {'before': 'a = [1]', 'source': '(f(a) or 7)', 'value': '2', 'loads': ['f']}
        >>> examples([">>> from pack import f, g\n>>> print(f(1))\n2\n"], ["f", "g"])
        [{'before': '', 'source': 'f(1)', 'printed': '2', 'loads': ['f']}]
    """
    found = []
    for text in docs:
        for each in _of_one(text, offered):
            found.append(each | {"loads": _loads(each["before"], each["source"])})
    return found


def _of_one(text: str, offered: list[str]) -> Iterator[dict[str, Any]]:
    try:
        parsed = doctest.DocTestParser().get_examples(inspect.cleandoc(text))
    except ValueError:
        return
    before: list[str] = []
    for each in parsed:
        source = each.source.strip()
        try:
            expression = ast.parse(source, mode="eval").body
        except _PARSE_ERRORS:
            expression = None
        want = each.want.strip()
        if expression is None or not (want or each.exc_msg):
            if not _imports_own(source, offered):
                before.append(source)
            continue
        result = {"before": "\n".join(before), "source": _text(expression, source)}
        if each.exc_msg:
            yield (result | {"error": each.exc_msg.partition(":")[0].strip().rpartition(".")[2]})
        elif each.options or "..." in want:
            continue
        elif _prints(expression):
            printed = _printed(expression, source)
            if printed and "<BLANKLINE>" not in want:  # such lines need not be empty
                yield result | {"source": printed, "printed": each.want[:-1]}
        elif not _is_literal(want):
            yield result | {"shown": want}
        elif want == "True" and isinstance(expression, ast.Compare):
            yield result | {"holds": want}
        else:
            tight = isinstance(expression, _TIGHT)
            yield result | {
                "source": result["source"] if tight else f"({result['source']})",
                "value": want,
            }


def _text(node: ast.expr, source: str) -> str:
    """The text of an expression, without comments below or beside it."""
    text = ast.get_source_segment(source, node)
    one_line = text is not None and ("\n" not in text or isinstance(node, ast.Call))
    return text if text is not None and one_line and "#" not in text else ast.unparse(node)


def _imports_own(source: str, offered: list[str]) -> bool:
    """Whether a statement only imports what the test has anyway, from the package that the file belongs to."""
    try:
        body = ast.parse(source).body
    except _PARSE_ERRORS:
        return False
    return bool(body) and all(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] not in sys.stdlib_module_names
        and all(
            alias.name in (*offered, "*") and alias.asname in (None, alias.name)
            for alias in node.names
        )
        for node in body
    )


def _prints(node: ast.AST) -> bool:
    """Whether something in it may print."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return bool(
        _PRINTING
        & (names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)})
    )


def _printed(node: ast.expr, source: str) -> str:
    """The expression in ``print(expression)``, where that is all that prints; else nothing."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "print" or node.keywords:
        return ""
    if len(node.args) != 1 or isinstance(node.args[0], ast.Starred) or _prints(node.args[0]):
        return ""
    return _text(node.args[0], source)


def _loads(before: str, source: str) -> list[str]:
    """Names that an example uses and does not make."""
    try:
        tree = ast.parse(f"{before}\n{source}")
    except _PARSE_ERRORS:
        return []
    names = [each for each in ast.walk(tree) if isinstance(each, ast.Name)]
    made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return sorted({each.id for each in names if isinstance(each.ctx, ast.Load)} - made)


def _is_literal(text: str) -> bool:
    """Whether a text is a value as Python shows it: no expression, as which some objects are shown."""
    try:
        node = ast.parse(text, mode="eval").body
        read(node)
    except (NotLiteralError, *_PARSE_ERRORS):
        return False
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return negative or isinstance(node, _SHOWN)
