"""Inputs and outputs that an answer lists as tests of a program: objects of JSON, or dicts of Python.

Answers hold both, and each may stand in the strings of the other. What begins first counts: in a statement of Python
nothing but its own dicts are tests, whatever its strings hold, and what an object of JSON holds is no Python.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from codea1_env.sandbox.inside.analysis.literals import LiteralMeter, NotLiteralError, read

from .chunks import Chunk, chunks
from .fences import blocks_in, unfenced
from .syntax import first_line, parsed

INPUTS, OUTPUTS = ("input", "stdin"), ("output", "stdout", "expected_output")
"""Keys of a test of a program, as models write them."""
_MAX_FAILURES = 64
_IN_LINE = re.compile(r"[^\n]")
_CUT_OFF = "unterminated triple"
_OPENS = re.compile(r"^[ \t]*+(?:assert\b|\w++ ?=)[^\n]*(?:\"\"\"|''')", re.MULTILINE)
_BEGINS = re.compile(rf"\{{\s*+\"(?:{'|'.join(INPUTS)})\"")
_DECODER = json.JSONDecoder(strict=False)


class Listed(NamedTuple):
    """A test as it is listed."""

    fields: dict[str, object]
    end: int
    """Where it ends in the answer."""


class _Piece(NamedTuple):
    """Lines of an answer that are Python."""

    start: int
    end: int
    dicts: list[tuple[int, int, ast.Dict]]
    """Those with an input, in order, with the places where they begin and end."""


def listed_tests(answer: str) -> tuple[list[Listed], str]:
    r"""Return the objects with an input in an answer, also where it is cut off, and the answer without those of JSON.

    Lines end with a newline alone.

    Example:
        >>> tests, rest = listed_tests('So: [{"input": "1\\n", "output": "2"}, {"input": "5", "out')
        >>> [test.fields for test in tests], rest[:9]
        ([{'input': '1\n', 'output': '2'}], 'So: [0   ')
        >>> listed_tests("assert run('''\n" + '{"input": "1", "output": "2"}\n' + "''') == '3'")[0]
        []
    """
    if not any(name in answer for name in INPUTS) or "{" not in answer:
        return [], answer
    found: list[Listed] = []
    rest: list[str] = []
    pieces = sorted(_pieces(answer), key=lambda piece: piece.start)
    starts = [piece.start for piece in pieces]
    meter = LiteralMeter()
    at = failures = taken = 0
    while failures < _MAX_FAILURES and (at := answer.find("{", at)) >= 0:
        place = bisect.bisect(starts, at) - 1
        if place >= 0 and taken <= starts[place] and at < pieces[place].end:
            found += _of_python(pieces[place], answer, meter)
            at = pieces[place].end
            continue
        tests, end = _of_json(answer, at)
        failures += end == at + 1
        if tests or (
            end > at + 1 and _BEGINS.match(answer, at)
        ):  # a number instead: what stands around it may be Python
            rest += [answer[taken:at], "0", _IN_LINE.sub(" ", answer[at + 1 : end])]
            found, taken = found + tests, end
        at = end
    return found, "".join([*rest, answer[taken:]])


def _of_json(answer: str, at: int) -> tuple[list[Listed], int]:
    """Return the tests in the object of JSON that begins somewhere, and where it ends; the next place for what is none."""
    try:
        value, end = _DECODER.raw_decode(answer, at)
    except (ValueError, RecursionError) as error:
        is_cut_off = str(error).startswith("Unterminated string") and _BEGINS.match(answer, at)
        return [], len(answer) if is_cut_off else at + 1
    return [Listed(fields, end) for fields in _tests_in(value)], end


def _tests_in(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects with an input in plain data, in order."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if any(name in each for name in INPUTS):
                yield each
                continue
            each = list(each.values())
        if isinstance(each, list):
            left += each[::-1]


def _of_python(piece: _Piece, answer: str, meter: LiteralMeter) -> Iterator[Listed]:
    """Yield the tests that are dicts of statements; JSON is read as such, since its escapes differ."""
    for start, end, node in piece.dicts:
        tests = _of_json(answer, start)[0] if answer.startswith("{", start) else []
        try:
            yield tests[0]._replace(end=end) if tests else Listed(read(node, None, meter), end)
        except NotLiteralError:
            continue


def _pieces(answer: str) -> Iterator[_Piece]:
    """Yield what is Python: all of an answer, or else blocks of it, and statements between the prose."""
    lines = [0, *itertools.accumulate(len(line) + 1 for line in answer.split("\n"))]
    body = parsed(answer)
    if body is not None:
        yield from _statements(body, answer, lines, 0)
        return
    outside: list[str] = []
    at = 0
    for block in blocks_in(answer):
        start = answer.find(block.code, at) if block.code.strip() else -1
        body = parsed(block.code) if start >= 0 else None  # its indentation was taken off
        if body is None:
            continue
        yield from _statements(body, block.code, lines, bisect.bisect(lines, start) - 1)
        outside += [answer[at:start], _IN_LINE.sub(" ", block.code)]
        at = start + len(block.code)
    number = 0
    for chunk in chunks(unfenced("".join([*outside, answer[at:]]))):
        if _is_cut_off(chunk):
            yield _Piece(lines[number], len(answer), [])
            return
        yield from _statements(chunk.body, chunk.text, lines, number)
        number += chunk.text.count("\n") + 1


def _is_cut_off(chunk: Chunk) -> bool:
    """Whether an answer ends in a string that a chunk begins."""
    reasons = (chunk.error, *(reason for reason, _ in chunk.removed))
    return any(_CUT_OFF in reason for reason in reasons) and bool(_OPENS.search(chunk.text))


def _statements(body: list[ast.stmt], text: str, lines: list[int], first: int) -> list[_Piece]:
    """Return the lines with statements of a text that begins in a line of the answer; `lines` says where those begin."""
    own = text.split("\n")

    def place(line: int, column: int) -> int:
        before = own[line - 1]
        if not before.isascii():
            column = len(before.encode()[:column].decode(errors="replace"))
        return lines[first + line - 1] + column

    found: list[_Piece] = []
    for node in body:
        start, end = lines[first + first_line(node) - 1], lines[first + _end(node)]
        dicts = [
            (place(each.lineno, each.col_offset), place(_end(each), each.end_col_offset or 0), each)
            for each in _dicts(node)
        ]
        if found and start < found[-1].end:  # several in one line
            found[-1].dicts.extend(dicts)
            found[-1] = found[-1]._replace(end=max(end, found[-1].end))
        else:
            found.append(_Piece(start, end, dicts))
    return found


def _end(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _dicts(node: ast.AST) -> Iterator[ast.Dict]:
    """Yield the dicts with an input in a statement, in order."""
    left = [node]
    while left:
        each = left.pop()
        if isinstance(each, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value in INPUTS for key in each.keys
        ):
            yield each
        else:
            left += [*ast.iter_child_nodes(each)][::-1]
