"""Model text -> a program, or tests.

Code is looked for in fenced blocks (three or more backticks or tildes), those marked as Python first. The
last fence may be unclosed, as where an answer was cut off. Without a fence the whole text is the code. What
is taken is taken as it is: the text is never repaired, and what cannot be used is named with a reason.

No text is parsed here: that happens in the sandbox.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.splitting import Splitter, Statement
from codea1_env.syntax import Item, describe

MAX_ACTION_CHARS = 65_536
"""A longer answer holds no program and no tests."""
_BATCH_CHARS = 1 << 18
_PYTHON = frozenset(["", "py", "py3", "python", "python2", "python3", "ipython", "pycon", "code"])
# Possessive quantifiers (*+) never go back, so that no text can make the search slow.
_OPENING = re.compile(
    r"(?:^\s*+(?=~)|(?:^|[^`])(?=`))(?P<fence>`{3,}+|~{3,}+)[ \t]*+\{?\.?"
    r"(?P<language>[^\s`{}]{0,40}+)[^`]{0,200}+$"
)
_PRINTABLE = str.maketrans("", "", string.printable)


@dataclass(frozen=True)
class Program:
    """The program in a coder's answer."""

    code: str
    """Program text, as it was written."""
    problem: str | None = None
    """Why the answer holds no program that could run; None if it may."""


@dataclass(frozen=True)
class Dropped:
    """A part of a tester's answer of which no test was made."""

    reason: str
    text: str
    invalid: bool = True
    """Whether it counts as an invalid test: it was meant as one. Prose, prints and unused helpers were not."""


@dataclass(frozen=True)
class Suite:
    """The tests in a tester's answer."""

    tests: tuple[str, ...]
    """Each stands on its own: with the variables, helpers and imports that it needs."""
    dropped: tuple[Dropped, ...] = ()
    nonprintable_ratio: float = 0.0
    """Share of characters outside `string.printable` in the whole answer."""


@dataclass(frozen=True)
class Block:
    """A piece of code in an answer."""

    code: str
    language: str
    """In lower case; "" where none is given."""


def code_blocks(text: str) -> list[Block]:
    r"""The fenced blocks of a text.

    A block in an indented place (in a list) loses that indentation.

    Example:
        >>> code_blocks("Like this:\n```python\nx = 1\n```\nor\n~~~\nx = 2\n")
        [Block(code='x = 1\n', language='python'), Block(code='x = 2\n', language='')]
    """
    blocks = []
    lines = iter(re.findall(r"[^\n]*\n|[^\n]+", text))
    for line in lines:
        opening = _OPENING.search(line.rstrip("\r\n"))
        if opening is not None:
            indentation = len(line) - len(line.lstrip(" \t"))
            code = "".join(_block_lines(lines, opening["fence"], indentation))
            blocks.append(Block(code, opening["language"].lower()))
    return blocks


def _block_lines(lines: Iterator[str], fence: str, indentation: int) -> Iterator[str]:
    for line in lines:
        bare = line.strip()
        if len(bare) >= len(fence) and bare == fence[0] * len(bare):
            return
        lead = len(line[:indentation]) - len(line[:indentation].lstrip(" \t"))
        end = line.rstrip().removesuffix(fence)
        if end != line.rstrip() and fence[0] not in end:
            yield end[lead:]  # closed at the end of the last line of code
            return
        yield line[lead:]


def python_blocks(text: str) -> list[str]:
    """The code of the blocks that may be Python; those in other languages only if there are no others."""
    blocks = code_blocks(text)
    marked = [block.code for block in blocks if block.language in _PYTHON]
    return marked or [block.code for block in blocks]


def parse_program(text: str, entry_point: str | None = None) -> Program:
    r"""Finds the program in a coder's answer.

    Of several blocks it is the last one that defines the entry point, if that is given; else the last one
    that defines a function or class which is not named as a test; else the last one.

    Args:
        text: The answer.
        entry_point: The function that the program must define.

    Returns:
        The program. An answer that cannot hold one (empty, too long, with a null byte or a lone
        surrogate) gives a `problem`; whether the code is Python shows when it runs.

    Example:
        >>> parse_program("Sure:\n```python\ndef f():\n    return 1\n```\n```\nprint(f())\n```").code
        'def f():\n    return 1\n'
        >>> parse_program(" ").problem
        'the answer is empty'
    """
    problem = _text_problem(text)
    if problem is not None:
        return Program("", problem)
    blocks = python_blocks(text) or [text]
    code = blocks[-1]
    patterns = [r"(?:def|class)\s+(?!test)\w"]
    if entry_point is not None:
        name = re.escape(entry_point)
        patterns.insert(0, rf"(?:def|class)\s+{name}\b|{name}\s*=")
    for pattern in patterns:
        defining = re.compile(rf"^(?:async\s+)?(?:{pattern})", re.MULTILINE)
        found = [block for block in blocks if defining.search(block)]
        if found:
            code = found[-1]
            break
    if not code.strip():
        return Program(code, "the code block is empty")
    if "\0" in code:
        return Program(code, "the code has a null byte, which Python does not allow")
    try:
        code.encode()
    except UnicodeEncodeError as error:
        bad = f"U+{ord(code[error.start]):04X}"
        return Program(code, f"the code has a lone surrogate ({bad}), which Python does not allow")
    return Program(code)


def parse_suite(text: str, entry_point: str, sandbox: Sandbox) -> Suite:
    """Finds the tests in a tester's answer. See `parse_suites`."""
    return parse_suites([(text, entry_point)], sandbox)[0]


def parse_suites(texts: Sequence[tuple[str, str]], sandbox: Sandbox) -> list[Suite]:
    r"""Finds the tests in testers' answers.

    All Python blocks of an answer are read as one text. `codea1_env.splitting` says what becomes a test.

    Args:
        texts: Pairs of the answer and the function under test.
        sandbox: Where the texts are parsed.

    Returns:
        One suite for each answer.

    Example:
        >>> from codea1_env.sandbox import Sandbox
        >>> with Sandbox() as sandbox:
        ...     parse_suites([("x = 1\nassert f(x) == 2\nassert f(", "f")], sandbox)[0].tests
        ('x = 1\nassert f(x) == 2',)
    """
    codes = [_suite_code(text) for text, _ in texts]
    described = iter(_described([code for code in codes if code is not None], sandbox))
    suites = []
    for (text, entry_point), code in zip(texts, codes, strict=True):
        tests: list[str] = []
        problem = _text_problem(text)
        items: list[Item] = []
        if code is not None:
            statements, items = next(described)
            splitter = Splitter(statements, entry_point)
            tests = splitter.tests()
            items = items + splitter.dropped
            problem = None if tests or items else "the answer holds no test"
        dropped = [Dropped(*item) for item in items]
        if problem is not None:
            dropped.append(Dropped(problem, text[:200], invalid=False))
        suites.append(Suite(tuple(tests), tuple(dropped), nonprintable_ratio(text)))
    return suites


def nonprintable_ratio(text: str) -> float:
    r"""The share of characters outside `string.printable`: all but ASCII letters, digits, signs and spaces.

    Example:
        >>> nonprintable_ratio("caf\u00e9")
        0.25
    """
    return len(text.translate(_PRINTABLE)) / len(text) if text else 0.0


def _text_problem(text: str) -> str | None:
    if not isinstance(text, str):
        raise TypeError(f"Expect an answer to be a str, actually: {type(text)}")
    if len(text) > MAX_ACTION_CHARS:
        return f"the answer is too long: {len(text)} characters, of at most {MAX_ACTION_CHARS}"
    return None if text.strip() else "the answer is empty"


def _suite_code(text: str) -> str | None:
    if _text_problem(text) is not None:
        return None
    blocks = python_blocks(text)
    return "\n".join(blocks) if blocks else text


def _described(codes: list[str], sandbox: Sandbox) -> Iterator[tuple[list[Statement], list[Item]]]:
    """The statements of each text, parsed in batches; a text that breaks the parser only harms itself."""
    while codes:
        size = 0
        batch: list[str] = []
        for code in codes:
            size += len(code)
            if batch and size > _BATCH_CHARS:
                break
            batch.append(code)
        codes = codes[len(batch) :]
        yield from _analysed(batch, sandbox)


def _analysed(codes: list[str], sandbox: Sandbox) -> list[tuple[list[Statement], list[Item]]]:
    try:
        rows, found = sandbox.analyse(describe, codes)
    except AnalysisError as error:
        if len(codes) == 1:
            return [([], [(f"cannot be parsed: {error}", codes[0][:200], True)])]
        half = len(codes) // 2
        return _analysed(codes[:half], sandbox) + _analysed(codes[half:], sandbox)
    # A statement that comes twice in a text is two statements.
    return [
        ([Statement(**rows[place]) for place in places], [(a, b, c) for a, b, c in dropped])
        for places, dropped in found
    ]
