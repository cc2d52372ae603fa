"""What a docstring says: its examples, as what tests can be made of, and the default values that it names.

Runs inside `Sandbox.analyse`; standard library only. Nothing is called: all of it stands in the text.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
import sys
from collections.abc import Collection, Iterator
from typing import Any

from codea1_env.sandbox.inside.analysis.literals import NotLiteralError, read

_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SHOWN = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Call)
_PRINTING = {"print", "pprint", "pp", "help", "write", "writelines", "stdout", "print_stack"}
"""Names of what prints, or may."""


def examples(docs: list[str], offered: list[str]) -> list[dict[str, Any]]:
    r"""Return the examples of docstrings as tests.

    Args:
        docs: Docstrings.
        offered: Other names of the file. Where an example imports nothing else from a package, its tests do not.

    Returns:
        For each: ``before`` (the examples above it that show nothing), ``source`` (an expression), ``loads`` (names in
        both that they do not make), and what it should give, as a ``form`` and its ``text``: a "value" (a literal; it
        "holds" if that is True and the expression a comparison), what is "shown" (its repr), "printed" (its text, of
        ``print(expression)``) or an "error" (the name of an exception). Examples that print in other ways are left out.

    Example:
        >>> examples([">>> a = [1]\n>>> f(a)\n2\n>>> f(a) or 7\n2"], [])[1]
        {'before': 'a = [1]', 'source': '(f(a) or 7)', 'form': 'value', 'text': '2', 'loads': ['f']}
        >>> [found] = examples([">>> from pack import f, g\n>>> print(f(1))\n2\n"], ["f", "g"])
        >>> found
        {'before': '', 'source': 'f(1)', 'form': 'printed', 'text': '2', 'loads': ['f']}
    """
    return [
        {"before": before, "source": source, "form": form, "text": text, "loads": _loads(f"{before}\n{source}")}
        for each in docs
        for before, source, form, text in _of_one(each, offered)
    ]  # fmt: skip


def _of_one(text: str, offered: list[str]) -> Iterator[tuple[str, str, str, str]]:
    try:
        parsed = doctest.DocTestParser().get_examples(inspect.cleandoc(text))
    except ValueError:
        return
    above: list[str] = []
    for each in parsed:
        source, want = each.source.strip(), each.want.strip()
        node = _expression(source)
        if node is None or not (want or each.exc_msg):
            if not _imports_own(source, offered):
                above.append(source)
            continue
        before, source = "\n".join(above), _text(node, source)
        if each.exc_msg:
            yield before, source, "error", each.exc_msg.partition(":")[0].strip().rpartition(".")[2]
        elif each.options or "..." in want:
            continue
        elif _prints(node):
            inner = _printed(node)
            if inner is not None and "<BLANKLINE>" not in want:  # such lines need not be empty
                yield before, _text(inner, each.source.strip()), "printed", each.want[:-1]
        elif not _is_literal(want):
            yield before, source, "shown", want
        elif want == "True" and isinstance(node, ast.Compare):
            yield before, source, "holds", want
        else:
            yield before, source if _binds_tightly(node, source) else f"({source})", "value", want


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except _PARSE_ERRORS:
        return None


def _text(node: ast.expr, source: str) -> str:
    """Return the text of an expression, without comments below or beside it."""
    text = ast.get_source_segment(source, node) or "#"
    one_line = "\n" not in text or isinstance(node, ast.Call)
    return text if one_line and "#" not in text else ast.unparse(node)


def _binds_tightly(node: ast.expr, source: str) -> bool:
    """Whether an expression needs no parentheses beside ``==``."""
    beside = _expression(f"{source} == 0")
    return (
        isinstance(beside, ast.Compare)
        and len(beside.ops) == 1
        and ast.dump(beside.left) == ast.dump(node)
    )


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
    names = {getattr(each, "id", getattr(each, "attr", None)) for each in ast.walk(node)}
    return bool(_PRINTING & names)


def _printed(node: ast.expr) -> ast.expr | None:
    """Return the expression in ``print(expression)``, where that is all that prints."""
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
            return None if isinstance(inner, ast.Starred) or _prints(inner) else inner
    return None


def _loads(text: str) -> list[str]:
    """Names that a text uses and does not make."""
    try:
        names = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)]
    except _PARSE_ERRORS:
        return []
    made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return sorted({each.id for each in names if isinstance(each.ctx, ast.Load)} - made)


def _is_literal(text: str) -> bool:
    """Whether a text is a value as Python shows it: no expression, as which some objects are shown."""
    node = _expression(text)
    if node is None:
        return False
    try:
        read(node)
    except (NotLiteralError, *_PARSE_ERRORS):
        return False
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return negative or isinstance(node, _SHOWN)


# Examples that are no doctests. Many people write ``f(1) -> 2``, ``f(1)  # 2`` or ``f(1) returns 2``. Only what begins a
# line, is a call of the function itself, and is followed by a value and nothing else is an example: in sentences such
# signs mean all kinds of things.

_BULLET = re.compile(r"^(?:[-*•+]|\d+[.)]|(?:e\.g\.|ex\.|example:|examples:)|\.\.)\s+", re.I)
_SIGN = re.compile(
    r"\s*(?:-->|->|==>|=>|==|→|⇒|#+\s*(?:-->|->|==>|=>|==|=|→|⇒)?\s*(?:(?:returns?|gives|yields|evaluates to)\b:?)?"
    r"|\b(?:returns|gives|evaluates to)\b)\s*"
)
_NEXT = re.compile(r"^\s*#\s*(?:-->|->|==>|=>|=|→|⇒)?\s*(?:returns?\b:?)?\s*(?=\S)")
_RAISES = re.compile(r"raises?:?\s+(?:an?\s+)?`*((?:\w+\.)*\w*(?:Error|Exception))`*\b")
_MAX_LINE = 300


def as_doctests(docs: list[str], name: str) -> list[str]:
    r"""Return the examples that are no doctests, as the texts of doctests; one for each docstring that has some.

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
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
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
        call = _expression(source)
        if call is None:
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
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    called = ast.unparse(node.func)
    parts = called.split(".")
    inner = [*ast.walk(node)]
    return (
        (parts[-1] == name or f"{name}(" in called)
        and not any(isinstance(each, ast.Constant) and each.value is ... for each in inner)
        and {each.id for each in inner if isinstance(each, ast.Name)}
        <= {name, *parts[:-1], *dir(builtins)}
    )


def _value(says: str) -> str | None:
    """Return the value that a text says and nothing else."""
    for text in (says, re.sub(r"\s*(?:[.;,]|\s\([^()]*\)|\s#.*)$", "", says)):
        try:
            value = ast.literal_eval(_as_python(text))
        except _PARSE_ERRORS:
            continue
        return None if "Ellipsis" in repr(value) else repr(value)
    return None


def _as_python(text: str) -> str:
    """Return the text, in which ``true`` is meant to be ``True``."""
    return re.sub(r"^(?:true|false|none)\b", lambda word: word[0].capitalize(), text, flags=re.I)


# Default values that are documented. Only a value that ends its sentence counts, once for each parameter; ``None`` in the
# signature often stands for another value, and says nothing.

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
    r"""Return the parameters of a function, or of a class and its methods, whose default is documented as another one.

    Returns:
        For each: ``owner`` (the function, or ``Class.method``), ``name``, ``says`` and ``value`` (both as literals).

    Example:
        >>> doc = "'''Wait.\n\n    Args:\n        seconds: How long. Defaults to 5.\n    '''"
        >>> wrong_defaults(f"def wait(seconds=3):\n    {doc}\n", "wait")
        [{'owner': 'wait', 'name': 'seconds', 'says': '5', 'value': '3'}]
    """
    try:
        walked = ast.walk(ast.parse(source))
    except _PARSE_ERRORS:
        return []
    node = next((each for each in walked if getattr(each, "name", None) == name), None)
    if isinstance(node, _FUNCTIONS):
        return [*_compared(node.name, node, ast.get_docstring(node))]
    found: list[dict[str, Any]] = []
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            if isinstance(each, _FUNCTIONS):
                texts = [each, node] if each.name == "__init__" else [each]
                for text in map(ast.get_docstring, texts):
                    found += _compared(f"{name}.{each.name}", each, text)
    return found


def _compared(
    owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str | None
) -> Iterator[dict[str, Any]]:
    given = node.args
    places = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(reversed(places), reversed(given.defaults), strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    values = {one.arg: value for one, value in pairs if value is not None}
    for name, described in _described(text or "", values).items():
        try:
            value = ast.literal_eval(values[name])
            [says] = [ast.literal_eval(_as_python(each)) for each in _SAYS.findall(described)]
        except _PARSE_ERRORS:
            continue
        if value is not None and not _same(value, says):
            yield {"owner": owner, "name": name, "says": repr(says), "value": repr(value)}


def _described(text: str, names: Collection[str]) -> dict[str, str]:
    """Return what a docstring says of each parameter; the first place counts."""
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


def _same(value: Any, says: Any) -> bool:
    """Whether both mean the same: nobody minds how a line break is quoted, or the dots behind a word."""
    if isinstance(value, str) and isinstance(says, str):
        return _plain(value) == _plain(says)
    return bool(value == says) or not (value or says)


def _plain(text: str) -> str:
    quoted = text.encode("unicode_escape").decode().replace("\\\\", "\\")
    return quoted.replace(" ", "").strip(".").lower().replace("-", "_")
