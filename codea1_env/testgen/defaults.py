"""What a docstring says of default values, where the signature says otherwise. Runs inside `Sandbox.analyse`.

Standard library only. Nothing is called: both stand in the text. Only a value that ends its sentence counts, once for
each parameter; ``None`` in the signature often stands for another value, and says nothing.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
_SAYS = re.compile(
    r"\bdefault(?:s\s+to|\s+value\s+is|\s+is|\s*[:=]{1,2}|)\s*`*"
    r"('[^'\n]*'|\"[^\"\n]*\"|-?\d+(?:\.\d+)?(?:e-?\d+)?|True|False|None)`*(?=\s*[)\]]|[.;]?\s*$|[.;]\s)",
    re.I,
)
_PARAMETER = re.compile(
    r"^\s*(?::param(?:eter)?\s+(?:[\w\[\], .|]+\s+)?\*{0,2}(\w+)\s*:"
    r"|@param\s+(\w+)\s*:?"
    r"|[-*]?\s*`{0,2}(\w+)`{0,2}\s*(?:\([^()\n]*\))?\s*(?::|--|-\s))"
)


def wrong_defaults(source: str, name: str) -> list[dict[str, Any]]:
    r"""The parameters of a function, or of a class and its methods, whose default is documented as another one.

    Returns:
        For each: ``owner`` (the function, or ``Class.method``), ``name``, ``says`` and ``value`` (both as literals).

    Example:
        >>> doc = "'''Wait.\n\n    Args:\n        seconds: How long. Defaults to 5.\n    '''"
        >>> wrong_defaults(f"def wait(seconds=3):\n    {doc}\n", "wait")
        [{'owner': 'wait', 'name': 'seconds', 'says': '5', 'value': '3'}]
    """
    try:
        tree = ast.parse(source)
    except _PARSE_ERRORS:
        return []
    named = [node for node in ast.walk(tree) if getattr(node, "name", None) == name]
    return [found for node in named[:1] for found in _of(node)]


def _of(node: ast.AST) -> Iterator[dict[str, Any]]:
    if isinstance(node, _FUNCTIONS):
        yield from _compared(node.name, node, ast.get_docstring(node))
    elif isinstance(node, ast.ClassDef):
        for each in node.body:
            if isinstance(each, _FUNCTIONS):
                owner = f"{node.name}.{each.name}"
                yield from _compared(owner, each, ast.get_docstring(each))
                if each.name == "__init__":
                    yield from _compared(owner, each, ast.get_docstring(node))


def _compared(
    owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str | None
) -> Iterator[dict[str, Any]]:
    given = node.args
    places = [*given.posonlyargs, *given.args]
    defaults = dict(zip(reversed(places), reversed(given.defaults), strict=False))
    defaults |= {
        one: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value
    }
    values = {one.arg: value for one, value in defaults.items()}
    for name, described in _described(text or "", values).items():
        said = _SAYS.findall(described)
        try:
            value = ast.literal_eval(values[name])
            [says] = [ast.literal_eval(_as_python(each)) for each in said]
        except _PARSE_ERRORS:
            continue
        if value is not None and not _same(value, says):
            yield {"owner": owner, "name": name, "says": repr(says), "value": repr(value)}


def _described(text: str, names: Any) -> dict[str, str]:
    """What a docstring says of each parameter; the first place counts."""
    found: dict[str, str] = {}
    current, margin = "", 0
    for line in inspect.cleandoc(text).splitlines():
        indent = len(line) - len(line.lstrip())
        match = _PARAMETER.match(line)
        name = next(filter(None, match.groups()), "") if match else ""
        if name in names:
            current, margin = (name, indent) if name not in found else ("", 0)
            if current:
                found[current] = line
        elif line.strip() and indent <= margin:
            current = ""
        elif current:
            found[current] += f"\n{line}"
    return found


def _as_python(text: str) -> str:
    return text.capitalize() if text.lower() in ("true", "false", "none") else text


def _same(value: Any, says: Any) -> bool:
    """Whether both mean the same: nobody minds how a line break is quoted, or the dots behind a word."""
    if isinstance(value, str) and isinstance(says, str):
        return _plain(value) == _plain(says)
    return bool(value == says) or not (value or says)


def _plain(text: str) -> str:
    quoted = text.encode("unicode_escape").decode().replace("\\\\", "\\")
    return quoted.replace(" ", "").strip(".").lower().replace("-", "_")
