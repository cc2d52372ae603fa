"""What is found out about a file without running it."""

from __future__ import annotations

import pytest

from codea1_env.testgen.source import describe

FILE = '''\
import json
import os
import re
from .own import helper as own_helper

WORDS = {"small": 1, "large": 250}
WORDS["huge"] = 9999
OTHER = 77
NAME = re.compile("[a-z]+")


def used(n):
    return WORDS["small"] + n


def unused():
    n = 3  # a local name, like one of the target
    return json.dumps(OTHER, indent=n)


@staticmethod
def target(text: str, n: int = 3) -> int:
    """Count `words`.

    >>> target("a b")
    2
    >>> target("")
    Traceback (most recent call last):
        ...
    ValueError: empty
    >>> xs = [1]
    >>> target(xs)
    Number(1)

    Raises:
        KeyError: Never.
    """
    if not NAME.match(text):
        raise ValueError(f"no words: {text}")
    return used(n)


if __name__ == "__main__":
    print(target(os.environ["X"]))
'''


def test_a_function_of_a_file():
    found = describe(FILE, "target")
    assert found["names"] == ["used", "unused", "target"]
    assert (found["kind"], found["asynchronous"]) == ("function", False)
    lines = FILE.splitlines()
    first, last = found["lines"]
    assert lines[first - 1] == "@staticmethod"
    assert lines[last - 1] == "    return used(n)"
    assert found["prompt"].startswith("@staticmethod\ndef target(text: str, n: int = 3) -> int:\n")
    assert found["prompt"].endswith('    """')
    assert found["raises"] == ["KeyError", "ValueError"]
    assert "[a-z]+" in found["patterns"]
    assert {"small", "huge", "words", "a b"} <= set(found["words"])
    assert not any("no words" in word for word in found["words"])
    assert {3, 250, 9999} <= set(found["numbers"])
    assert 77 not in found["numbers"]


def test_only_what_it_needs_is_kept_line_by_line():
    needed = describe(FILE, "target")["needed"]
    kept = needed.splitlines()
    assert len(kept) == len(FILE.splitlines())
    assert all(new in ("", old) for new, old in zip(kept, FILE.splitlines(), strict=True))
    for text in ("import re", 'WORDS["huge"] = 9999', "def used(n):", "NAME = "):
        assert text in needed
    for text in ("import json", "own_helper", "OTHER", "__main__", "unused"):
        assert text not in needed
    assert describe(FILE, "unused")["imports"] == ["json"]


def test_docstrings_and_names():
    found = describe(FILE, "target")
    assert [text.split("\n")[0] for text in found["docs"]] == ["Count `words`."]
    assert {"json", "own_helper", "WORDS", "used", "target"} <= set(found["offered"])


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(:\n", "line 1: invalid syntax"),
        ("x = 1\n  y = 2\n", "line 2: unexpected indent"),
        ("def f():\n    '''", "line 2: unterminated triple-quoted string literal"),
    ],
)
def test_a_syntax_error_has_its_line(source, problem):
    assert describe(source, "f")["problem"].startswith(problem)


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("def f(a): return a", "def f(a):"),
        ("def f(\n    a,\n):\n    return a", "def f(\n    a,\n):"),
        (
            "class A:\n    x: int\n\n    def m(self):\n        return 1",
            "class A:\n    def m(self):",
        ),
        ("if True:\n    def f(a):\n        'Doc.'", "    def f(a):\n        'Doc.'"),
    ],
)
def test_prompts(source, prompt):
    assert (
        describe(source, source.split("(")[0].split()[-1] if "def f" in source else "A")["prompt"]
        == prompt
    )
