"""What language models are told: every wording, in one place.

A wording turns an observation into a chat. The rules of the game that a player must know are in it; what it
earns is not. `benchmarks/prompts.py` compares wordings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import NamedTuple

from codea1_env.agents.llm.completions import Message
from codea1_env.problems import Problem
from codea1_env.spaces import Observation, observe

CODER_FIRST = """\
Write a Python function `{signature}`. {description}

Only output code in a ```python block."""

CODER_FIRST_CODE = """\
Complete this Python code. Keep the name and the arguments of `{entry_point}`.

```python
{problem}
```

Only output code in a ```python block."""

CODER_REPAIR = """\
{task}

This program is wrong:

```python
{code}
```

These tests fail:

```python
{tests}
```

{feedback}

Correct the program. Only output code in a ```python block."""

TESTER_WHITE_BOX = """\
{task}

This program may have a bug:

```python
{code}
```

Write 4 tests, one `assert {entry_point}(...) == ...` in each line, that a right program passes and this one \
may fail. Only output code in a ```python block."""

TESTER_BLACK_BOX = """\
{task}

Write 4 tests, one `assert {entry_point}(...) == ...` in each line, that a right program passes and a wrong \
one may fail. Only output code in a ```python block."""


class Task(NamedTuple):
    """A problem's text, taken apart."""

    signature: str
    """Like `add(a: int, b: int) -> int`."""
    description: str
    """The docstring."""


def task_of(problem: str) -> Task | None:
    r"""Take apart a problem that is one function with a docstring; None for any other.

    Small models write what a sentence asks for, and take a function that already has a docstring for finished.

    Example:
        >>> task_of('def one() -> int:\n    \"\"\"Return 1.\"\"\"\n')
        Task(signature='one() -> int', description='Return 1.')
        >>> task_of("import math\n\ndef one():") is None
        True
    """
    found = _FUNCTION.fullmatch(problem)
    if found is None:
        return None
    return Task(" ".join(found["signature"].split()), inspect.cleandoc(found["text"]))


_FUNCTION = re.compile(
    r'\s*def (?P<signature>\w+\((?:(?!"""|\'\'\').)*?\)[^:\n]*):\s*\n'
    r'\s*r?(?P<quotes>"""|\'\'\')(?P<text>(?:(?!"""|\'\'\').)*)(?P=quotes)\s*',
    re.DOTALL,
)


def messages(observation: Observation) -> list[Message]:
    """The chat for whoever is to act."""
    if observation["turn"] == 1:
        return tester(observation)
    return coder(observation)


def coder(observation: Observation) -> list[Message]:
    """The chat for a coder: a first program, or from the second round on a repair."""
    if observation["round"] > 0:
        task = _task(observation)
        text = CODER_REPAIR.format(**_fields(observation), task=task)
        return [_user(text)]
    task_found = task_of(observation["problem"])
    if task_found is None:
        return [_user(CODER_FIRST_CODE.format(**_fields(observation)))]
    return [_user(CODER_FIRST.format(**task_found._asdict()))]


def tester(observation: Observation) -> list[Message]:
    """The chat for a tester, with or without the program."""
    wording = TESTER_WHITE_BOX if observation["code"].strip() else TESTER_BLACK_BOX
    return [_user(wording.format(**_fields(observation), task=_task(observation)))]


def sft_tester(problem: Problem, tests: Sequence[str]) -> list[Message]:
    """A whole chat to imitate: the question to a tester that sees no program, and tests as its answer."""
    question = tester(observe(problem, turn=1))
    return [*question, Message(role="assistant", content=in_block("\n".join(tests)))]


def sft_coder(problem: Problem, code: str) -> list[Message]:
    """A whole chat to imitate: the question to a coder, and a program as its answer."""
    return [*coder(observe(problem)), Message(role="assistant", content=in_block(code))]


def in_block(code: str) -> str:
    """Code as an answer shows it."""
    return f"```python\n{code.strip()}\n```"


def _task(observation: Observation) -> str:
    """The problem in a few words, for prompts that go on."""
    found = task_of(observation["problem"])
    if found is None:
        return f"```python\n{observation['problem'].strip()}\n```"
    return f"The Python function `{found.signature}`: {found.description}"


def _fields(observation: Observation) -> dict[str, str]:
    names = ("problem", "entry_point", "code", "tests", "feedback")
    return {name: observation[name].strip() for name in names}  # type: ignore[literal-required]


def _user(text: str) -> Message:
    return Message(role="user", content=text)
