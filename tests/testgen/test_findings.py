"""Kinds of findings: which are shown, and which are only asked."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from user_files import write

from codea1_env.testgen.findings import DOUBTFUL, one_line
from codea1_env.testgen.function import write_function_suite
from codea1_env.testgen.target import read_target

DEFAULT = "def f(n: int, into=[]) -> list[int]:\n    into.append(n)\n    return into\n"


def look(folder, text, sandbox):
    target = read_target(write(folder, text, "it.py"), "f", sandbox)
    return write_function_suite(target, None, sandbox, only_findings=True)


@pytest.mark.parametrize(
    ("text", "kind", "finding"),
    [
        (DEFAULT, "state", "f(0) returns [0, 0] when it is called again; the first time it returns [0]"),
        ("def f(n: int) -> str:\n    return n if n == 3 else 'a'\n", "annotation", "f(3) returns 3; it is annotated to return str"),
        ("def f(n: int) -> tuple[int, int]:\n    return (n,)\n", "annotation", "f(0) returns (0,); it is annotated to return tuple"),
        ("def f(x: list[int]) -> int:\n    'Give the first of x.'\n    return x[0]\n", "crash", "f([]) raises IndexError: list index out of range; neither"),
        ("def f(x: list[int]) -> int:\n    'Give the first.'\n    return x[0]\n", "exception", "f([]) raises IndexError: list index out of range; neither"),
        ("def f(n: int) -> int:\n    return int('9' * n)\n", "exception", "f(0) raises ValueError: invalid literal"),
        ("last = [None]\ndef f(n: int):\n    last.append(n)\n    return last[-2]\n", "property", "f(0) returns 0 when it is called again; the first time it returns None"),
        ("def f(n: int = 3):\n    '''Do.\n\n    Args:\n        n: How often. Defaults to 5.\n    '''\n", "default", "inspect.signature(f).parameters['n'].default is 3; the docstring says that it is 5"),
        ("def f(n: int) -> int:\n    return [1, 0][n]\n", "exception", "f(2) raises IndexError"),
        ("def f(n: int) -> int:\n    while n < 0:\n        pass\n    return n\n", "endless", "f(-1) does not end in time"),
        ("class f:\n    def go(self):\n        while True:\n            pass\n", "exception", "f().go() does not end in time"),
        ("import sys\n\n\ndef f(n: int) -> int:\n    return n if n else __import__('sys').exit(1)\n", "exception", "f(0) ends the process"),
        ("def f(x: list[int], y: list[int]) -> list[int]:\n    return [y[n] for n, _ in enumerate(x)]\n", "exception", "f([0], []) raises IndexError"),
        ("def f(n: int, base: int = 7) -> int:\n    return n % base\n", "exception", "f(0, 0) raises ZeroDivisionError"),
        ("import time\n\n\ndef f(n: int) -> int:\n    while n < 0:\n        time.sleep(1)\n    return n\n", "exception", "f(-1) does not end in time"),
        ("def f(s: str, flag: bool = False) -> str:\n    'Give a character of s.'\n    return (s or 'a')[flag]\n", "crash", "f('', True) raises IndexError"),
        ("def f(a: int, b: int):\n    return 'a' if (a, b) == (5, 2) else a - b\n", "property", "f(5, 2) returns 'a'; "),
        ("def f(xs: list[int], n: int) -> int:\n    if xs == [1, 0, 2] and n == 2:\n        xs.pop()\n    return 1\n", "property", "f([1, 0, 2], 2) returns 1; it changes its argument, and "),
        ("def f(s: str, n: int) -> str:\n    return s.strip('a') + 'a' * (s == 'AB' and n == 2)\n", "property", "f('AB', 2) returns 'ABa'; applied to that it returns 'AB'"),
    ],
)  # fmt: skip
def test_kinds(tmp_path, sandbox, text, kind, finding):
    suite = look(tmp_path, text, sandbox)
    [found] = suite.questions if kind in DOUBTFUL else suite.findings
    assert str(found).startswith(finding)
    assert found.kind == kind
    assert found.test is not None
    assert suite.tests == ()


@pytest.mark.parametrize(
    "text",
    [
        "def f(n: int) -> 'list[int] | None':\n    return [n] if n else None\n",
        "from typing import Literal\ndef f(n: int) -> Literal['a', 1]:\n    return 'a' if n else 1\n",
        "def f(n: int) -> float:\n    return n\n",
        "def f(s: str):\n    return id(s)\n",  # another number in another process
        "def f(n: int) -> str:\n    return repr(object())\n",
        "def f(n: int = 3):\n    '''Do.\n\n    :param n: How often, default 3.\n    '''\n",
        "def f(s: str = ' '):\n    r'''Do.\n\n    Args:\n        s: Default ``' '`` on Tuesdays, and by default 'a' else.\n    '''\n",
        "def f(n: int | None = None):\n    '''Do.\n\n    Args:\n        n: How often. Defaults to 5.\n    '''\n",
        "import random\ndef f(n: int) -> int:\n    return random.randint(0, 1)\n",
        "known = {}\ndef f(n: int) -> int:\n    return known.setdefault(n, n)\n",
    ],
)
def test_what_is_no_finding(tmp_path, sandbox, text):
    suite = look(tmp_path, text, sandbox)
    assert (suite.findings, suite.questions) == ((), ())


def test_the_line_that_shows_a_finding(tmp_path, sandbox):
    text = 'def f(n: int):\n    """Do.\n\n    >>> k = 3\n    >>> f(k)\n    \'three\'\n    """\n    return f"it\'s {n}"\n'
    suite = look(tmp_path, text, sandbox)
    [found] = suite.findings
    line = one_line(found, suite.target, tmp_path)
    assert line.startswith("python -c 'from it import f; k = 3; print(repr(f(k)))'")
    done = subprocess.run(
        [sys.executable, *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == '"it\'s 3"\n'
    assert one_line(found, suite.target, tmp_path / "docs").startswith("PYTHONPATH=.. python")


def test_a_first_call_that_takes_its_time_is_no_finding(tmp_path, sandbox):
    text = """table = []


def f(n: int) -> int:
    if not table:
        total = 0
        for i in range(20_000_000):
            total += i
        table.append(total)
    return table[0] + n
"""
    suite = look(tmp_path, text, sandbox)
    assert suite.findings == ()
