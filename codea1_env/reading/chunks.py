"""Text of which only parts are Python: the parts that are, with bounded work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .syntax import attempt, message_of

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


def chunks(text: str) -> Iterator[Chunk]:
    """Yield the parts of a text that is no Python as a whole, in order.

    A part is a statement at the left edge with what belongs to it. Where a function or class is broken, the lines
    that break it are taken out.
    """
    pieces = list(_pieces(text.replace("\r\n", "\n").replace("\f", " ")))
    parser = _Parser(_PARSED * len(text) + 10_000)
    at = 0
    while at < len(pieces):
        chunk, taken = _chunk(pieces, at, parser)
        at += taken
        yield chunk


class _Parser:
    """Parses texts until they were too many characters together."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def body(self, text: str) -> list[ast.stmt] | BaseException:
        """Return the statements of a text, or why it is no Python."""
        self._left -= len(text) + 20
        if self._left < 0:
            return ValueError("too much text that is no Python")
        return attempt(text)

    def chunk(self, text: str) -> Chunk | None:
        """Return a text as a chunk; None if it is no Python."""
        body = self.body(text)
        return Chunk(text, body) if isinstance(body, list) else None


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


def _chunk(pieces: list[str], at: int, parser: _Parser) -> tuple[Chunk, int]:
    """Return the chunk that begins with a piece, and how many pieces it takes."""
    text = pieces[at]
    if not text.strip():
        return Chunk(text, []), 1
    body = parser.body(text)
    if isinstance(body, list):
        return Chunk(text, body), 1
    error = body
    if _OPEN.search(str(error)):
        for end in range(at + 2, min(at + _MORE, len(pieces)) + 1):
            longer = "\n".join(pieces[at:end])
            body = parser.body(longer)
            if isinstance(body, list):
                return Chunk(longer, body), end - at
            if not _OPEN.search(str(body)):
                break
    plain = text.translate(_LOOKALIKE).translate(_INVISIBLE)
    if plain != text and (chunk := parser.chunk(plain)):
        return chunk, 1
    broken = Chunk(text, [], message_of(error))
    if text[0] in " \t":  # a block of code by indentation
        return parser.chunk(_dedented(text)) or broken, 1
    if _COMPOUND.match(text) and text.count("\n"):
        broken = _repaired(text, error, parser) or broken
    if broken.error and (parts := _prose_and_code(text, parser)):
        pieces[at : at + 1] = parts
        broken = broken._replace(text=parts[0])
    return broken, 1


def _prose_and_code(text: str, parser: _Parser) -> list[str]:
    """Return lines of prose and the indented code below them, as Markdown has it; nothing where there is none."""
    lines = text.split("\n")
    first = next(
        (place for place, line in enumerate(lines) if line[:1] in (" ", "\t") and line.strip()), 0
    )
    prose, code = "\n".join(lines[:first]), "\n".join(lines[first:])
    if not first or parser.chunk(_dedented(code)) is None:
        return []
    is_head = parser.chunk(f"{prose.rstrip()}\n pass") is not None  # of a block
    return [] if is_head else [prose, code]


def _dedented(text: str) -> str:
    lead = len(text) - len(text.lstrip(" \t"))
    return "\n".join(line[lead:] if not line[:lead].strip() else line for line in text.split("\n"))


def _repaired(text: str, error: BaseException, parser: _Parser) -> Chunk | None:
    """Return a function or class without the lines that break it; None if that is no Python either."""
    lines = text.split("\n")
    removed: list[tuple[str, str]] = []
    for _ in range(_REPAIRS):
        place = error.lineno if isinstance(error, SyntaxError) else None
        if place is None or not 1 <= place <= len(lines):
            return None
        place -= 1
        while place > 0 and not lines[place].strip():
            place -= 1
        line = lines[place]
        if not line.strip() or line.strip() == "pass" or line[0] not in " \t":
            return None
        removed.append((message_of(error), line.strip()))
        lines[place] = f"{line[: len(line) - len(line.lstrip())]}pass"
        body = parser.body("\n".join(lines))
        if isinstance(body, list):
            return Chunk(text, body, "", tuple(removed))
        error = body
    return None
