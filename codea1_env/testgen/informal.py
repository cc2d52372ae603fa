"""Examples of docstrings that are no doctests -> doctests. Runs inside `Sandbox.analyse`; standard library only.

Many people write ``f(1) -> 2``, ``f(1)  # 2`` or ``f(1) returns 2``. Only what begins a line, is a call of the function
itself, and is followed by a value and nothing else is an example: in sentences such signs mean all kinds of things.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

_BULLET = re.compile(r"^(?:[-*•+]|\d+[.)]|(?:e\.g\.|ex\.|example:|examples:)|\.\.)\s+", re.I)
_SIGN = re.compile(
    r"\s*(?:-->|->|==>|=>|==|→|⇒|#+\s*(?:-->|->|==>|=>|==|=|→|⇒)?\s*(?:(?:returns?|gives|yields|evaluates to)\b:?)?"
    r"|\b(?:returns|gives|evaluates to)\b)\s*"
)
_NEXT = re.compile(r"^\s*#\s*(?:-->|->|==>|=>|=|→|⇒)?\s*(?:returns?\b:?)?\s*(?=\S)")
_RAISES = re.compile(r"raises?:?\s+(?:an?\s+)?`*((?:\w+\.)*\w*(?:Error|Exception))`*\b")
_WORDS = {"true": "True", "false": "False", "none": "None"}
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
_MAX_LINE = 300


def as_doctests(docs: list[str], name: str) -> list[str]:
    r"""The examples that are no doctests, as the texts of doctests; one for each docstring that has some.

    Args:
        docs: Docstrings of a function; or of a class and its methods.
        name: Its name, which an example must call; or a method of what that has made.

    Example:
        >>> as_doctests(["Half.\n\n  half(4) -> 2\n  half('a')  # raises TypeError\n  half(n) == 2 * n"], "half")
        [">>> half(4)\n2\n\n>>> half('a')\nTraceback (most recent call last):\nTypeError\n"]
        >>> as_doctests(["Use half(4) -> 2 or\nhalf(4) returns 2 mostly."], "half")
        []
    """
    return [text for doc in docs if (text := "\n".join(_of_one(inspect.cleandoc(doc), name)))]


def _of_one(text: str, name: str) -> Iterator[str]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        shown = line.strip()
        if len(shown) > _MAX_LINE or shown.startswith("..."):
            continue
        if shown.startswith(">>>"):
            if following.strip() and not following.strip().startswith(">>>"):
                continue  # it is a doctest
            shown = shown[3:].strip()
        found = _example(_BULLET.sub("", shown), name)
        if found is None and (sign := _NEXT.match(following)):
            found = _example(f"{shown} # {following[sign.end() :].strip()}", name)
        if found is not None:
            yield found


def _example(line: str, name: str) -> str | None:
    line = line.strip("` ")
    for sign in _SIGN.finditer(line):
        source, says = line[: sign.start()].strip("` "), line[sign.end() :].strip()
        says = re.sub(r"^`+|`+[.,;]?$", "", says)
        try:
            call = ast.parse(source, mode="eval").body
        except _PARSE_ERRORS:
            continue
        if not says or not sign.group().strip() or not _calls(call, name):
            return None
        if raised := _RAISES.match(says):
            return f">>> {source}\nTraceback (most recent call last):\n{raised.group(1)}\n"
        value = _value(says)
        return None if value is None else f">>> {source}\n{value}\n"
    return None


def _calls(node: ast.expr, name: str) -> bool:
    """Whether it is a call of the function, and its arguments say what they are; no signature such as ``f(x, y)``."""
    if not isinstance(node, ast.Call):
        return False
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    called = node.func
    parts = ast.unparse(called).split(".")
    return (
        isinstance(called, (ast.Name, ast.Attribute))
        and (parts[-1] == name or f"{name}(" in ast.unparse(called))
        and not any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(node))
        and names <= {name, *parts[:-1], *_builtins()}
    )


def _builtins() -> set[str]:
    return set(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))


def _value(says: str) -> str | None:
    """The value that a text says and nothing else: ``true`` is meant to be ``True``."""
    first = re.match(r"\w+", says)
    if first and first.group() in _WORDS:
        says = _WORDS[first.group()] + says[first.end() :]
    for text in (says, re.sub(r"\s*(?:[.;,]|\s\([^()]*\)|\s#.*)$", "", says)):
        try:
            value = ast.literal_eval(text)
        except _PARSE_ERRORS:
            continue
        return None if "Ellipsis" in repr(value) else repr(value)
    return None
