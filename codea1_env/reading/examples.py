"""Examples in a text: interactive ones (`>>> f(2)` and what it shows) as assertions, and a problem's text without its own.

Whoever sees a problem's text can copy its examples. What is earned by copying must be known, so that it is not taken for
skill.
"""

from __future__ import annotations

import re

from .fences import unfenced
from .syntax import expression

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
        shown, before, asked = line.strip(), asked, ""
        if line.startswith(_PROMPT):
            asked = line[len(_PROMPT) :]
            lines.append(asked)
        elif line.startswith(_MORE) and lines:
            lines.append(line[len(_MORE) :])
        elif before and shown and expression(before) and expression(shown):
            lines[-1] = f"assert {before} == ({shown})"
        else:
            lines.append(shown if before and shown else line)
    return "\n".join(lines)


RUN = "run"
"""The name by which a test calls a program that reads standard input: `assert run("1 2\\n") == "3\\n"`."""
_ARROW = r"(?:#\s*)?(?:={1,3}>?|-{1,2}>|➞|→|⇒|returns|should return|gives)"
_LONGEST = 4000
"""Characters of a line that is looked at: longer ones are no examples, and cost time."""
_HEADING = re.compile(r"\W*(?:for\s+)?(?:examples?|e\.?g\.?)(?:\s+usage|\s+\d+)?\W*", re.IGNORECASE)
_LONGEST_HEAD = 60
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
        entry_point: The function that examples call; "" where they are inputs and outputs of a program, below lines such
            as `Example input:`.

    Returns:
        The text without examples, and the examples as `assert` statements; none of them has been checked.

    Example:
        >>> split_examples("def f(n):\n    '''Double n.\n\n    >>> f(2)\n    4\n    '''", "f")
        ("def f(n):\n    '''Double n.\n    '''", ['assert f(2) == 4'])
    """
    if not entry_point:
        return _split_inputs(prompt)
    name = re.escape(called(entry_point))
    call = name + r"\(.*\)"
    stated = re.compile(rf"(?:>>>\s*|assert\s+)?({call})\s*{_ARROW}\s*(\S.*)")
    other = re.compile(rf"assert\s.*\b{name}\(.*")
    asked = re.compile(rf">>>\s*({call})\s*;?")
    kept: list[str] = []
    tests: list[str] = []
    inside, waiting = False, ""  # below `>>>`, where what is shown stands, and the call before it
    for line in prompt.split("\n"):
        closing = _QUOTES.search(line) if kept else None
        text, end = (line[: closing.start()], line[closing.start() :]) if closing else (line, "")
        is_code = line.lstrip().startswith(("def ", "class ", "async ", "import ", "from "))
        text = "" if is_code or len(line) > _LONGEST else text.strip()
        was_inside, call_before = inside, waiting
        inside, waiting = False, ""
        if found := stated.fullmatch(text):
            tests.append(f"assert {found[1]} == {found[2]}")
            inside = text.startswith(">>>")
        elif other.fullmatch(text):
            tests.append(text)
        elif text.startswith(">>>"):
            found = asked.fullmatch(text)
            inside, waiting = True, found[1] if found else ""
        elif was_inside and text:
            if call_before and not text.startswith("..."):
                tests.append(f"assert {call_before} == {text}")
            inside = True
        else:
            kept.append(line)
            continue
        if end:
            kept.append(line[: len(line) - len(line.lstrip())] + end)
            inside, waiting = False, ""
    return ("\n".join(_tidied(kept)) if tests else prompt), tests


_HEAD = re.compile(
    r"[-*#=\s]*(?P<example>(?:for\s+)?(?:examples?|samples?)\b)?[\s\d#:]*(?P<what>(?:standard\s+)?(?:input|output)s?)?"
    r"(?:\s+example|\s+sample)?[\s\d#]*:?[-*=\s:]*",
    re.IGNORECASE,
)
_OTHER_HEAD = re.compile(
    r"[-*#=\s]*(?:notes?|explanations?|constraints?|hints?)\b[\s\d#:*=-]*", re.IGNORECASE
)


def _split_inputs(prompt: str) -> tuple[str, list[str]]:
    """Take inputs and outputs out of the text of a problem: those below headings that speak of examples."""
    kept: list[str] = []
    tests: list[str] = []
    part, of_examples = "", False
    texts: dict[str, list[str]] = {"input": [], "output": []}

    def end() -> None:
        given, printed = ("\n".join(texts[each]).strip("\n") for each in ("input", "output"))
        if texts["input"] and printed:
            tests.append(f"assert {RUN}({f'{given}{chr(10)}'!r}) == {f'{printed}{chr(10)}'!r}")
            texts.update(input=[], output=[])

    for line in unfenced(prompt).replace("\r\n", "\n").split("\n"):
        head = _HEAD.fullmatch(line) if 2 < len(line.strip()) < _LONGEST_HEAD else None
        what = (head["what"] or "").lower() if head else ""
        if head and (head["example"] or (what and of_examples)):
            of_examples = True
            part = "output" if "output" in what else "input" if what else ""
            if part != "output":
                end()
                texts["input"] = []
            continue
        if (head and what) or _OTHER_HEAD.fullmatch(line):  # a section of the text
            part, of_examples = "", False
        if part == "output" and not line.strip() and any(map(str.strip, texts["output"])):
            part = ""
        if part:
            texts[part].append(line)
        else:
            end()
            kept.append(line)
    end()
    return ("\n".join(_tidied(kept)).rstrip() + "\n" if tests else prompt), tests


def _tidied(lines: list[str]) -> list[str]:
    """Without headings of examples, and without the empty lines that the examples leave."""
    left = [line for line in lines if not line.strip() or not _HEADING.fullmatch(line)]
    tidy: list[str] = []
    for line in left:
        if tidy and not tidy[-1].strip() and (not line.strip() or _QUOTES.match(line.strip())):
            tidy.pop()
        tidy.append(line)
    return tidy
