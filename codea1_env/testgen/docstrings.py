"""Docstrings -> their examples, as what tests can be made of. Runs inside `Sandbox.analyse`; standard library only."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
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
    return [text for doc in docs if (text := "\n".join(_converted(inspect.cleandoc(doc), name)))]


def _converted(text: str, name: str) -> Iterator[str]:
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
