"""Takes a problem's text apart, for prompts that put it into a sentence."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

from codea1_env.spaces import Observation


def in_block(code: str) -> str:
    r"""Code as an answer shows it.

    Example:
        >>> in_block("x = 1\n")
        '```python\nx = 1\n```'
    """
    return f"```python\n{code.strip()}\n```"


def is_prose(observation: Observation) -> bool:
    r"""Whether a problem is a text that says itself what to write, and not code to complete.

    Example:
        >>> from codea1_env.problems import Problem
        >>> from codea1_env.spaces import observe
        >>> code = Problem("one", "def f():\n    'Return 1.'", "f", "def f(): return 1")
        >>> text = Problem("two", "Read a number. Print its double.", "main", "print(2 * int(input()))")
        >>> is_prose(observe(code)), is_prose(observe(text))
        (False, True)
    """
    name = re.escape(observation["entry_point"])
    outside = _FENCED.sub("", observation["problem"])
    return re.search(rf"^(?:async +)?(?:def|class) +{name}\b", outside, re.MULTILINE) is None


class Task(NamedTuple):
    """A problem's text, taken apart: small models write what a sentence asks for."""

    signature: str
    """Like `add(a, b)`, without types."""
    description: str
    """The docstring in one line, without examples."""
    asserts: str
    """The docstring's examples as tests, one in each line."""

    @classmethod
    def of(cls, observation: Observation) -> Task:
        """Take a problem apart; one that is not a single function with a docstring is shown as it is."""
        found = _FUNCTION.fullmatch(observation["problem"])
        if found is None:
            whole = f"Complete this code:\n{in_block(observation['problem'])}\n"
            return cls(observation["entry_point"], whole, "")
        arguments = ", ".join(_names(found["arguments"]))
        text = inspect.cleandoc(found["text"])
        examples = _EXAMPLE.findall(text)
        return cls(
            f"{found['name']}({arguments})",
            " ".join(_EXAMPLES.sub("", text).split()),
            "\n".join(f"assert {call} == {value}" for call, value in examples),
        )


_FUNCTION = re.compile(
    r"\s*def (?P<name>\w+)\((?P<arguments>[^\"']*?)\)[^:\n\"']*:\s*\n?"
    r'\s*r?(?P<quotes>"""|\'\'\'|"|\')(?P<text>(?:(?!"""|\'\'\').)*)(?P=quotes)\s*',
    re.DOTALL,
)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_EXAMPLES = re.compile(r"^>>>.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^>>> (\w+\(.*\))\n(?!>>>)(\S.*)$", re.MULTILINE)


def _names(arguments: str) -> list[str]:
    """Names and defaults of the arguments: `a: list[int], b: int = 2` gives `a` and `b=2`."""
    depth = 0
    parts = [""]
    for sign in arguments:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    names = []
    for part in filter(str.strip, parts):
        before, equals, default = part.partition("=")
        names.append(before.partition(":")[0].strip() + equals + default.strip())
    return names
