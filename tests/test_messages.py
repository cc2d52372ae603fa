"""Messages are for people: no code asks what a `message` says, since what it means is in fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

import codea1_env

ROOT = Path(codea1_env.__file__).parent
ASKING = {
    "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "partition", "rpartition",
    "split", "rsplit", "splitlines", "removesuffix", "isdigit", "translate",
    "match", "search", "fullmatch", "findall", "finditer",
}  # fmt: skip
"""Methods that look into a text, or of a pattern that does. `sub`, `replace` and `removeprefix` change the wording."""
CONSTANTS = {"RUN_LIMIT", "NOT_MADE"}
"""Messages that have a name, which nothing may be compared with."""


def _is_message(node: ast.AST, names: Set[str]) -> bool:
    """Whether an expression is the message of something, or a part of it: `x.message`, `x.message[:9].lower()`."""
    if isinstance(node, (ast.Subscript, ast.NamedExpr)):
        return _is_message(node.value, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_message(node.func.value, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return node.func.id in ("str", "repr", "ascii") and _is_message(node.args[0], names)
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Attribute) and node.attr == "message"


def _names_for(function: ast.AST) -> set[str]:
    """Local names that stand for the message of something: `outcome, text = run.outcome, run.message`."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                found |= {
                    name.id
                    for name, value in pairs
                    if isinstance(name, ast.Name) and _is_message(value, set())
                }
    return found


def _asks(node: ast.AST, names: Set[str]) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            return False
        named = any(
            (isinstance(each, ast.Name) and each.id in CONSTANTS)
            or (isinstance(each, ast.Attribute) and each.attr in CONSTANTS)
            for each in sides
        )  # fmt: skip
        return named or any(_is_message(each, names) for each in sides)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        asking = node.func.attr in ASKING
        return asking and any(_is_message(each, names) for each in (node.func.value, *node.args))
    if isinstance(node, ast.Match):
        return _is_message(node.subject, names)
    return False


def asking(tree: ast.AST, names: Set[str] = frozenset(), place: str = "module") -> Iterator[str]:
    """The functions, by name and line, that ask what a message says."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from asking(node, _names_for(node), node.name)
            continue
        if _asks(node, names):
            yield f"{place}, line {getattr(node, 'lineno', 0)}"
        yield from asking(node, names, place)


@pytest.mark.parametrize(
    "line",
    [
        'result.message.startswith("SystemExit")',
        '"wall-clock" in seen.message',
        "other == NOT_MADE",
        "re.search('x', load.message)",
        "str(load.message)[:4].lower() == 'name'",
        "(text := run.message) and text.endswith('x')",
        "outcome, text = run.outcome, run.message\n    text.partition(':')",
    ],
)
def test_asking_is_found(line: str) -> None:
    [found] = asking(ast.parse(f"def f():\n    {line}"))
    assert found.startswith("f, ")


@pytest.mark.parametrize(
    "line",
    [
        "print(f'{result.outcome}: {result.message:.80}')",
        "_ADDRESS.sub('0x...', test.message)",
        "outcome, text = run.outcome, run.message\n    text = text.removeprefix(run.error)",
        "text.startswith('x')",
    ],
)
def test_showing_is_allowed(line: str) -> None:
    assert list(asking(ast.parse(f"def f():\n    {line}"))) == []


def test_nobody_asks_what_a_message_says() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {place}"
        for path in ROOT.rglob("*.py")
        for place in asking(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()
