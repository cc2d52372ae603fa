"""A tester's text -> its tests: cases where they are data, Python text where not. Runs inside `Sandbox.analyse`.

`codea1_env.reading` says what is data. Here an answer is taken apart into what is one test each: an assertion, a
loop, a test function or class, with the statements above it that it needs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from codea1_env.reading.chunks import PARSE_ERRORS, chunks, message_of, parse
from codea1_env.reading.fences import answer_in, python_in
from codea1_env.reading.golden import GoldenCase, pytest_cases
from codea1_env.reading.json_texts import listed_statements

MAX_TESTS = 256
"""Tests that are taken from one answer."""
MAX_CHARS = 1 << 18
"""Of the tests of one answer: each repeats what it needs."""
_LISTED = "assert_statements"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_BLOCKS = (ast.For, ast.While, ast.With, ast.Try, ast.If, ast.Match, ast.AsyncFor, ast.AsyncWith)

Piece = tuple[str, str, list[GoldenCase], str]
"""Text, the same text for tests that say the same, its cases (none if it is no data), and why it is no Python."""


def pieces_of(asked: list[tuple[str, str, int]]) -> list[tuple[list[Piece], int, list[str]]]:
    r"""Return the tests in texts, how many there are after those, and why parts that were meant as tests are none.

    Each text comes with its entry point, and how many tests are wanted; 0 where the text is one test as a whole.

    Example:
        >>> pieces_of([("x = 1\nassert f(x) == 2\nassert f(", "f", 5)])
        [([('x = 1\nassert f(x) == 2', 'f(1) == 2', [((1,), {}, 2, None, None, '')], '')], 0, ["cannot be parsed: '(' was never closed"])]
    """
    found: list[tuple[list[Piece], int, list[str]]] = []
    for text, entry_point, wanted in asked:
        name = entry_point.rpartition(".")[2]
        body, code, broken = _parsed(text, name)
        texts = list(_units(body, entry_point)) if wanted else [code]
        if not wanted and broken:
            found.append(([(text, text, [], broken[0])], 0, []))
            continue
        pieces = [_piece(each, entry_point) for each in texts[: wanted or 1]]
        found.append((pieces, len(texts) - len(pieces), broken))
    return found


def _parsed(text: str, name: str) -> tuple[list[ast.stmt], str, list[str]]:
    answer = answer_in(text)
    codes = listed_statements(answer, _LISTED) if _LISTED in answer else None
    codes = codes or [block.code for block in python_in(answer)] or [answer]
    whole = "\n".join(codes)
    try:
        return parse(whole), whole.strip("\n"), []
    except PARSE_ERRORS:
        parts = [chunk for code in codes for chunk in chunks(code)]
    broken = []
    for part in parts:
        lines = [*part.removed, *([(part.error, part.text)] if part.error else [])]
        broken += [
            reason for reason, line in lines if "assert" in line and re.search(rf"\b{name}\b", line)
        ]
    body = [node for part in parts for node in part.body]
    try:
        return body, "\n".join(map(ast.unparse, body)) or whole, broken
    except PARSE_ERRORS as error:
        return [], whole, [*broken, message_of(error)]


def _piece(text: str, entry_point: str) -> Piece:
    try:
        cases, unread = pytest_cases(text, entry_point)
        # What is converted by the test may be an iterator, which is no data.
        is_data = cases and not unread and not any(through for *_, through in cases)
        if is_data:
            return text, "; ".join(_said(case, entry_point) for case in cases), cases, ""
        return text, ast.unparse(ast.Module(parse(text), [])), [], ""
    except PARSE_ERRORS as error:
        return text, text, [], message_of(error)


def _said(case: GoldenCase, entry_point: str) -> str:
    args, kwargs, expected, *_ = case
    given = [*map(repr, args), *(f"{name}={value!r}" for name, value in sorted(kwargs.items()))]
    return f"{entry_point}({', '.join(given)}) == {expected!r}"


# What is one test of an answer


def _units(body: list[ast.stmt], entry_point: str) -> Iterator[str]:
    owner, _, name = entry_point.rpartition(".")
    before: list[ast.stmt] = []
    number, chars = 0, 0
    for node in _unguarded(body):
        if isinstance(node, _DEFINITIONS) and node.name == (owner or name):
            continue  # tests get the program's
        call = _call_of(node, name, before)
        if call is None:
            before.append(node)
            continue
        try:
            lines = [ast.unparse(each) for each in (*_needed(node, before, name), node)]
        except PARSE_ERRORS:
            continue
        text = "\n".join([*lines, *([call] if call else [])])
        chars, number = chars + len(text), number + 1
        if number > MAX_TESTS or chars > MAX_CHARS:
            return
        yield text


def _unguarded(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements; for ``if __name__ == "__main__":`` those in it."""
    for node in body:
        test = node.test if isinstance(node, ast.If) else None
        left = test.left if isinstance(test, ast.Compare) else None
        if isinstance(node, ast.If) and isinstance(left, ast.Name) and left.id == "__name__":
            yield from node.body
        else:
            yield node


def _call_of(node: ast.stmt, name: str, before: list[ast.stmt]) -> str | None:
    """Return the call that a test needs behind it, mostly ""; None if a statement is no test."""
    if isinstance(node, ast.ClassDef):
        tests = (each for each in node.body if isinstance(each, _FUNCTIONS))
        return "" if any(each.name.startswith("test") for each in tests) else None
    if isinstance(node, _FUNCTIONS):
        if node.name.startswith("test"):
            return ""
        needed = len(node.args.posonlyargs + node.args.args) - len(node.args.defaults)
        if not _asserts(node) or needed > 1 or (needed and name in _names(node)):
            return None
        # def check(candidate): ...
        return f"{node.name}({name if needed else ''})" if not node.decorator_list else None
    if isinstance(node, ast.Assert) or (isinstance(node, _BLOCKS) and _asserts(node)):
        return ""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = ast.unparse(node.value.func)
        helpers = {each.name for each in before if isinstance(each, _FUNCTIONS) and _asserts(each)}
        return "" if called in helpers or ("assert" in called and name in _names(node)) else None
    return "" if isinstance(node, _BLOCKS) and name in _names(node) else None


def _asserts(node: ast.AST) -> bool:
    return any(isinstance(each, (ast.Assert, ast.Raise)) for each in ast.walk(node))


def _needed(node: ast.stmt, before: list[ast.stmt], name: str) -> list[ast.stmt]:
    names = _names(node) - {name}
    kept = []
    for each in reversed(before):
        wide = isinstance(each, ast.ImportFrom) and (
            each.module == "__future__" or each.names[0].name == "*"
        )
        bound = _bound(each) if isinstance(each, (*_DEFINITIONS, *_IMPORTS)) else _names(each)
        if wide or bound & names:
            kept.append(each)
            names |= _names(each) - {name}
    return kept[::-1]


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _bound(node: Any) -> set[str]:
    if isinstance(node, _DEFINITIONS):
        return {node.name, *(_names(ast.List(node.decorator_list)) if node.decorator_list else ())}
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}


# Programs that may not end


def lines_before_loops_end(source: str) -> list[int]:
    r"""Return the lines of each function up to the end of its last `while` loop.

    A fault there easily makes the loop endless: in the loop itself, in what it starts from, or in the check
    that protects it.

    Example:
        >>> lines_before_loops_end("def f(n):\n    while n > 9:\n        n -= 9\n    return n")
        [1, 2, 3]
    """
    found: set[int] = set()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            ends = [
                loop.end_lineno or 0 for loop in ast.walk(function) if isinstance(loop, ast.While)
            ]
            if ends:
                found.update(range(function.lineno, max(ends) + 1))
    return sorted(found)
