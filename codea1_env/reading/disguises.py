"""Code that something was put around: quotation marks, prompts, line numbers, a notebook's commands, escapes, JSON.

Each function returns what is left without it. They are tried, in this order, on answers in which no code is found.
"""

from __future__ import annotations

import ast
import contextlib
import html
import itertools
import json
import re
from collections.abc import Callable, Iterator

from .chunks import PARSE_ERRORS, parse

_MAX_STRINGS = 20
_DOCSTRING = ('"""', "'''")
_SHELL = re.compile(
    r"^(?:[!%]{1,2}[a-zA-Z_][^\n]*+|(?:\$ )?(?:pip3?|conda|uv|apt(?:-get)?) [a-z][^\n]*+|\$ [^\n]*+)$",
    re.MULTILINE,
)
_SHELL_STARTS = ("\n!", "\n%", "\n$", "\npip", "\nconda", "\nuv", "\napt")
_MAX_TRIES = 5
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_QUOTED = re.compile(r"^[ \t]*+>(?!>)[ \t]?", re.MULTILINE)
_PROMPT = re.compile(r"[ \t]*+(?:>>>|\.\.\.|In \[[0-9]{0,4}\]:|\.{3,12}:)(?: (?P<code>[^\n]*+))?$")
_NUMBER = re.compile(r"[ \t]*+[0-9]{1,4}[.:|)]?+(?P<code>[ \t][^\n]*+|)$")
_ADDED = re.compile(r"^[+](?![+])", re.MULTILINE)
_DIFF = re.compile(r"^(?:-|@@|\+\+\+|index |diff )[^\n]*+", re.MULTILINE)
_TAG = re.compile(r"</?(?:pre|code|python|div|p|br)\b[^>\n]{0,100}>", re.IGNORECASE)
_LISTING = re.compile(
    r"\\(?:begin|end)\{(?:lstlisting|verbatim|minted|python)\}(?:[\[{][^\]}\n]{0,80}[\]}])?"
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "    ", "r": ""}
_INLINE = re.compile(r"(?<!`)`([^`\n]++)`(?!`)")


def without_commands(code: str) -> str:
    r"""Return a program without the lines that only a notebook or shell understands, if it is one then.

    Example:
        >>> without_commands("%%writefile f.py\n!pip install numpy\nx = 7 % 3\n")
        '\n\nx = 7 % 3\n'
    """
    lines = f"\n{code}"
    if not any(start in lines for start in _SHELL_STARTS) or _SHELL.search(code) is None:
        return code
    try:
        parse(code)
    except PARSE_ERRORS:
        return _SHELL.sub("", code)
    return code


def undisguised(text: str, word: str, together: bool = False) -> Iterator[str]:
    r"""Yield readings of a text that hold a word, most likely ones first; the strings of JSON as one where `together`.

    Example:
        >>> list(undisguised("> def f():\n>     return 1\n", "f"))
        ['def f():\n    return 1\n']
        >>> next(undisguised('{"code": "def f():\\n    return 1"}', "f"))
        'def f():\n    return 1'
    """
    for strings in (_in_json(text, word), _in_python(text, word)):
        found = list(strings)
        yield from ["\n".join(found)] if together and found else found
    for undo in _UNDO:
        plain = undo(text)
        if plain != text and word in plain:
            yield plain


def strings_of_json(text: str, at: int = 0) -> Iterator[tuple[int, int, str | None]]:
    """Yield start, end and value of the strings of JSON; None for one with an escape that JSON does not have."""
    while (at := text.find('"', at)) >= 0 and (found := _STRING.match(text, at)):
        at, value = found.end(), None
        with contextlib.suppress(ValueError):
            value = str(json.loads(found[0], strict=False))
        yield found.start(), at, value


def listed_statements(answer: str, key: str) -> list[str] | None:
    r"""Return the texts under a key of the JSON in an answer; None if there is none.

    One text may stand for the list. Of JSON that is cut off, the complete texts are taken.

    Example:
        >>> listed_statements('So: {"tests": ["assert f(1) == 2", "assert f(', "tests")
        ['assert f(1) == 2']
    """
    decoder = json.JSONDecoder(strict=False)
    place = -1
    for _ in range(_MAX_TRIES):
        place = answer.find("{", place + 1)
        if place < 0:
            break
        with contextlib.suppress(ValueError, RecursionError):
            found, _ = decoder.raw_decode(answer, place)
            if key in found:
                items = found[key] if isinstance(found[key], list) else [found[key]]
                return [item for item in items if isinstance(item, str)]
    start = re.search(rf"\"{re.escape(key)}\"\s*+:\s*+\[?", answer)
    if start is None:
        return None
    texts: list[str] = []
    last = start.end()
    for begin, end, text in strings_of_json(answer, last):
        if answer[last:begin].strip() not in ("", ","):
            break
        texts += [text] if text is not None else []
        last = end
    return texts


def _in_json(text: str, word: str) -> Iterator[str]:
    """Yield the strings of JSON, also of JSON that is cut off; lists of lines as one."""
    found = [(start, end, each) for start, end, each in strings_of_json(text) if each is not None]
    gaps = itertools.pairwise(found[1:])
    if len(found) > 2 and all(text[one[1] : other[0]].strip() == "," for one, other in gaps):
        yield "\n".join([each for _, _, each in found[1:]])
        return
    for _, _, each in found[:_MAX_STRINGS]:
        if word in each and each != word:
            yield each


def _in_python(text: str, word: str) -> Iterator[str]:
    if not text.lstrip().startswith(("{", "[", "(", '"', "'")) or text.lstrip()[:3] in _DOCSTRING:
        return
    try:
        body = parse(text.strip())
    except PARSE_ERRORS:
        return
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        left = _MAX_STRINGS
        for node in ast.walk(body[0]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                left -= 1
                if left >= 0 and word in node.value and node.value != word:
                    yield node.value


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text)


def _unprompted(text: str) -> str:
    """Return what was typed at prompts, without what was shown below; fences stay."""
    if ">>>" not in text and "In [" not in text:
        return text
    lines = []
    for line in text.split("\n"):
        found = _PROMPT.match(line)
        if found:
            lines.append(found["code"] or "")
        else:
            lines.append(line if line.lstrip().startswith(("```", "~~~")) else "")
    return "\n".join(lines)


def _unnumbered(text: str) -> str:
    lines = [(line, _NUMBER.match(line)) for line in text.split("\n")]
    numbered = [found["code"] for _, found in lines if found]
    if len(numbered) < 2:
        return text
    least = min((len(code) - len(code.lstrip()) for code in numbered if code.strip()), default=0)
    return "\n".join(found["code"][least:] if found else line for line, found in lines)


def _merged(text: str) -> str:
    return _ADDED.sub("", _DIFF.sub("", text)) if _ADDED.search(text) else text


def _plain_text(text: str) -> str:
    if "<" not in text and "\\" not in text:
        return text
    return html.unescape(_LISTING.sub("", _TAG.sub("", text)))


def _unescaped(text: str) -> str:
    r"""Return a text with line breaks where it says `\n`."""
    if "\\n" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)


def _inline(text: str) -> str:
    return "\n".join(_INLINE.findall(text))


_UNDO: tuple[Callable[[str], str], ...] = (
    _unquoted, _unprompted, _unnumbered, _merged, _plain_text, _unescaped, _inline,
)  # fmt: skip
