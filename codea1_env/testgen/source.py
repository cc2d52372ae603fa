"""A user's file -> what is known of one function or class in it. Runs inside `Sandbox.analyse`.

The text is treated as hostile, so this file is loaded alone in a helper process, imports only the standard library
and the reader of literals, and gives plain data. `codea1_env.testgen.target` makes objects of it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from codea1_env.testgen.docstrings import as_doctests

_PARSE_ERRORS = (ValueError, RecursionError, MemoryError, OverflowError)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONDITIONAL = (ast.If, ast.Try, ast.ExceptHandler, ast.With)
_MAX_TEXT = 60
"""Characters of a literal in the program that may be worth trying as an argument."""
_QUOTED = re.compile(r"\"([^\"\n]{1,40})\"|'([^'\n]{1,40})'|`([^`\n]{1,40})`")
_DOCUMENTED_ERROR = re.compile(
    r"(?:^[ \t]*|:raises?[ \t]+)(\w*(?:Error|Exception|Exit|Iteration))[ \t]*:", re.M
)
_EXITS = {"sys.exit", "os._exit", "exit", "quit", "_exit"}
_MEANT = {
    "__getitem__": ("IndexError", "KeyError"), "__delitem__": ("IndexError", "KeyError"),
    "__missing__": ("IndexError", "KeyError"), "__next__": ("StopIteration",),
}  # fmt: skip
"""Exceptions by which methods say that there is nothing."""
_CHANGING = (ast.Assign, ast.AugAssign, ast.Delete, ast.Expr, ast.For, ast.If, ast.With, ast.Try)


def describe(source: str, name: str) -> dict[str, Any]:
    r"""Describe a function or class at the top level of a file.

    Returns:
        ``problem`` ("" or why the text is no program, with the line); ``names`` of all functions and classes;
        and if there is one of this name, also: ``kind`` ("function" or "class"), ``asynchronous``, ``lines``
        (first and last), ``prompt`` (signature and docstring), ``needed`` (the file without statements that it
        does not need, line by line), ``redefined``
        (only what defines and changes it, likewise), ``imports`` (modules, of the statements needed),
        ``raises`` (errors that are raised or documented), ``words``, ``numbers`` and ``patterns`` (literals in
        the code and quoted words in the docstring), ``docs`` (docstrings of the function; or of the class and its
        methods; and examples in them that are no doctests, as doctests), ``offered`` (all names that the file binds at its top).

    Example:
        >>> found = describe("import os\ndef inc(n):\n    'Add 1.'\n    return n + 1\n", "inc")
        >>> found["kind"], found["lines"], found["prompt"], found["needed"].split("\n")[0], found["numbers"]
        ('function', (2, 4), "def inc(n):\n    'Add 1.'", '', [1])
        >>> describe("def f(:", "f")["problem"]
        'line 1: invalid syntax'
    """
    tree, problem = _parsed(source)
    definitions = {node.name: node for node in _definitions(tree.body)}
    found: dict[str, Any] = {"problem": problem, "names": list(definitions)}
    node = definitions.get(name)
    if node is None:
        return found
    needed = _needed(tree.body, name)
    docs = _docstrings(node)
    raised = [
        _error_name(each.exc) for part in needed for each in _all(part, ast.Raise) if each.exc
    ]
    raised += ["AssertionError"] * any(True for _ in _all(node, ast.Assert))
    calls = (call for part in needed for call in _all(part, ast.Call))
    raised += ["SystemExit"] * any(ast.unparse(call.func) in _EXITS for call in calls)
    if isinstance(node, ast.ClassDef):
        for method in _all(node, _FUNCTIONS):
            raised += _MEANT.get(method.name, ())
    words, numbers, patterns = _literals(needed)
    return found | {
        "kind": "class" if isinstance(node, ast.ClassDef) else "function",
        "asynchronous": isinstance(node, ast.AsyncFunctionDef),
        "lines": (first_line(node), node.end_lineno),
        "prompt": _prompt(source, node),
        "needed": _only(source, needed),
        "redefined": _redefined(source, tree.body, node),
        "imports": [module for part in needed for module in _imported(part)],
        "raises": sorted({*filter(None, raised), *_DOCUMENTED_ERROR.findall("\n".join(docs))}),
        "words": list(dict.fromkeys([*words, *_quoted(docs)])),
        "numbers": numbers,
        "patterns": patterns,
        "docs": [*docs, *as_doctests(docs, name)],
        "offered": sorted({name for each in tree.body for name in bound_names(each)}),
    }


def _parsed(source: str) -> tuple[ast.Module, str]:
    """Return the syntax tree of a text; an empty one, and why it is no program."""
    try:
        return ast.parse(source), ""
    except SyntaxError as error:
        problem = f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        problem = str(error) or type(error).__name__
    return ast.Module([], []), problem


def _definitions(body: Iterable[ast.AST]) -> Iterator[Any]:
    """Functions and classes that the file defines, also under a condition; not what runs only as a program."""
    for node in body:
        if isinstance(node, _DEFINITIONS):
            yield node
        elif isinstance(node, _CONDITIONAL) and not _tests(node, "__name__"):
            yield from _definitions(ast.iter_child_nodes(node))


def first_line(node: Any) -> int:
    """Where a statement begins, with its decorators."""
    marks = node.decorator_list if isinstance(node, _DEFINITIONS) else []
    return int(min([node.lineno, *(each.lineno for each in marks)]))


def _prompt(source: str, node: Any) -> str:
    """Signature and docstring; of a class those of its methods, too."""
    lines = source.splitlines()
    parts = [_head(lines, node)]
    if isinstance(node, ast.ClassDef):
        parts += [_head(lines, each) for each in node.body if isinstance(each, _FUNCTIONS)]
    return "\n".join(parts)


def _head(lines: list[str], node: Any) -> str:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        return "\n".join(lines[first_line(node) - 1 : first.end_lineno])
    if first.lineno == node.lineno:  # all on one line
        before = lines[node.lineno - 1].encode()[: first.col_offset].decode()
        return "\n".join([*lines[first_line(node) - 1 : node.lineno - 1], before.rstrip()])
    return "\n".join(lines[first_line(node) - 1 : first_line(first) - 1]).rstrip()


# What the function depends on


def _needed(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """Return the top-level statements that a name depends on: who binds a needed name, or changes what it names."""
    wanted = {name}
    kept: set[int] = set()
    changed = True
    while changed:
        changed = False
        for number, node in enumerate(body):
            if number in kept or not (
                _is_wide(node) or bound_names(node) & wanted or _altered(node) & wanted
            ):
                continue
            kept.add(number)
            wanted |= {each.id for each in _all(node, ast.Name)}
            changed = True
    return [node for number, node in enumerate(body) if number in kept]


def _is_wide(node: ast.stmt) -> bool:
    """Whether nobody can tell which names a statement binds, or whether the others mean the same without it."""
    return _is_future(node) or (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a statement binds at the top of the file."""
    if isinstance(node, _DEFINITIONS):
        inside = {name for each in _all(node, ast.Global) for name in each.names}
        return {node.name} | inside
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {name for child in ast.iter_child_nodes(node) for name in bound_names(child)}


def _altered(node: ast.stmt) -> set[str]:
    """Names whose objects a statement may change: ``TABLE["x"] = 1``, ``register(f)``, ``TABLE.update(...)``."""
    if isinstance(node, _DEFINITIONS) or not isinstance(node, _CHANGING):
        return set()
    if _tests(node, "__name__"):
        return set()
    places: list[ast.AST] = [
        each.value
        for each in _all(node, (ast.Subscript, ast.Attribute))
        if not isinstance(each.ctx, ast.Load)
    ]
    for call in _all(node, ast.Call):
        places += [call.func, *call.args, *(word.value for word in call.keywords)]
    return {each.id for place in places for each in _all(place, ast.Name)}


def _tests(node: ast.AST, name: str) -> bool:
    """Whether it is a condition about a name: ``if __name__ == "__main__"``, ``if TYPE_CHECKING``."""
    return isinstance(node, ast.If) and name in ast.unparse(node.test)


def _only(source: str, kept: list[ast.stmt]) -> str:
    """Return the text with only these statements; the others leave empty lines, so that line numbers stay."""
    lines = source.splitlines(keepends=True)
    shown = {
        number for node in kept for number in range(first_line(node), (node.end_lineno or 0) + 1)
    }
    return "".join(line if number in shown else "\n" for number, line in enumerate(lines, 1))


def _redefined(source: str, body: list[ast.stmt], node: Any) -> str:
    """Only the statements that define a function or class, and later ones that bind or change what it names."""
    kept = [node]
    for each in body:
        after = each.lineno > (node.end_lineno or 0)
        if isinstance(
            each, _DEFINITIONS
        ):  # registered, as implementations of a generic function are
            marks = [mark for each in each.decorator_list for mark in _all(each, ast.Attribute)]
            changes = any(getattr(mark.value, "id", "") == node.name for mark in marks)
        else:
            changes = node.name in bound_names(each) | _altered(each)
        if (after and changes) or _is_future(each):
            kept.append(each)
    text = _only(source, kept)
    if node in body or first_line(node) == 1:
        return text
    lines = text.splitlines(keepends=True)  # it stands under a condition
    return "".join([*lines[: first_line(node) - 2], "if True:\n", *lines[first_line(node) - 1 :]])


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _imported(node: ast.AST) -> list[str]:
    """Return the modules that are imported in it, as they are written."""
    found = []
    for each in _all(node, (ast.Import, ast.ImportFrom)):
        if isinstance(each, ast.ImportFrom):
            found.append("." * each.level + (each.module or ""))
        else:
            found += [alias.name for alias in each.names]
    return found


# What it may like as arguments


def _docstrings(node: ast.AST) -> list[str]:
    """Return the docstrings of a function; or of a class and its methods."""
    nodes = [node, *node.body] if isinstance(node, ast.ClassDef) else [node]
    texts = [ast.get_docstring(each) for each in nodes if isinstance(each, _DEFINITIONS)]
    return [text for text in texts if text]


def _quoted(docs: list[str]) -> list[str]:
    return [next(filter(None, groups)) for text in docs for groups in _QUOTED.findall(text)]


def _literals(nodes: list[ast.stmt]) -> tuple[list[str], list[int | float], list[str]]:
    """Words, numbers and regular expressions in the code; not docstrings and messages of errors."""
    words: list[str] = []
    numbers: list[int | float] = []
    patterns: list[str] = []
    for node in nodes:
        passed_over = {
            id(inner)
            for each in ast.walk(node)
            if isinstance(each, (ast.Raise, ast.arg)) or _is_docstring(each)
            for inner in ast.walk(each)
        }
        for text in _all(node, ast.JoinedStr):  # what stands in its braces counts
            passed_over |= {id(part) for part in text.values}
        for call in _all(node, ast.Call):
            if ast.unparse(call.func).startswith("re.") and call.args:
                first = call.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    patterns.append(first.value)
                    passed_over.add(id(first))
        for each in _all(node, ast.Constant):
            if id(each) in passed_over:
                continue
            if isinstance(each.value, str) and 0 < len(each.value) <= _MAX_TEXT:
                words.append(each.value)
            elif type(each.value) in (int, float) and abs(each.value) < 1e9:
                numbers.append(each.value)
    return list(dict.fromkeys(words)), list(dict.fromkeys(numbers)), list(dict.fromkeys(patterns))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _error_name(node: ast.expr) -> str:
    inner = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(inner).rpartition(".")[2]


def _all(node: ast.AST, kinds: Any) -> Iterator[Any]:
    return (each for each in ast.walk(node) if isinstance(each, kinds))


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
    tree, problem = _parsed(source)
    offered = _offered(tree.body)
    names = {
        node.name: None
        for node in _definitions(tree.body)
        if not node.name.startswith(("_", "test_", "Test"))
        and (offered is None or node.name in offered)
        and not (isinstance(node, ast.ClassDef) and _has_no_behaviour(node))
    }
    return list(names), problem


def _has_no_behaviour(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(each).partition("[")[0].rpartition(".")[2] for each in node.bases}
    return any(
        each in _WITHOUT_BEHAVIOUR or each.endswith(("Error", "Exception", "Warning"))
        for each in bases
    )


def _offered(body: list[ast.stmt]) -> set[str] | None:
    """Return the words of ``__all__``; None where there is none, or it is computed."""
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


def imported(source: str) -> list[str]:
    r"""Return the top-level names of what a text imports absolutely, anywhere in it.

    Example:
        >>> imported("import os.path, six\ndef f():\n    from . import a\n    from attr.x import b")
        ['attr', 'os', 'six']
    """
    modules = _imported(_parsed(source)[0])
    return sorted({each.partition(".")[0] for each in modules} - {""})


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
        for module in () if _tests(node, "TYPE_CHECKING") else _imported(node):
            if module.startswith("."):
                return f"it needs {module} of its package"
            if module.partition(".")[0] not in (*sys.stdlib_module_names, "numpy"):
                return f"it needs {module}"
    return ""


def _for_signature(
    body: list[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[list[ast.stmt], str]:
    """Return the statements that define the names in a signature, and the first name that another sort of statement defines."""
    parts: list[ast.AST] = [function.args]
    parts += [function.returns] if function.returns is not None else []
    wanted = {name for part in parts for name in _names(part)}
    shown: list[ast.stmt] = []
    for node in reversed(body):
        names = bound_names(node) & wanted
        if not names and not _is_future(node):
            continue
        if not (isinstance(node, _SIMPLE) or _tests(node, "TYPE_CHECKING")):
            return [], min(names)
        wanted |= _names(node)
        shown.insert(0, node)
    return shown, ""


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
