"""Examples in a text: interactive ones (`>>> f(2)` and what it shows) as assertions, and a problem's text without its own.

Whoever sees a problem's text can copy its examples. What is earned by copying must be known, so that it is not taken for
skill.
"""

from __future__ import annotations

import ast
import re

from .chunks import PARSE_ERRORS

_PROMPT, _MORE = ">>> ", "... "


def asserted(text: str) -> str:
    r"""Return a text with its interactive examples at the left edge as assertions.

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


RUN = "run"
"""The name by which a test calls a program that reads standard input: `assert run("1 2\\n") == "3\\n"`."""
_ARROW = r"(?:#\s*)?(?:={1,3}>?|-{1,2}>|➞|→|⇒|returns|should return|gives)"
_LONGEST = 4000
"""Characters of a line that is looked at: longer ones are no examples, and cost time."""
_HEADING = re.compile(r"\W*(?:for\s+)?(?:examples?|e\.?g\.?)(?:\s+usage|\s+\d+)?\W*", re.IGNORECASE)
_QUOTES = re.compile(r'"""|\'\'\'')


def called(entry_point: str) -> str:
    """Return what stands before the brackets of a call: a method is one of a new instance.

    A program that reads standard input has no entry point. Tests call it by the name `run`.

    Example:
        >>> called("f"), called("Solution.f"), called("")
        ('f', 'Solution().f', 'run')
    """
    return entry_point.replace(".", "().") or RUN


def split_examples(prompt: str, entry_point: str) -> tuple[str, list[str]]:
    r"""Take the examples out of a problem's text.

    An example is a line of its own: `>>> f(2)` with what stands below it up to an empty line or the next example,
    `assert f(2) == 4`, or a call with an arrow (`f(2) ➞ 4`, `f(2) == 4`, `f(2) should return 4`). Examples within a
    sentence stay.

    Args:
        prompt: The text that players see.
        entry_point: The function that examples call.

    Returns:
        The text without examples, and the examples as `assert` statements; none of them has been checked.

    Example:
        >>> split_examples("def f(n):\n    '''Double n.\n\n    >>> f(2)\n    4\n    '''", "f")
        ("def f(n):\n    '''Double n.\n    '''", ['assert f(2) == 4'])
    """
    name = re.escape(called(entry_point))
    call = name + r"\(.*\)"
    stated = re.compile(rf"(?:>>>\s*|assert\s+)?({call})\s*{_ARROW}\s*(\S.*)")
    other = re.compile(rf"assert\s.*\b{name}\(.*")
    asked = re.compile(rf">>>\s*({call})\s*;?")
    kept: list[str] = []
    tests: list[str] = []
    waiting = ""
    inside = False  # below `>>>`, where what is shown stands
    for line in prompt.split("\n"):
        closing = _QUOTES.search(line) if kept else None
        text, end = (line[: closing.start()], line[closing.start() :]) if closing else (line, "")
        text = text.strip() if len(line) <= _LONGEST else ""
        is_code = line.lstrip().startswith(("def ", "class ", "async ", "import ", "from "))
        if is_code or len(line) > _LONGEST:
            inside, waiting = False, ""
            kept.append(line)
            continue
        if found := stated.fullmatch(text):
            tests.append(f"assert {found[1]} == {found[2]}")
            inside, waiting = text.startswith(">>>"), ""
        elif other.fullmatch(text):
            tests.append(text)
            inside, waiting = False, ""
        elif text.startswith(">>>"):
            found = asked.fullmatch(text)
            inside, waiting = True, found[1] if found else ""
        elif inside and text:
            if waiting and not text.startswith("..."):
                tests.append(f"assert {waiting} == {text}")
            waiting = ""
        else:
            inside, waiting = False, ""
            kept.append(line)
            continue
        if end:
            kept.append(line[: len(line) - len(line.lstrip())] + end)
            inside, waiting = False, ""
    return ("\n".join(_tidied(kept)) if tests else prompt), tests


def _tidied(lines: list[str]) -> list[str]:
    """Without headings of examples, and without the empty lines that the examples leave."""
    left = [line for line in lines if not line.strip() or not _HEADING.fullmatch(line)]
    tidy: list[str] = []
    for line in left:
        if tidy and not tidy[-1].strip() and (not line.strip() or _QUOTES.match(line.strip())):
            tidy.pop()
        tidy.append(line)
    return tidy
