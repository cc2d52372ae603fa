"""What is read from answers about programs that read and print, where one format stands in the strings of another."""

from __future__ import annotations

import pytest

from codea1_env.problems import Problem
from codea1_env.responses import read_program
from codea1_env.sandbox import Sandbox

ECHO = Problem("echo", "Print the line.", "", "print(input())\n")
DOUBLE = Problem("double", "def double(n):\n", "double", "def double(n):\n    return 2 * n\n")

# What coders write


@pytest.mark.parametrize("fence", ["```", "```python", "~~~", "````text"])
@pytest.mark.parametrize(
    "program",
    [
        '"""\n{}\nprint(1 + 2)\n{}\n"""\nprint(sum(map(int, input().split())))',
        "s = '''\n{}\n1 2\n{}\n'''\nprint(s)",
        "# {}\n# 1 2\n# {}\nprint(input())",
        "for _ in '''\n{}\n1 2\n{}\n''':\n    pass\nprint(input())",
    ],
)
def test_a_bare_program_with_fences_in_its_strings_is_taken_whole(
    fence: str, program: str, sandbox: Sandbox
) -> None:
    answer = program.format(fence, fence.rstrip("pythonex"))
    assert read_program(ECHO, answer, sandbox).code == answer


def test_a_bare_function_with_fences_in_its_strings_is_taken_whole(sandbox: Sandbox) -> None:
    for answer in (
        "def double(n):\n    s = '''\n```\n1 2\n```\n'''\n    return 2 * n if s else s",
        "s = '''\n```python\ndef double(n):\n    return 0\n```\n'''\ndef double(n):\n    return 2 * n",
    ):
        assert read_program(DOUBLE, answer, sandbox).code == answer


def test_prose_in_quotes_is_no_program(sandbox: Sandbox) -> None:
    """Python, but it does nothing: the program is in its fence."""
    for quotes in ('"""', "'''"):
        answer = f"{quotes}\nHere it is.\n```python\nprint(input())\n```\n{quotes}"
        assert read_program(ECHO, answer, sandbox).code == "print(input())\n"
