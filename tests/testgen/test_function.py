"""Tests for a function of a user's file: they pass, they kill mutants, and findings are not among them."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

import pytest
from user_files import NAMES, PROGRAM, write

from codea1_env.mutation import generate_mutants
from codea1_env.mutation.kills import find_kills
from codea1_env.sandbox import Limits, Outcome
from codea1_env.testgen import function, observing
from codea1_env.testgen.function import mutants_of, write_function_suite
from codea1_env.testgen.target import read_target
from codea1_env.testgen.written_file import default_output, pytest_file


def suite_of(folder, name, sandbox, text=PROGRAM, **options):
    target = read_target(write(folder, text), name, sandbox)
    return write_function_suite(target, options.pop("answers", None), sandbox, **options)


def run_pytest(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        # What other packages add to pytest says nothing of our files, and takes longer to load than they to run.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


@pytest.mark.slow
def test_suites_of_many_sorts_of_functions_pass_in_pytest(tmp_path, sandbox, monkeypatch):
    # All these functions lie in one file, whose mutants are always the same.
    monkeypatch.setattr(function, "generate_mutants", functools.cache(generate_mutants))
    weak = {}
    for name in NAMES:
        suite = suite_of(tmp_path, name, sandbox)
        path = suite.target.path
        assert suite.tests, name
        assert suite.findings == (), name
        # What is reported is what the written tests do.
        texts = [test.text for test in suite.tests]
        mutants = mutants_of(suite.target, sandbox)
        kills = find_kills(suite.target.program, name, texts, mutants, sandbox)
        assert kills.killed == suite.kills.killed, name
        if suite.kills.score < 0.85:
            weak[name] = suite.kills.score
        output = default_output(path, name)
        output.write_text(pytest_file(suite, output, sandbox))
    assert weak == {}
    done = run_pytest(cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    number = sum(path.read_text().count("\ndef test_") for path in tmp_path.glob("test_*.py"))
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= number  # a row of a table is one


def test_written_tests_fail_on_a_program_with_a_fault(tmp_path, sandbox):
    suite = suite_of(tmp_path, "seconds", sandbox)
    output = default_output(suite.target.path, "seconds")
    output.write_text(pytest_file(suite, output, sandbox))
    assert run_pytest(output, cwd=tmp_path).returncode == 0
    write(tmp_path, PROGRAM.replace("60 * int", "61 * int"))
    assert run_pytest(output, cwd=tmp_path).returncode == 1


def test_examples_and_accidents_are_findings(tmp_path, sandbox):
    text = '''\
def median(numbers):
    """Return the median.

    >>> median([3, 1, 2])
    2
    >>> median([])
    0
    >>> median([1, 2])
    1.5
    >>> median("ab")
    Traceback (most recent call last):
    ValueError: no numbers
    """
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2
'''
    suite = suite_of(tmp_path, "median", sandbox, text)
    found = {each.source: (each.did, each.expected) for each in suite.findings}
    assert found["median([3, 1, 2])"] == ("returns 1", "the docstring says 2")
    assert found["median([])"] == (
        "raises IndexError: list index out of range",
        "the docstring says 0",
    )
    did, expected = found['median("ab")']
    assert did.startswith("raises TypeError")
    assert expected == "the docstring says ValueError is raised"
    shown = "\n".join(test.shown for test in suite.tests)
    assert "median([3, 1, 2])" not in shown
    assert "median([])" not in shown
    output = tmp_path / "test_it.py"
    output.write_text(pytest_file(suite, output, sandbox))
    text = output.read_text()
    assert (
        "@pytest.mark.skip(reason='median([]) raises IndexError: list index out of range; " in text
    )
    assert "    assert median([]) == 0\n" in text
    assert run_pytest(output, cwd=tmp_path).returncode == 0


def test_examples_that_print(tmp_path, sandbox):
    text = '''\
def lines(n: int) -> str:
    """Show.

    >>> print(lines(2))
    v2
    w
    >>> print(lines(3))
    v3
    x
    """
    return f"v{n}\\nw"


def say(n: int) -> None:
    """Say it.

    >>> say(3)
    3
    >>> say(4)
    a 4
    """
    print(n)
'''
    suite = suite_of(tmp_path, "lines", sandbox, text)
    [finding] = suite.findings
    assert str(finding) == "print(lines(3)) prints 'v3\\nw'; the docstring prints 'v3\\nx'"
    suite = suite_of(tmp_path, "say", sandbox, text)
    [finding] = suite.findings
    assert str(finding) == "say(4) prints '4'; the docstring prints 'a 4'"


def test_a_finding_of_several_lines_is_whole(tmp_path, sandbox):
    text = 'def f(n: int):\n    """Do.\n\n    >>> f(1)\n    Box(1,\n        2)\n    """\n    return n\n'
    suite = suite_of(tmp_path, "f", sandbox, text)
    written = pytest_file(suite, tmp_path / "test_it.py", sandbox)
    assert (
        r"@pytest.mark.skip(reason='f(1) returns 1; the docstring says Box(1,\n    2)')" in written
    )


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            "def f(xs: list[int]) -> int:\n    return sum(xs) // len(xs)\n",
            "f([]) raises ZeroDivisionError",
        ),
        (
            "def f(x: int) -> int:\n    if x > 0:\n        return 1\n",
            "f(0) returns None; it is annotated to return int",
        ),
        (
            "def f(n: int) -> int:\n    while n < 0:\n        pass\n    return n\n",
            "f(-1) does not end in time",
        ),
        ("def f(n: int) -> int:\n    return n and f(n - 1)\n", "f(-1) raises RecursionError"),
        (
            "class f:\n    def __init__(self): self.log = []\n"
            "    def add(self, n: int): self.log.append(n)\n"
            "    def mean(self): return sum(self.log) / len(self.log)\n",
            "f().mean() raises ZeroDivisionError",
        ),
    ],
)
def test_what_looks_like_an_accident_is_a_finding(tmp_path, sandbox, monkeypatch, text, finding):
    # Functions that return at once, or never.
    monkeypatch.setattr(observing, "PATIENT", Limits(call_cpu_time=0.1, call_wall_time=5))
    suite = suite_of(tmp_path, "f", sandbox, text)
    assert [str(each) for each in suite.findings if str(each).startswith(finding)]
    assert len(suite.findings) == 1


@pytest.mark.parametrize(
    "text",
    [
        'def f(n: int) -> int:\n    if n < 0:\n        raise ValueError("n")\n    return n\n',
        'def f(n: int) -> int:\n    """Half.\n\n    Raises:\n        ZeroDivisionError: For 0.\n    """\n'
        "    return 2 // n\n",
        "def f(n: int) -> int | None:\n    return n if n else None\n",
        "import sys\ndef f(n: int) -> int:\n    if n == 2:\n        sys.exit(3)\n    return n\n",
        "def f(n: int) -> int:\n    if n == 2:\n        raise SystemExit(3)\n    return n\n",
        "def f(n: int) -> int:\n    return 10 ** (5000 if n == 2 else 1) + n\n",
        "def f(a, b):\n    return a * b + 1\n",  # some kinds of arguments are wrong: no finding
    ],
)
def test_what_is_on_purpose_is_no_finding(tmp_path, sandbox, text):
    suite = suite_of(tmp_path, "f", sandbox, text)
    assert suite.findings == ()
    assert suite.tests


def test_what_differs_from_run_to_run_is_not_tested(tmp_path, sandbox):
    text = (
        "seen = []\n\ndef f(n: int) -> int:\n    if n < 3:\n        return n\n    seen.append(n)\n"
        "    return len(seen)\n"
    )
    suite = suite_of(tmp_path, "f", sandbox, text)
    assert suite.unstable
    assert all(call.startswith("f(") and int(call[2:-1]) >= 3 for call in suite.unstable)
    assert suite.tests


ANSWER = """\
```python
assert median([3, 1, 2]) == 2
assert median([]) == 0
assert median([1, 2]) == 7
assert len(str(median([1]))) == 2
assert undefined(median([1])) == 2
assert 1 == 1
def test_seven():
    import os
    try:
        os.remove("x")
    except OSError:
        pass
    assert median([7]) == 7
while True:
    assert median([1]) == 1
assert median([1, 2,
```"""


def test_tests_of_a_tester(tmp_path, sandbox):
    answers = [ANSWER, ANSWER, "no tests at all"]
    suite = suite_of(tmp_path, "median", sandbox, answers=answers, all_findings=True)
    found = [str(each) for each in suite.findings if each.kind == "tester"]
    assert found == [
        "median([]) raises EmptyError: no numbers; the tester expected 0",
        "median([1, 2]) returns 1.5; the tester expected 7",
    ]
    reasons = " ".join(reason for _, reason in suite.dropped)
    assert "does not say what a call returns" in reasons
    # What does harm there must not get into the file: it has nothing but calls with plain values.
    assert not any("os." in test.shown for test in suite.tests)


def test_strings_over_several_lines_keep_what_they_say(tmp_path, sandbox):
    text = "def lines(text: str) -> int:\n    return text.count('\\n')\n"
    answer = 'assert lines("""a\nb\n""") == 2\nassert lines("") == 0'
    suite = suite_of(tmp_path, "lines", sandbox, text, answers=[answer])
    output = tmp_path / "test_lines.py"
    output.write_text(pytest_file(suite, output, sandbox))
    assert run_pytest(output, cwd=tmp_path).returncode == 0


def test_the_same_seed_gives_the_same_file(tmp_path, sandbox):
    texts = []
    for _ in range(2):
        suite = suite_of(tmp_path, "Stack", sandbox, seed=3)
        texts.append(pytest_file(suite, tmp_path / "test_stack.py", sandbox))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("file", "output"),
    [
        ("things.py", "test_things.py"),
        ("things.py", "tests/test_things.py"),
        ("package/inner/things.py", "package/inner/test_things.py"),
        ("package/inner/things.py", "package/tests/test_things.py"),
        ("package/inner/things.py", "tests/test_things.py"),
        ("src/package/things.py", "tests/unit/test_things.py"),
    ],
)
def test_the_file_finds_the_function_from_every_folder(tmp_path, sandbox, file, output):
    text = (
        "class BadError(ValueError):\n    pass\n\n\ndef half(n: int) -> int:\n"
        "    if n < 0:\n        raise BadError(n)\n    return n // 2\n"
    )
    path = write(tmp_path, text, file)
    for folder in path.parents:
        if folder.name in ("package", "inner"):
            write(folder, "", "__init__.py")
    suite = write_function_suite(read_target(path, "half", sandbox), None, sandbox)
    assert any(test.errors for test in suite.tests)
    target = write(tmp_path, "", output)
    target.write_text(pytest_file(suite, target, sandbox))
    for cwd in {tmp_path, target.parent, path.parent}:
        done = run_pytest(target, cwd=cwd)
        assert done.returncode == 0, done.stdout


NAMED = """\
import datetime as d
from decimal import Decimal


def test_score(n: int) -> bool:
    return n > 3


class TestPlain:
    n = 0

    def test_add(self, k: int) -> int:
        self.n += k
        return self.n


class TestError(Exception):
    pass


def fail(n: int) -> int:
    if n == 2:
        raise TestError(n)
    return n


def items(items: list[int]) -> int:
    items.append(1)
    return len(items)


def pytest(pytest: list[float]) -> float:
    pytest.append(1.0)
    return sum(pytest) / 7


def datetime(year: int):
    return d.date(2000, 1, 1 + year % 20)


def decimal(number: Decimal | int) -> int:
    return int(number) + 1


def many(*lists: list[int]) -> int:
    for each in lists:
        each.append(len(lists))
    return len(lists)
"""


def test_names_that_mean_something_to_a_test(tmp_path, sandbox):
    names = ["test_score", "TestPlain", "fail", "items", "pytest", "datetime", "decimal", "many"]
    for name in names:
        suite = suite_of(tmp_path, name, sandbox, NAMED)
        assert suite.tests, name
        output = default_output(suite.target.path, name)
        output.write_text(pytest_file(suite, output, sandbox))
        assert "\n\n\n\n" not in output.read_text()
    done = run_pytest("-W", "error", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    number = sum(path.read_text().count("\ndef test_") for path in tmp_path.glob("test_*.py"))
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= number  # a row of a table is one


OBJECTS = """\
import asyncio
from abc import ABC, abstractmethod
from enum import Enum


class Job:
    def __init__(self, n: int = 1):
        self.n = n

    async def work(self, k: int) -> int:
        await asyncio.sleep(0)
        if k < 0:
            raise ValueError(k)
        self.n += 1
        return self.n * k


class Color(Enum):
    RED = 1
    BLUE = 2

    def next(self) -> str:
        return Color(3 - self.value).name


class Figure(ABC):
    @abstractmethod
    def area(self) -> int: ...

    @staticmethod
    def corners(n: int) -> int:
        return n + 1
"""


def test_objects_that_are_awaited_or_are_members(tmp_path, sandbox):
    for name in ("Job", "Color"):
        suite = suite_of(tmp_path, name, sandbox, OBJECTS)
        assert suite.findings == ()
        assert suite.kills.score > 0.8, name
        output = default_output(suite.target.path, name)
        output.write_text(pytest_file(suite, output, sandbox))
        assert ("asyncio.run(job.work(" in output.read_text()) is (name == "Job")
    done = run_pytest("-W", "error", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert suite_of(tmp_path, "Figure", sandbox, OBJECTS).findings == ()  # nobody can make one


def test_a_test_is_judged_as_it_is_written(tmp_path, sandbox):
    """Rounded floats: what pytest would let pass kills no mutant here."""
    text = "def f(x: float) -> float:\n    return 3.14159265358979 * x\n"
    suite = suite_of(tmp_path, "f", sandbox, text)
    assert any("pytest.approx" in test.shown for test in suite.tests)
    nearly = text.replace("* x", "* x * (1 + 1e-9)")
    results = sandbox.run_tests(nearly, [test.text for test in suite.tests], entry_point="f")
    assert {result.outcome for result in results} == {Outcome.PASS}
