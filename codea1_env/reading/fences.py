"""Where the code is in an answer: behind the reasoning, before the end token, within fences."""

from __future__ import annotations

import bisect
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

_REASONED = re.compile(
    r"(?<![\"'])(?:</(?:think|thinking|thought|reasoning|reflection)>|\[/THINK\]|◁/think▷"
    r"|<\|channel\|>final<\|message\|>|<\|end_of_thought\|>|<\|begin_of_solution\|>)(?![\"'])",
    re.IGNORECASE,
)
_REASONING = re.compile(
    r"^[ \t]*+(?:<(?:think|thinking|thought|reasoning|reflection)>|\[THINK\]|◁think▷"
    r"|<\|channel\|>analysis<\|message\|>|<\|begin_of_thought\|>)(?![\"'])",
    re.IGNORECASE | re.MULTILINE,
)
_CODE_LINE = re.compile(r"^(?:```|~~~|def |class |import |from |assert |@)", re.MULTILINE)
_END = re.compile(
    r"(?:<\|(?:im_end|endoftext|eot_id|end|eot|end_of_text|im_start|return|end_of_solution|user|eom_id)\|>"
    r"|<end_of_turn>|<eos>|<｜end▁of▁sentence｜>|</s>(?=\s|$))",
    re.IGNORECASE,
)
_BEGUN = re.compile(r"^\[BEGIN\][ \t]*+$", re.MULTILINE)
_DONE = re.compile(r"^\[DONE\][ \t]*+$", re.MULTILINE)
_BEGIN = re.compile(r"\A\s*+(?:<s>|<bos>|<\|im_start\|>assistant\n|<\|begin_of_text\|>)++")
_ANSWER = re.compile(
    r"^[ \t]*+</?(?:answer|solution|code|output|python)>[ \t]*+|</(?:answer|solution|code|python)>[ \t]*+$",
    re.MULTILINE,
)
_SAID = re.compile(
    # Strings of one line, comments, and the marks of longer strings. What is escaped begins no string.
    r"(?P<long>\"\"\"|''')|(?<!\S)#[ !][^\n]*+|(?:\b[rbfuRBFU]{1,2}|(?<!\w))(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')|\\."
)

_WORDS = frozenset({
    "py", "py3", "python", "python2", "python3", "ipython", "pycon", "code", "tool_code", "json", "jsonc", "text",
    "txt", "plaintext", "output", "bash", "sh", "shell", "console", "zsh", "javascript", "js", "typescript", "ts",
    "java", "c", "cpp", "c++", "csharp", "go", "rust", "ruby", "markdown", "md", "html", "css", "xml", "yaml",
    "toml", "sql", "diff", "none", "pytest", "python-repl",
})  # fmt: skip
_PYTHON = frozenset(
    {"", "py", "py3", "python", "python2", "python3", "ipython", "code", "tool_code", "pytest"}
)
"""Languages of blocks that are Python."""
_OPENING = re.compile(
    # Possessive quantifiers (*+) never go back, so that no text can make the search slow.
    r"[ \t>*+-]*+(?:[0-9]{1,3}[.)][ \t]++)?(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^`\n]*+)$"
)
_CODE = r"(?:def|class|import|from|async|assert|@)[ \w][^`\n]*+|\w++ ?= ?lambda\b[^`\n]*+"
_WITH_CODE = re.compile(
    rf"[ \t>*+-]*+(?P<fence>`{{3,}}+|~{{3,}}+)[ \t]*+(?:(?:python|py)3?[ \t]++)?(?P<code>{_CODE})(?P<end>`{{3,}}+)?[ \t]*+$"
)
_LATE_OPENING = re.compile(r"[^`]*+(?P<fence>`{3,}+)[ \t]*+(?P<info>[\w.+{}-]{0,40}+)[ \t]*+$")
_LANGUAGE = re.compile(r"\{?\.?([^\s`{}:,=]{0,40})")
_CODE_END = re.compile(r"`{3,}+[ \t]*+$")
_QUOTES = re.compile(r"\"\"\"|'''|#[^\n]*+|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|\\.")


class Block(NamedTuple):
    """A piece of code in an answer."""

    code: str
    language: str
    """In lower case; "" where none is given."""
    closed: bool = True
    """False where the answer ends within it."""


def answer_in(text: str) -> str:
    r"""Return what is left of a text without its reasoning, without an end token and what follows.

    Reasoning that is cut off is no answer; what stands before it is.

    Example:
        >>> answer_in("<think>\nassert f(1) == 3?\n</think>\nassert f(1) == 2</s>")
        '\nassert f(1) == 2'
    """
    text = text.removeprefix("\ufeff")
    if "[BEGIN]" in text or "[DONE]" in text:  # as few-shot prompts of MBPP have it
        text = _DONE.split(_BEGUN.split(text)[-1])[0]
    if "<" not in text and "[/THINK]" not in text and "◁" not in text:
        return text
    in_line = _said(text, with_long=False) if _REASONED.search(text) else []
    ends = [
        found
        for found in _REASONED.finditer(text)
        if not _within(found, in_line) and not _is_span(text, *found.span())
    ]
    docstrings = _docstrings(text) if ends and ('"""' in text or "'''" in text) else []
    ends = [found for found in ends if not _within(found, docstrings) or _is_alone(found)]
    if ends:
        text = _behind_reasoning(text, [found.span() for found in ends])
    begins = _REASONING.search(text)
    if begins is not None and not _within(begins, _said(text)):
        text = text[: begins.start()]
    text = _BEGIN.sub("", text)
    said = _said(text) if _END.search(text) or _ANSWER.search(text) else []
    ends_of_text = (each.start() for each in _END.finditer(text) if not _within(each, said))
    text = text[: next((end for end in ends_of_text if text[:end].strip()), None)]
    return _ANSWER.sub(lambda found: found[0] if _within(found, said) else "\n", text)


def _is_span(text: str, start: int, end: int) -> bool:
    """Whether a tag is a code span of Markdown, in one backtick on each side."""
    before = text[max(0, start - 2) : start]
    return before.endswith("`") and before != "``" and text.startswith("`", end)


def _behind_reasoning(text: str, ends: list[tuple[int, int]]) -> str:
    """The text behind the last reasoning; where that is empty, the text before it."""
    last, end = ends[-1]
    begins = [found.start() for found in _REASONING.finditer(text, 0, last)]
    if text[end:].strip() or not begins:
        return text[end:]
    return text[max([e for _, e in ends[:-1] if e <= begins[-1]], default=0) : begins[-1]]


def _said(text: str, with_long: bool = True) -> list[tuple[int, int]]:
    """Return where strings and comments are: a tag in there is one of which somebody speaks."""
    spans: list[tuple[int, int]] = []
    at = 0
    while found := _SAID.search(text, at):
        start, at = found.span()
        if found["long"] is None:
            spans.append((start, at))
        elif with_long:
            end = text.find(found["long"], at)
            with_long = end >= 0  # else it is no string: it would never end
            if with_long:
                spans.append((start, end))
                at = end + 3
    return spans


def _docstrings(text: str) -> list[tuple[int, int]]:
    """Return where long strings are that begin their line, and hold nothing that begins code: reasoning has open quotes, too."""
    return [
        (start, end)
        for start, end in _said(text)
        if text.startswith(('"""', "'''"), start)
        and text[max(0, start - 80) : start].rpartition("\n")[2].strip("rRuU \t") == ""
        and not _CODE_LINE.search(text, start, end)
    ]


def _is_alone(found: re.Match[str]) -> bool:
    """Whether a tag is all there is on its line."""
    text, start, end = found.string, found.start(), found.end()
    return text[:start].endswith("\n") and text[end : end + 1] in ("", "\n")


def _within(found: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    place = bisect.bisect(spans, (found.start(),)) - 1
    return place >= 0 and found.start() < spans[place][1]


def blocks_in(text: str) -> list[Block]:
    r"""Return the fenced blocks of an answer.

    A fence within a triple-quoted string closes nothing. A closing fence may have text or an end token behind it,
    or stand at the end of a line of code. A block in an indented place (in a list) loses that indentation. The last
    block may be unclosed, as where an answer was cut off.

    Example:
        >>> blocks_in("Like this:\n```python\nx = 1\n```\nor\n~~~\nx = 2\n")
        [Block(code='x = 1\n', language='python', closed=True), Block(code='x = 2\n', language='', closed=False)]
    """
    if "```" not in text and "~~~" not in text:
        return []
    lines = text.split("\n")
    parts = [*[f"{line}\n" for line in lines[:-1]], *filter(None, lines[-1:])]
    return list(_blocks(parts, '"""' in text or "'''" in text))


def python_in(text: str) -> list[Block]:
    """Return the blocks that may be Python; those in other languages only if there are no others."""
    blocks = blocks_in(text)
    return [each for each in blocks if each.language in _PYTHON] or blocks


class _Opening(NamedTuple):
    """A line that opens a block."""

    fence: str
    language: str
    indentation: int = 0
    code: str = ""
    """What of the block stands on the line."""
    closed: bool = False
    """Whether the block ends there, too."""


def _blocks(lines: list[str], with_strings: bool) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        at += 1
        if opening is None:
            continue
        if opening.closed:
            yield Block(opening.code, opening.language)
            continue
        code, end, closed, whole = _body(lines, at, opening, with_strings)
        if not whole:  # a string that never ends: its quotes mean nothing, here or further on
            with_strings = False
            code, end, closed, _ = _body(lines, at, opening, with_strings)
        code = opening.code + code
        if code.lstrip("\n")[:1] in (" ", "\t"):  # all of it is indented, or it is a body
            code = textwrap.dedent(code)
        if code.strip() or closed:
            yield Block(code, opening.language, closed)
        at = end


def _opening(line: str) -> _Opening | None:
    if "```" not in line and "~~~" not in line:
        return None
    bare = line.rstrip()
    if "```" in line and (found := _WITH_CODE.match(bare)):
        return _Opening(found["fence"], "python", 0, f"{found['code']}\n", bool(found["end"]))
    found = _OPENING.match(bare)
    if found is None:
        found = _LATE_OPENING.match(bare)
        if found is None or _language(found["info"]) not in {"", *_WORDS}:
            return None
    return _Opening(found["fence"], _language(found["info"]), len(line) - len(line.lstrip(" \t")))


def _language(info: str) -> str:
    found = _LANGUAGE.match(info)
    return found[1].lower() if found else ""


def _body(
    lines: list[str], at: int, opening: _Opening, with_strings: bool
) -> tuple[str, int, bool, bool]:
    """Code of a block, the line behind it, whether it is closed, and whether no string was left open."""
    code: list[str] = []
    quotes, mark = "", opening.fence[0] * 3
    skipped = False
    for place in range(at, len(lines)):
        line = lines[place]
        closing = _closing(line, opening.fence) if mark in line else None
        if closing is not None and quotes:
            skipped = True
        elif closing is not None:
            last, reopened = closing
            if reopened and not "".join(code).strip():
                continue  # opened twice
            code.append(_dedented(last, opening.indentation))
            return "".join(code), place if reopened else place + 1, True, True
        if with_strings:
            quotes = _quotes_after(line, quotes)
        code.append(_dedented(line, opening.indentation))
    return "".join(code), len(lines), False, not (quotes and skipped)


def _closing(line: str, fence: str) -> tuple[str, bool] | None:
    """Return what stands before a closing fence on its line, and whether the line opens another block; None if it closes none."""
    bare = line.strip()
    mark = fence[0]
    if bare.startswith(fence):
        rest = bare.lstrip(mark).strip()
        marks = len(bare) - len(bare.lstrip(mark))
        return "", bool(rest) and marks == len(fence) and rest.lower() in _WORDS
    before = bare.removesuffix(fence)
    if before != bare and mark not in before:
        return line.rstrip().removesuffix(fence), False
    return None


def _dedented(line: str, indentation: int) -> str:
    lead = line[:indentation]
    return line[len(lead) - len(lead.lstrip(" \t")) :]


def _quotes_after(line: str, quotes: str) -> str:
    """Which triple quotes are open behind a line."""
    if '"""' not in line and "'''" not in line:
        return quotes
    at = 0
    while True:
        if quotes:
            end = line.find(quotes, at)
            if end < 0:
                return quotes
            at, quotes = end + 3, ""
        for found in _QUOTES.finditer(line, at):
            if found[0] in ('"""', "'''"):
                at, quotes = found.end(), found[0]
                break
        else:
            return ""


def unfenced(text: str) -> str:
    """Return a text without its lines of fences, for where the blocks are not what the writer meant."""
    if "```" not in text and "~~~" not in text:
        return text
    return "\n".join(
        "" if line.lstrip(" \t").startswith(("```", "~~~")) else _CODE_END.sub("", line)
        for line in text.replace("\r\n", "\n").split("\n")
    )
