"""Text for people: made safe to show, short, and counted."""

from __future__ import annotations

import re
from collections.abc import Iterable


def clean(text: str) -> str:
    r"""Return the text with everything but printable characters and line ends shown as escapes.

    Terminals and browsers act on some characters, and some reorder what a reader sees.

    Example:
        >>> clean("a\x1b[2J\u202eb\ud800")
        'a\\x1b[2J\\u202eb\\ud800'
        >>> clean("if x:\n\treturn")
        'if x:\n    return'
    """
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n").expandtabs(4)
    return "\n".join(
        line if line.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in line)
        for line in text.split("\n")  # most lines need nothing, which is found at once
    )


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shortest names that tell files and folders apart.

    Example:
        >>> short_names(["reference", "runs/a/seed_0/run", "runs/b/seed_0/run"])
        {'reference': 'reference', 'runs/a/seed_0/run': 'a/seed_0/run', 'runs/b/seed_0/run': 'b/seed_0/run'}
        >>> short_names(["no-book", "/home/me/mine.py:Mine"])
        {'no-book': 'no-book', '/home/me/mine.py:Mine': 'mine.py:Mine'}
    """
    distinct = list(dict.fromkeys(names))
    short: dict[str, str] = {}
    for name in distinct:
        parts = name.rstrip("/").split("/")
        for length in range(1, len(parts) + 1):
            end = "/".join(parts[-length:])
            if not any(
                other != name and ("/" + other.rstrip("/")).endswith("/" + end)
                for other in distinct
            ):
                break
        short[name] = end
    return short


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


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
    """Return a text that is safe to show, see `clean`, as a block of code.

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


def counted(number: int, what: str) -> str:
    """Return a number of things, which are named in the plural.

    Example:
        >>> counted(1, "suites"), counted(0, "suites")
        ('1 suite', '0 suites')
    """
    return f"{number} {what.removesuffix('s') if number == 1 else what}"


def counted_of(number: int, whole: int, what: str) -> str:
    """Return how many things of a whole, as in "5 of 128 problems"."""
    return f"{number} of {counted(whole, what)}"


def clock(seconds: float) -> str:
    """Show a time as people do.

    Example:
        >>> clock(59.6), clock(3601)
        ('1:00', '1:00:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
