"""Interactive examples (`>>> f(2)` and what it shows) as assertions."""

from __future__ import annotations

import ast

from .chunks import PARSE_ERRORS

_PROMPT, _MORE = ">>> ", "... "


def asserted(text: str) -> str:
    r"""A text with its interactive examples at the left edge as assertions.

    Example:
        >>> asserted("So:\n>>> x = [1]\n>>> f(x)\n2")
        'So:\nx = [1]\nassert f(x) == (2)'
    """
    lines: list[str] = []
    asked = ""
    for line in text.split("\n"):
        if asked and line.strip() and not line.startswith((_PROMPT, _MORE)):
            lines[-1] = _assertion(asked, line.strip())
            asked = ""
        elif line.startswith(_PROMPT):
            asked = line[len(_PROMPT) :]
            lines.append(asked)
        elif line.startswith(_MORE) and lines:
            lines.append(line[len(_MORE) :])
            asked = ""
        else:
            lines.append(line)
            asked = ""
    return "\n".join(lines)


def _assertion(asked: str, shown: str) -> str:
    try:
        for each in (asked, shown):
            ast.parse(each, mode="eval")
    except PARSE_ERRORS:
        return f"{asked}\n{shown}"
    return f"assert {asked} == ({shown})"
