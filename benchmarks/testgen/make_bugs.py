"""Draws bugs of the kinds that fixes in real projects mend, for functions of the list.

    python benchmarks/testgen/make_bugs.py --site SITE > candidates.jsonl

- off by one: a bound, an index or a comparison;
- wrong default: of a parameter;
- missing branch: an `if` whose body never runs, or whose guard is gone;
- wrong order: of two arguments of a call, or of two statements;
- aliasing: a copy that is not made.

Edits of the text. The 40 of `bugs.jsonl`, eight of each kind, were taken from these by hand, mostly in their order:
those that change nothing that a caller could see were left out.
"""

from __future__ import annotations

import ast
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from packages import listed, parser_for

KINDS = ("off by one", "wrong default", "missing branch", "wrong order", "aliasing")
COPIES = {"list", "dict", "set", "copy", "deepcopy", "tuple"}
MAX_LINES = 9000


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--each", type=int, default=14, help="candidates of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    pools: dict[str, list[dict[str, object]]] = {kind: [] for kind in KINDS}
    for file, name in listed():
        text = (options.site / file).read_text(encoding="utf-8")
        if text.count("\n") > MAX_LINES:
            continue
        for kind, old, new, start in edits(text, name):
            line = text.count("\n", 0, start) + 1
            row = {
                "file": file,
                "name": name,
                "kind": kind,
                "line": line,
                "column": start - text.rfind("\n", 0, start) - 1,
                "old": old,
                "new": new,
            }
            pools[kind].append(row)
    for pool in pools.values():
        taken: dict[str, int] = {}
        for number in rng.permutation(len(pool)):
            row = pool[number]
            key = f"{row['file']}::{row['name']}"
            if taken.setdefault(key, 0) < 1 and sum(taken.values()) < options.each:
                taken[key] += 1
                print(json.dumps(row))
    return 0


def edits(text: str, name: str) -> Iterator[tuple[str, str, str, int]]:
    """All bugs for one function: kind, old text, new text, and where the old one begins."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(row: int, column: int) -> int:
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)

    def swap(kind: str, node: ast.expr | ast.stmt, new: str) -> tuple[str, str, str, int]:
        start, end = span(node)
        return kind, text[start:end], new, start

    def source(node: ast.expr | ast.stmt) -> str:
        start, end = span(node)
        return text[start:end]

    def exchange(one: ast.expr | ast.stmt, other: ast.expr | ast.stmt) -> tuple[str, str, str, int]:
        (start, end), (begin, last) = span(one), span(other)
        return (
            "wrong order",
            text[start:last],
            text[begin:last] + text[end:begin] + text[start:end],
            start,
        )

    [function, *_] = [
        node
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ][::-1]
    defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
    for default in defaults:
        if isinstance(default, ast.Constant) and type(default.value) in (bool, int, float, str):
            yield swap("wrong default", default, repr(_other(default.value)))
    body = [node for statement in function.body for node in ast.walk(statement)]
    for node in body:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            pairs = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
            if type(node.ops[0]) in pairs:
                sign = pairs[type(node.ops[0])]
                yield swap(
                    "off by one", node, f"{source(node.left)} {sign} {source(node.comparators[0])}"
                )
        elif isinstance(node, ast.Slice):
            for bound in filter(None, (node.lower, node.upper)):
                yield swap("off by one", bound, f"{source(bound)} + 1")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
        ):
            yield swap("off by one", node.args[-1], f"{source(node.args[-1])} - 1")
        if isinstance(node, ast.If) and not node.orelse:
            yield swap("missing branch", node.test, f"False and ({source(node.test)})")
        elif isinstance(node, ast.If):
            yield swap("missing branch", node.test, f"True or ({source(node.test)})")
        if isinstance(node, ast.Call):
            if len(node.args) >= 2 and not any(
                isinstance(each, ast.Starred) for each in node.args[:2]
            ):
                yield exchange(*node.args[:2])
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called in COPIES and len(node.args) == 1 and not node.keywords:
                if isinstance(node.args[0], (ast.Name, ast.Attribute)):
                    yield swap("aliasing", node, source(node.args[0]))
            elif (
                isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args
            ):
                yield swap("aliasing", node, source(node.func.value))
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == ":":
            yield swap("aliasing", node, source(node.value))
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            for one, other in itertools.pairwise(block):
                if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr)) and isinstance(
                    other, (ast.Assign, ast.AugAssign, ast.Expr, ast.If)
                ):
                    yield exchange(one, other)
    for first, second in itertools.pairwise(function.body):
        if isinstance(first, (ast.Assign, ast.AugAssign)) and isinstance(
            second, (ast.Assign, ast.AugAssign, ast.If)
        ):
            yield exchange(first, second)


def _other(value: Any) -> Any:
    if isinstance(value, str):
        return "" if value else "_"
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 2


if __name__ == "__main__":
    sys.exit(main())
