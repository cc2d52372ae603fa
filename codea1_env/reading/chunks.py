"""Text of which only parts are Python: the parts that are, with bounded work."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_PARSED = 8
"""How many times the characters of a text may be parsed until what is left counts as no Python."""
_MORE = 40
"""Pieces that are tried together, where brackets or quotes stay open."""
_REPAIRS = 8
"""Lines that may be taken out of one function or class."""
_CONTINUES = re.compile(r"[)\]}]|(?:else|elif|except|finally)\b")
_COMPOUND = re.compile(r"\s*(?:def|class|for|with|if|while|try|async|@)\b|\s*@")
_OPEN = re.compile(
    r"never closed|unterminated triple|unexpected EOF|EOF in multi|expected an indented block|unexpected end"
)
_LOOKALIKE = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"}
)
_INVISIBLE = str.maketrans("", "", "\u200b\ufeff")


class Chunk(NamedTuple):
    """Some lines of a text."""

    text: str
    body: list[ast.stmt]
    """Its statements; empty if it is no Python."""
    error: str = ""
    """Why it is no Python."""
    removed: tuple[tuple[str, str], ...] = ()
    """Lines that were taken out so that the rest is Python, each with the reason."""


def parse(text: str) -> list[ast.stmt]:
    """Return the statements of a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" and the like
        return ast.parse(text).body


def message_of(error: BaseException) -> str:
    """Return what a parser's error says, in one line."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"cannot be parsed: {message or type(error).__name__}"[:200]


def chunks(text: str) -> Iterator[Chunk]:
    """Yield the parts of a text that is no Python as a whole, in order.

    A part is a statement at the left edge with what belongs to it. Where a function or class is broken, the lines
    that break it are taken out.
    """
    pieces = list(_pieces(text.replace("\r\n", "\n").replace("\f", " ")))
    budget = _Budget(_PARSED * len(text) + 10_000)
    at = 0
    while at < len(pieces):
        chunk, taken = _chunk(pieces, at, budget)
        at += taken
        yield chunk


class _Budget:
    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def parse(self, text: str) -> list[ast.stmt]:
        self.left -= len(text) + 20
        if self.left < 0:
            raise ValueError("too much text that is no Python")
        return parse(text)


def _pieces(text: str) -> Iterator[str]:
    """Lines at the left edge, each with the indented ones below it and those that can only continue it."""
    piece: list[str] = []
    decorated = False
    for line in text.split("\n"):
        inner = not line.strip() or line[0] in " \t" or _CONTINUES.match(line)
        if piece and not inner and not decorated:
            yield "\n".join(piece)
            piece = []
        piece.append(line)
        if line.strip():
            decorated = line[0] == "@" or (decorated and bool(inner))
    if piece:
        yield "\n".join(piece)


def _chunk(pieces: list[str], at: int, budget: _Budget) -> tuple[Chunk, int]:
    text = pieces[at]
    if not text.strip():
        return Chunk(text, []), 1
    first: BaseException
    try:
        return Chunk(text, budget.parse(text)), 1
    except PARSE_ERRORS as error:
        first = error
    if _OPEN.search(str(first)):
        longer = text
        for more in range(1, min(_MORE, len(pieces) - at)):
            longer = f"{longer}\n{pieces[at + more]}"
            try:
                return Chunk(longer, budget.parse(longer)), more + 1
            except PARSE_ERRORS as error:
                if not _OPEN.search(str(error)):
                    break
    plain = text.translate(_LOOKALIKE).translate(_INVISIBLE)
    if plain != text:
        try:
            return Chunk(plain, budget.parse(plain)), 1
        except PARSE_ERRORS:
            pass
    if text[0] in " \t":  # a block of code by indentation
        return _dedented(text, first, budget), 1
    whole = Chunk(text, [], message_of(first))
    if _COMPOUND.match(text) and text.count("\n"):
        whole = _repaired(text, first, budget)
    if whole.error and (parts := _prose_and_code(text, budget)):
        pieces[at : at + 1] = parts
        whole = Chunk(parts[0], [], message_of(first))
    return whole, 1


def _prose_and_code(text: str, budget: _Budget) -> list[str]:
    """Return lines of prose and the indented code below them, as Markdown has it; nothing where there is none."""
    lines = text.split("\n")
    first = next(
        (place for place, line in enumerate(lines) if line[:1] in (" ", "\t") and line.strip()), 0
    )
    parts = ["\n".join(lines[:first]), "\n".join(lines[first:])]
    if not first or _dedented(parts[1], ValueError(), budget).error:
        return []
    try:
        budget.parse(f"{parts[0].rstrip()}\n pass")
    except PARSE_ERRORS:
        return parts
    return []  # the head of a block


def _dedented(text: str, error: BaseException, budget: _Budget) -> Chunk:
    lead = len(text) - len(text.lstrip(" \t"))
    plain = "\n".join(line[lead:] if not line[:lead].strip() else line for line in text.split("\n"))
    try:
        return Chunk(plain, budget.parse(plain))
    except PARSE_ERRORS:
        return Chunk(text, [], message_of(error))


def _repaired(text: str, error: BaseException, budget: _Budget) -> Chunk:
    lines = text.split("\n")
    removed: list[tuple[str, str]] = []
    reason = message_of(error)
    for _ in range(_REPAIRS):
        place = error.lineno if isinstance(error, SyntaxError) else None
        if place is None or not 1 <= place <= len(lines):
            break
        place -= 1
        while place > 0 and not lines[place].strip():
            place -= 1
        line = lines[place]
        if not line.strip() or line.strip() == "pass" or line[0] not in " \t":
            break
        removed.append((message_of(error), line.strip()))
        lines[place] = f"{line[: len(line) - len(line.lstrip())]}pass"
        try:
            return Chunk(text, budget.parse("\n".join(lines)), "", tuple(removed))
        except PARSE_ERRORS as another:
            error = another
    return Chunk(text, [], reason)
