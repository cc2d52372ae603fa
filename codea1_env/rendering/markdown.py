"""Any text as code in Markdown, so that nothing in it is read as Markdown or HTML."""

from __future__ import annotations

import re

from codea1_env.rendering.display import clean


def in_line(text: str, longest: int = 500) -> str:
    """Return a text as code in one line.

    Example:
        >>> in_line("f(`x`)" + chr(10) + " <b>")
        '`` f(`x`) <b> ``'
    """
    line = " ".join(clean(text).split())
    if len(line) > longest:
        line = f"{line[: longest - 3]}..."
    ticks = "`" * (1 + _most_ticks(line))
    return f"{ticks} {line} {ticks}" if len(ticks) > 1 else f"`{line}`"


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code.

    Args:
        text: Made safe to show already; see `codea1_env.rendering.display.clean`.
        language: What highlights it.

    Example:
        >>> print(fenced("x = 1"))
        ```
        x = 1
        ```
    """
    ticks = "`" * max(3, 1 + _most_ticks(text))
    return f"{ticks}{language}\n{text}\n{ticks}"


def _most_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
