"""Messages are for people: no code asks what a `message` says, since what it means is in fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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


def is_message(node: ast.AST) -> bool:
    """Whether an expression is the message of something, or a part of it: `x.message`, `x.message[:9].lower()`."""
    if isinstance(node, (ast.Subscript, ast.NamedExpr)):
        return is_message(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return is_message(node.func.value)
    if isinstance(node, ast.Call):
        shown = isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "ascii")
        return shown and any(map(is_message, node.args))
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name in CONSTANTS or (name == "message" and isinstance(node, ast.Attribute))


def asking(tree: ast.AST) -> Iterator[int]:
    """The lines in which a program asks what a message says."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = [node.func.value, *node.args] if node.func.attr in ASKING else []
        elif isinstance(node, ast.Match):
            asked = [node.subject]
        if any(map(is_message, asked)):
            yield node.lineno


def test_asking_is_found_and_showing_is_allowed():
    for line in (
        'result.message.startswith("SystemExit")',
        '"wall-clock" in seen.message',
        "one.result.message != RUN_LIMIT",
        "re.search('x', load.message)",
        "str(load.message)[:4].lower() == 'name'",
    ):
        assert [*asking(ast.parse(line))] == [1], line
    for line in ("f'{result.message:.80}'", "message is result.message", "P.sub('', test.message)"):
        assert [*asking(ast.parse(line))] == [], line


def test_nobody_asks_what_a_message_says():
    texts = {path: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    named = [path for path in texts if any(name in texts[path] for name in ("message", *CONSTANTS))]
    found = {path: [*asking(ast.parse(texts[path]))] for path in named}
    assert len(named) > 40
    assert {path: lines for path, lines in found.items() if lines} == {}
