"""inputs.py, observe.py, search.py, write.py: tests of functions and classes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codea1_env.testgen import pytest_file, write_suite
from codea1_env.testgen.inputs import Inputs
from codea1_env.testgen.observe import Clock
from codea1_env.testgen.texts import ObservedTest, Shape, Trial
from codea1_env.testgen.write import laid_out

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


def forever(size: int = 3) -> int:
    while size == 0:
        pass
    return size


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


def lookup(table, key):
    return table.get(key)
"""


@pytest.fixture
def suite_of(opened):
    module = opened(TEXT)
    return lambda name, **options: write_suite(module.target(name), module.sandbox, **options)


@pytest.mark.parametrize("name", ["clamp", "Stack", "later", "third", "sort_in_place", "seconds"])
def test_a_file_is_written_that_passes_and_notices_most_faults(suite_of, name):
    suite = suite_of(name)
    assert len(suite.killed) >= 0.7 * len(suite.mutants)
    path = suite.target.module.path.with_name(f"test_{name.lower()}.py")
    path.write_text(pytest_file(suite, path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name],
        cwd=path.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + path.read_text()
    text = path.read_text()
    assert "skip" not in text
    assert "sys.path" not in text
    if "pytest.raises(" in text:  # values stand before
        assert text.index("assert") < text.index("pytest.raises(")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("only_raises", "all calls of only_raises that were tried raise"),
        ("draw", "gave different results in two runs"),
        ("wait_for", "asks for files"),
    ],
)
def test_where_there_are_no_tests_the_reason_is_said(suite_of, name, reason):
    suite = suite_of(name)
    assert not suite.tests
    assert reason in suite.why_not


def test_a_call_that_never_ends_is_named(suite_of):
    assert suite_of("forever").endless == "forever(0)"


def test_the_time_is_processor_time_and_the_message_says_so(suite_of):
    suite = suite_of("clamp", timeout=1e-6)
    assert suite.cut or "s of processor time" in suite.why_not


def test_words_of_messages_are_tried(suite_of):
    suite = suite_of("seconds")
    assert any(test.trial.arguments == ("12min",) for test in suite.tests)


@pytest.mark.parametrize(
    ("result", "statement"),
    [
        (("value", 1), "f(n) == expected"),
        (("value", None), "f(n) is expected"),
        (("value", 1 / 3), "f(n) == pytest.approx(expected)"),
        (("items", [1 / 3]), "list(f(n)) == pytest.approx(expected)"),
        (("repr", "range(3)"), "repr(f(n)) == expected"),
        (("type", "Box"), "type(f(n)).__name__ == expected"),
    ],
)
def test_rows_of_a_table_are_compared_as_single_tests_are(result, statement):
    found = {"made": True, "results": [result], "after": {}, "attributes": {}}
    tests = [ObservedTest(Trial((number,)), found) for number in (1, 2)]
    [table] = laid_out(tests, Shape("f", ("n",)))
    assert table.splitlines()[-1] == f"    assert {statement}"
    [single] = laid_out(tests[:1], Shape("f", ("n",)))
    assert single.splitlines()[-1].startswith(f"    assert {statement.partition('f(n)')[0]}f(1)")
    assert ("pytest.approx(" in single) == ("pytest.approx(" in table)


def test_without_type_hints_a_dict_and_lists_come_before_numbers(opened):
    inputs = Inputs(opened(TEXT).target("lookup"), 0)
    [first, *_] = inputs.plans(inputs._target.parameters)
    assert first[0] == ("dict", ("str",), ("int",))
    plans = inputs.plans(inputs._target.parameters[:1])
    assert [kind[0] for [kind] in plans].index("list") < [kind[0] for [kind] in plans].index("int")


def test_methods_that_change_the_object_are_called_before_those_that_read(opened):
    inputs = Inputs(opened(TEXT).target("Stack"), 0)
    trials = inputs.objects([((), {})])
    longest = max(trials, key=lambda trial: len(trial.steps))
    assert longest.steps[0][0] in ("push", "pop")


def test_an_agent_is_asked_twice_and_shown_what_survives(suite_of):
    shown = []

    def ask(survivors):
        shown.append(len(survivors))
        return [Trial((99, 1, 98 + len(survivors)))]

    suite_of("clamp", ask=ask, timeout=1e-6)
    assert len(shown) == 2
    assert shown[0] == 0 < shown[1]


def test_processor_time_is_counted():
    clock = Clock(60)
    sum(range(10**6))
    assert 0 <= clock.used < 60
    assert [len(part) for part in clock.parts(range(30), first=8)] == [8, 16, 6]
