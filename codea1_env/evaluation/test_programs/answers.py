"""A model's text, or a line of a file -> tests that are programs.

Code is looked for behind the reasoning, in fenced blocks, those marked as Python first
(`codea1_env.reading.fences`). Without a fence the whole text is the code. What
is taken is taken as it is: the text is never repaired, and what cannot be used is named with a reason.

No text is parsed here: that happens in the sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env.evaluation.test_programs.splitting import Splitter, Statement
from codea1_env.evaluation.test_programs.syntax import Item, describe
from codea1_env.reading.fences import PYTHON, answer_in, blocks_in
from codea1_env.responses import text_problem
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.support.texts import in_batches

_Described = tuple[list[Statement], list[Item]]


@dataclass(frozen=True)
class Rest:
    """A part of an answer of which no test was made."""

    reason: str
    text: str
    invalid: bool = True
    """Whether it was meant as a test. Prose, prints and unused helpers were not."""


@dataclass(frozen=True)
class TestProgramSuite:
    """The tests in an answer."""

    __test__ = False  # pytest would collect a class of this name

    tests: tuple[str, ...]
    """Each is a program that stands on its own: with the variables, helpers and imports that it needs."""
    rest: tuple[Rest, ...] = ()


def python_blocks(text: str) -> list[str]:
    r"""The code of the blocks that may be Python; those in other languages only if there are no others.

    Example:
        >>> python_blocks("Like this:\n```python\nx = 1\n```\nor\n~~~\nx = 2\n")
        ['x = 1\n', 'x = 2\n']
    """
    blocks = blocks_in(text)
    marked = [block.code for block in blocks if block.language in ("", "pycon", *PYTHON)]
    return marked or [block.code for block in blocks]


def read_test_programs(
    texts: Sequence[tuple[str, str]], sandbox: Sandbox
) -> list[TestProgramSuite]:
    r"""Find the tests in answers.

    All Python blocks of an answer are read as one text. `codea1_env.evaluation.test_programs.splitting` says what
    becomes a test.

    Args:
        texts: Pairs of the answer and the function under test.
        sandbox: Where the texts are parsed.

    Returns:
        One suite for each answer.

    Example:
        >>> from codea1_env.sandbox import Sandbox
        >>> with Sandbox() as sandbox:
        ...     read_test_programs([("x = 1\nassert f(x) == 2\nassert f(", "f")], sandbox)[0].tests
        ('x = 1\nassert f(x) == 2',)
    """
    codes = [_code_of(text) for text, _ in texts]
    described = iter(_described([code for code in codes if code is not None], sandbox))
    suites = []
    for (text, entry_point), code in zip(texts, codes, strict=True):
        tests: list[str] = []
        problem = text_problem(text)
        items: list[Item] = []
        if code is not None:
            statements, items = next(described)
            splitter = Splitter(statements, entry_point)
            tests = splitter.tests()
            items = items + splitter.dropped
            problem = None if tests or items else "the answer holds no test"
        rest = [Rest(*item) for item in items]
        if problem is not None:
            rest.append(Rest(problem, text[:200], invalid=False))
        suites.append(TestProgramSuite(tuple(tests), tuple(rest)))
    return suites


def _code_of(text: str) -> str | None:
    if text_problem(text) is not None:
        return None
    text = answer_in(text)
    blocks = python_blocks(text)
    return "\n".join(blocks) if blocks else text


def _described(codes: list[str], sandbox: Sandbox) -> list[_Described]:
    """The statements of each text; a text that breaks the parser only harms itself."""

    def read(batch: list[str]) -> list[_Described]:
        rows, found = sandbox.analyse(describe, batch)
        # A statement that comes twice in a text is two statements.
        return [
            ([Statement(**rows[place]) for place in places], [(a, b, c) for a, b, c in dropped])
            for places, dropped in found
        ]

    def unread(code: str, error: AnalysisError) -> _Described:
        return [], [(f"cannot be parsed: {error}", code[:200], True)]

    return in_batches(codes, len, read, unread)
