"""inputs.py, observe.py, search.py, write.py: tests of functions and classes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codea1_env.testgen import OpenModule, modules_in, pytest_file, write_suite
from codea1_env.testgen.texts import Trial

TEXT = """\
import random
import time


class EmptyError(ValueError):
    pass


class Stack:
    def __init__(self, first=None):
        self._items = [] if first is None else [first]

    def push(self, item):
        self._items.append(item)

    def pop(self):
        if not self._items:
            raise EmptyError("nothing there")
        return self._items.pop()

    def __len__(self):
        return len(self._items)


def clamp(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


def only_raises(text: str) -> str:
    raise ValueError(text)


def draw(n: int) -> float:
    return random.random()


def wait_for(path: str) -> str:
    return open(path).read()


async def later(n: int) -> int:
    return n + 1


def third(n: int) -> float:
    return n / 3


def sort_in_place(items: list[int]) -> None:
    items.sort()


def seconds(duration: str) -> int:
    if not duration.endswith("min"):
        raise ValueError("expect a duration, such as '12min'")
    return 60 * int(duration.removesuffix("min"))
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own.py"
    path.write_text(TEXT)
    opened = OpenModule(modules_in(str(path))[0])
    yield opened
    opened.sandbox.close()


@pytest.fixture
def suite_of(module):
    return lambda name, **options: write_suite(module.target(name), module.sandbox, **options)


def test_files_are_written_that_pass_and_notice_most_faults(suite_of):
    for name in ("clamp", "Stack", "later", "third", "sort_in_place", "seconds"):
        suite = suite_of(name, timeout=6)
        assert len(suite.killed) >= 0.7 * len(suite.mutants), name
        path = suite.target.module.path.with_name(f"test_{name.lower()}.py")
        text = pytest_file(suite)
        path.write_text(text)
        assert "skip" not in text
        assert "sys.path" not in text
        if "pytest.raises(" in text:  # values stand before
            assert text.index("assert") < text.index("pytest.raises(")
        if name == "seconds":  # words of messages are tried
            assert any(test.trial.arguments == ("12min",) for test in suite.tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=path.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("only_raises", "all calls of only_raises that were tried raise"),
        ("draw", "gave different results in two runs"),
        ("wait_for", "asks for files"),
    ],
)
def test_where_there_are_no_tests_the_reason_is_said(suite_of, name, reason):
    suite = suite_of(name, timeout=3)
    assert not suite.tests
    assert reason in suite.why_not


def test_an_agent_is_asked_twice_and_shown_what_survives(suite_of):
    shown = []

    def ask(survivors):
        shown.append(len(survivors))
        return [Trial((99, 1, 98 + len(survivors)))]

    suite_of("clamp", ask=ask, timeout=1e-6)
    assert len(shown) == 2
    assert shown[0] == 0 < shown[1]
