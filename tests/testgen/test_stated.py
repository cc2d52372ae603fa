"""Examples that a program contradicts: what doctest says, but for what means the same."""

from __future__ import annotations

import pytest
from user_files import write

from codea1_env.testgen.stated import contradictions
from codea1_env.testgen.target import read_target

PROGRAM = """\
import random


class Many:
    def of(self, n):
        return n


def show(n):
    print(n)


def f(x):
    '''Give it back.

{doc}
    '''
    if x == "odd":
        raise KeyError(x)
    return x
"""


def found(tmp_path, sandbox, doc):
    text = PROGRAM.format(doc="\n".join(f"    {line}" for line in doc.splitlines()))
    target = read_target(write(tmp_path, text, "stats.py"), "f", sandbox)
    return [str(each) for each in contradictions(target, sandbox)]


@pytest.mark.parametrize(
    ("doc", "finding"),
    [
        (">>> f(3)\n4", "f(3) returns 3; the docstring says 4"),
        (">>> import datetime\n>>> f(datetime.date(2015, 3, 31) - datetime.timedelta(32))\ndatetime.date(2015, 1, 27)",
         "f(datetime.date(2015, 3, 31) - datetime.timedelta(32)) returns datetime.date(2015, 2, 27); the docstring says "
         "datetime.date(2015, 1, 27)"),
        (">>> f(4) == 2\nTrue", "f(4) == 2 returns False; the docstring says True"),
        (">>> f(0) or 7\n0", "f(0) or 7 returns 7; the docstring says 0"),
        (">>> f([1, 2])\n(1, 2)", "f([1, 2]) returns [1, 2]; the docstring says (1, 2)"),
        (">>> f('odd')\n3", "f('odd') raises KeyError: 'odd'; the docstring says 3"),
        (">>> f('odd')\nTraceback (most recent call last):\nValueError: odd",
         "f('odd') raises KeyError: 'odd'; the docstring says ValueError is raised"),
        (">>> f(1)\nTraceback (most recent call last):\nValueError: odd",
         "f(1) returns 1; the docstring says ValueError is raised"),
        (">>> show(f(3))\n4", "show(f(3)) prints '3'; the docstring prints '4'"),
        (">>> for n in (1, 2):\n...     f(n)\n1\n3", "for n in (1, 2):\n    f(n) returns 1\n2; the docstring says 1\n3"),
        (">>> from stats import f\n>>> f(3)\n4", "f(3) returns 3; the docstring says 4"),
        ("f(3) -> 4", "f(3) returns 3; the docstring says 4"),
        ("- ``f('a')`` returns ``'b'``.", "f('a') returns 'a'; the docstring says 'b'"),
        (">>> f('a')  # returns true", "f('a') returns 'a'; the docstring says True"),
        ("Example:\n    f(3)\n    # => 4", "f(3) returns 3; the docstring says 4"),
        ("f(3)  # raises ValueError", "f(3) returns 3; the docstring says ValueError is raised"),
    ],
)  # fmt: skip
def test_a_contradiction_is_found(tmp_path, sandbox, doc, finding):
    assert found(tmp_path, sandbox, doc) == [finding]


@pytest.mark.parametrize(
    "doc",
    [
        ">>> f(3) == 3\nTrue",
        # today's day, where it was written on another one
        ">>> import datetime\n>>> f(datetime.date(2015, 3, datetime.date.today().day))\ndatetime.date(2015, 3, 32)",
        ">>> import zoneinfo\n>>> f([zoneinfo.ZoneInfo('UTC')])\n[ZoneInfo(key='UTC')]",
        ">>> f('a')\na",  # without quotes
        ">>> f({1, 2, 30})\n{30, 1, 2}",
        ">>> f('odd')\nKeyError: 'something else'",
        ">>> f('odd')  # doctest: +SKIP\n4",
        ">>> f(0.1 + 0.2)\n0.3",
        ">>> f(object())\n<object object at 0x7f>",
        ">>> f(12)\n1...",
        ">>> f(3)",
        ">>> f(undefined)\n4",
        ">>> f(undefined)\nTraceback (most recent call last):\nValueError: odd",
        ">>> y = undefined()\n>>> f(3)\n4",
        ">>> from nowhere.at_all import thing\n>>> f(thing)\n4",
        ">>> f(random.random())\n0.5",
        ">>> f(open('x').read())\n'a'",
        ">>> f(id(f) % hash('a'))\n5",
        "Not: >>> f(",
        "f(3) -> 3",
        "f(3)",
        "f(x) -> 4",
        "f(x: int = 3) -> 4",
        "f(3) -> 4 or so",
        "Whoever calls f(3) -> 4",
        "f(3) -> 4, as long as nobody looks",
        "f(1.23456) -> 1.23",
        "f(iter([1, 2])) -> [1, 2]",
        "f({'a': 1}.keys()) -> ['a']",
        "f(f)  # 3",
        "f(3) == 3  # True",
        ">>> f(list({'0', '1'}))\n['0', '1']",
        ">>> Many.of(3)\n4",
    ],
)
def test_what_is_no_contradiction(tmp_path, sandbox, doc):
    assert found(tmp_path, sandbox, doc) == []
