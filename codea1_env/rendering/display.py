"""Parts that all renderings share: text made safe to show, and verdicts as rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from codea1_env.judging.verdicts import TestVerdict
from codea1_env.responses import Dropped

Tone = Literal["good", "bad", "warn"]


class DisplayRow(NamedTuple):
    """A test and its verdict."""

    tone: Tone
    """From the program's side: "good" if it passed, "bad" if it broke, "warn" if the test does not count."""
    verdict: str
    """"pass", "fail", "timeout", ..., or "invalid", "duplicate", or "no test" for prose."""
    text: str
    detail: str
    """Expected and actual value, the reason why it does not count, or that its value was corrected."""


def verdict_rows(tests: Sequence[TestVerdict]) -> list[DisplayRow]:
    """Return the rows of judged tests."""
    return [_row(test) for test in tests]


def dropped_rows(dropped: Sequence[Dropped]) -> list[DisplayRow]:
    """Return the rows of parts that could not be read as tests."""
    words = {True: "invalid", False: "no test"}
    return [
        DisplayRow("warn", words[item.invalid], clean(item.text), clean(item.reason))
        for item in dropped
    ]


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


def code_lines(code: str, max_lines: int, max_chars: int) -> tuple[list[str], int]:
    """Return the first lines of a program, shortened, and the number of lines left out."""
    lines = clean(code).split("\n")
    shown = [
        line if len(line) <= max_chars else f"{line[:max_chars]} ... ({len(line) - max_chars} more)"
        for line in lines[:max_lines]
    ]
    return shown, len(lines) - len(shown)


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


def _row(test: TestVerdict) -> DisplayRow:
    text = clean(test.text)
    if not test.attacks:
        return DisplayRow("warn", test.status, text, clean(test.reason))
    verdict = "not run" if test.outcome is None else test.outcome.value.replace("_", " ")
    details = [clean(test.message)] if test.message else []
    if test.status == "corrected":
        details.append(f"corrected, as written it {clean(test.reason)}")
    return DisplayRow("good" if test.passed else "bad", verdict, text, "; ".join(details))


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
