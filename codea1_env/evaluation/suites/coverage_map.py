"""What coverage counts in a program: its statements, and the branches between their lines.

`coverable` is pure and needs only the standard library: it runs in a helper process (`Sandbox.analyse`),
which loads this file on its own, because the text is untrusted. Use `coverage.measure_coverage`.

The definitions are those of coverage.py 7, so that figures can be compared with what others publish. A
statement is a line for which Python has code, and counts once, at its first line; docstrings do not count. A
branch is an arc from a line that has more than one possible successor; leaving a function is the successor
-n, where n is the first line of the function. Comments that tell coverage.py to leave a line out have no
effect here.
"""

from __future__ import annotations

import ast
import io
import itertools
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

Arc = tuple[int, int]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Parts = (ast.stmt, ast.excepthandler, ast.match_case)
"""What holds statements; expressions do not."""


def coverable(
    source: str,
) -> tuple[list[int], list[Arc], dict[int, int], list[tuple[Arc, Arc | None]]]:
    r"""Return what there is to cover.

    Returns:
        The lines of statements; the branches; the first line of each line that continues a statement; and
        executed arcs that stand for another one or, None, for none: leaving a `with` goes back to its line.

    Raises:
        SyntaxError: The text is not a Python program (also ValueError and RecursionError, as `ast.parse`).

    Example:
        >>> coverable("def sign(x):\n    if x < 0:\n        return -1\n    return 1\n")[:2]
        ([1, 2, 3, 4], [(2, 3), (2, 4)])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
        code = compile(source, "<program>", "exec", dont_inherit=True)
    first = _first_lines(source)
    executable = set(_code_lines(code))
    docstrings = set(_docstring_lines(tree))
    statements = {first.get(line, line) for line in executable - docstrings} - docstrings
    flow = _Flow(first, {first.get(line, line) for line in executable})
    flow.follow(tree)
    detours = flow.detours()
    arcs = {detours.get(arc, arc) for arc in flow.arcs}
    known = {arc for arc in arcs if arc is not None and arc[0] != arc[1]}
    exits: dict[int, int] = {}
    for start, _ in known:
        exits[start] = exits.get(start, 0) + 1
    branches = sorted(arc for arc in known if exits[arc[0]] > 1)
    return sorted(statements), branches, first, sorted(detours.items())


def _first_lines(source: str) -> dict[int, int]:
    """Map the lines of statements (or headers of blocks) that span several to the first of them."""
    first: dict[int, int] = {}
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            if start and token.end[0] != start:
                first |= dict.fromkeys(range(start, token.end[0] + 1), start)
            start = 0
        elif not start and token.string.strip() and token.type != tokenize.COMMENT:
            start = token.start[0]
    return first


def _code_lines(code: CodeType) -> Iterator[int]:
    """Yield every line that has code, in functions and classes, too."""
    stack = [code]
    while stack:
        current = stack.pop()
        stack += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
        if current.co_name != "__annotate__":  # Python 3.14 evaluates annotations only when asked
            yield from (line for _, _, line in current.co_lines() if line)


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree's statements, at any depth, and the tree."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in ast.iter_child_nodes(node) if isinstance(child, _Parts)]


def _docstring_lines(tree: ast.AST) -> Iterator[int]:
    for node in _walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, _Function)) and node.body:
            text = node.body[0]
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


@dataclass
class _Loop:
    start: int
    breaks: set[int] = field(default_factory=set)


@dataclass
class _Try:
    handler: int | None


@dataclass
class _Frame:
    start: int


class _Flow:
    """Collects the arcs that the statements of a program can take.

    Args:
        first: See `coverable`.
        executable: Lines that have code; what the compiler leaves out, nothing can reach.
    """

    def __init__(self, first: dict[int, int], executable: set[int]) -> None:
        self.arcs: set[Arc] = set()
        self._first = first
        self._executable = executable
        self._around: list[_Loop | _Try | _Frame] = []
        self._withs: set[int] = set()
        self._open_withs: set[int] = set()
        self._into_with: set[Arc] = set()
        self._back_to_with: set[Arc] = set()

    def follow(self, tree: ast.Module) -> None:
        """Collect the arcs of a module, and of the functions and classes in it."""
        for node in _walk(tree):
            if isinstance(node, ast.Module):
                start = self._first.get(1, 1)
                self._leave(self._body(node.body, set()) if node.body else {start}, -start)
            elif isinstance(node, ast.ClassDef):
                self._leave(self._body(node.body, set()), -self._line(node))
            elif isinstance(node, _Function):
                start = self._line(node)
                self._around.append(_Frame(start))
                self._leave(self._body(node.body, set()), -start)
                self._around.pop()

    def detours(self) -> dict[Arc, Arc | None]:
        """Arcs of leaving a `with` through its own line, and what they stand for."""
        onward: dict[int, int] = {}
        for start in self._withs:
            ends = {b for a, b in self.arcs if a == start and (a, b) not in self._into_with}
            if len(ends) == 1:
                onward[start] = ends.pop()
        found: dict[Arc, Arc | None] = {}
        for last, start in self._back_to_with:
            if start in onward:
                found[last, start] = (last, self._behind(start, onward))
        for start, end in onward.items():
            if (start, start) not in self._back_to_with:
                found[start, end] = None
        return found

    def _behind(self, start: int, onward: dict[int, int]) -> int:
        """The line after a `with`, which may end the body of other ones."""
        end = onward[start]
        while (start, end) in self._back_to_with and end in onward:
            start, end = end, onward[end]
        return end

    def _line(self, node: Any) -> int:
        if isinstance(node, ast.match_case):
            node = node.pattern
        decorators = getattr(node, "decorator_list", ())
        line: int = decorators[0].lineno if decorators else node.lineno
        return self._first.get(line, line)

    def _arc(self, start: int, end: int) -> None:
        self.arcs.add((start, end))
        if start in self._open_withs:
            self._into_with.add((start, end))

    def _leave(self, starts: Iterable[int], end: int) -> None:
        for start in starts:
            self._arc(start, end)

    def _body(self, nodes: Iterable[ast.stmt], starts: set[int]) -> set[int]:
        """Follow statements in turn, the first from `starts`; returns the lines that lead out of the last."""
        for node in nodes:
            line = self._line(node)
            if line in self._executable:
                self._leave(starts, line)
                starts = self._exits(node, line)
        return starts

    def _exits(self, node: ast.stmt, line: int) -> set[int]:
        """Follow one statement; returns the lines from which the statement after it is reached."""
        match node:
            case ast.If():
                return self._if(node, line)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, line)
            case ast.Try() | ast.TryStar():
                return self._try(node, line)
            case ast.With() | ast.AsyncWith():
                return self._with(node, line)
            case ast.Match():
                return self._match(node, line)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self._definition(node)
            case ast.Break() | ast.Continue():
                loop = next(each for each in reversed(self._around) if isinstance(each, _Loop))
                if isinstance(node, ast.Break):
                    loop.breaks.add(line)
                else:
                    self._arc(line, loop.start)
            case ast.Return():
                frame = next(each for each in reversed(self._around) if isinstance(each, _Frame))
                self._arc(line, -frame.start)
            case ast.Raise():
                self._raise(line)
            case _:
                return {line}
        return set()

    def _raise(self, line: int) -> None:
        for around in reversed(self._around):
            if isinstance(around, _Frame):
                self._arc(line, -around.start)
                return
            if isinstance(around, _Try):
                if around.handler is not None:
                    self._arc(line, around.handler)
                return

    def _if(self, node: ast.If, line: int) -> set[int]:
        constant = _constant(node.test)
        exits: set[int] = set()
        if constant is not False:
            exits |= self._body(node.body, {line})
        if constant is not True:
            exits |= self._body(node.orelse, {line})
        return exits

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, line: int) -> set[int]:
        loop = _Loop(line)
        self._around.append(loop)
        self._leave(self._body(node.body, {line}), line)
        self._around.pop()
        if node.orelse:
            return loop.breaks | self._body(node.orelse, {line})
        if isinstance(node, ast.While) and _constant(node.test) is not None:
            return loop.breaks
        return loop.breaks | {line}

    def _try(self, node: ast.Try | ast.TryStar, line: int) -> set[int]:
        around = _Try(self._line(node.handlers[0]) if node.handlers else None)
        self._around.append(around)
        exits = self._body(node.body, {line})
        if node.finalbody:
            around.handler = None  # nor does anything else follow what is raised in a handler
        else:
            self._around.pop()
        handled: set[int] = set()
        for handler in node.handlers:
            handled |= self._body(handler.body, {self._line(handler)})
        exits = self._body(node.orelse, exits) | handled
        if node.finalbody:
            self._around.pop()
            after = self._body(node.finalbody, exits)
            return after if exits else set()
        return exits

    def _with(self, node: ast.With | ast.AsyncWith, line: int) -> set[int]:
        self._withs.add(line)
        self._open_withs.add(line)
        exits = self._body(node.body, {line})
        self._open_withs.discard(line)
        self._leave(exits, line)
        self._back_to_with |= {(last, line) for last in exits}
        return {line} if exits else set()

    def _match(self, node: ast.Match, line: int) -> set[int]:
        exits: set[int] = set()
        for case in node.cases:
            start, line = line, self._line(case)
            self._arc(start, line)
            exits |= self._body(case.body, {line})
        return exits if _matches_all(node.cases[-1]) else exits | {line}

    def _definition(self, node: _Function | ast.ClassDef) -> set[int]:
        lines = [each.lineno for each in node.decorator_list] + [node.lineno]
        lines = [self._first.get(line, line) for line in lines]
        for start, end in itertools.pairwise(lines):
            self._arc(start, end)
        return {lines[-1]}


def _constant(test: ast.expr) -> bool | None:
    """The value of a condition that the compiler knows; None if it depends on the run."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.Name("__debug__"):
            return True
        case ast.UnaryOp(ast.Not(), operand):
            value = _constant(operand)
            return None if value is None else not value
        case ast.BoolOp():
            values = [_constant(each) for each in test.values]
            if None not in values:
                return any(values) if isinstance(test.op, ast.Or) else all(values)
    return None


def _matches_all(case: ast.match_case) -> bool:
    """Whether a case takes everything that comes to it: a name or _, without a condition."""
    pattern = case.pattern
    while True:
        if isinstance(pattern, ast.MatchOr):
            pattern = pattern.patterns[-1]
        elif isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            pattern = pattern.pattern
        else:
            return case.guard is None and isinstance(pattern, ast.MatchAs)
