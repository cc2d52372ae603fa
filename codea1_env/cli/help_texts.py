"""Help texts whose lines are broken by the screen, and not where the source breaks them, which is where tyro does."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import shutil
import textwrap
import typing
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any


def join_lines(command: Any) -> None:
    """Let the options of a dataclass have the texts below their fields as help, each in one line.

    Args:
        command: A dataclass, whose fields may be dataclasses, or a union of some.
    """
    for kind in _dataclasses_in(command):
        texts: dict[str, str] = {}
        for each in reversed(kind.__mro__):
            texts |= _texts_below_fields(each)
        for field in dataclasses.fields(kind):
            if field.name in texts:  # of the field's metadata tyro takes the help first
                metadata = {**field.metadata, "help": texts[field.name]}
                field.metadata = MappingProxyType(metadata)


def in_paragraphs(text: str | None) -> str | None:
    r"""Join the lines of each paragraph.

    Example:
        >>> in_paragraphs("One.\n\n    Two,\n    (three).")
        'One.\n\nTwo, (three).'
    """
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def fitted(text: str) -> str:
    """Break those lines of a help text that are wider than the screen."""
    width = shutil.get_terminal_size().columns
    lines = [
        # What stands in a box fits, and its colours are no characters.
        textwrap.fill(line, width, break_long_words=False)
        if len(line) > width and "│" not in line and "\x1b" not in line
        else line
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def _dataclasses_in(hint: Any) -> Iterator[type[Any]]:
    if not (dataclasses.is_dataclass(hint) and isinstance(hint, type)):
        for part in typing.get_args(hint):
            yield from _dataclasses_in(part)
        return
    yield hint
    for part in typing.get_type_hints(hint).values():
        yield from _dataclasses_in(part)


def _texts_below_fields(kind: type[Any]) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # made by a program
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
