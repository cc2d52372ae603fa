"""Coverage of references: the figures of coverage.py, which no test can forge."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codea1_env.evaluation.suites import packaged
from codea1_env.evaluation.suites.coverage import Coverage, measure_coverage
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import AnalysisError, Job, Limits, Outcome, Sandbox

ORACLE = Path(__file__).with_name("run_coverage_py.py")


def problem(code: str, entry_point: str = "f") -> Problem:
    return Problem("test/0", f"def {entry_point}", entry_point, code)


def coverage_py(cases: Sequence[tuple[Problem, Sequence[str]]]) -> list[list[int]]:
    """Lines, those hit, branches, those hit, as coverage.py reports them. It runs what it is given."""
    pytest.importorskip("coverage")
    rows = [(each.reference, each.entry_point, list(tests)) for each, tests in cases]
    command = [sys.executable, "-W", "ignore", str(ORACLE)]
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    return found


def ours(case: Problem, tests: Sequence[str], sandbox: Sandbox) -> list[int]:
    return list(dataclasses.astuple(measure_coverage(case, [tests], sandbox)[0]))


CASES = {
    "if": ("def f(x):\n    if x: y = 1\n    else: y = 2\n    return y", ["f(1)"]),
    "elif": (
        "def f(x):\n    if x == 1:\n        return 1\n    elif x == 2:\n        return 2\n    return 0",
        ["f(2)"],
    ),
    "one line": ("def f(x): return 1 if x else 2\nclass A: pass\n", ["f(0)"]),
    "return on the line of the condition": (
        "def f(x):\n    if x: return 1\n    return 2\n",
        ["f(1)"],
    ),
    "for": ("def f(xs):\n    for x in xs:\n        if x: break\n    else:\n        return 0", ["f([1])"]),
    "loop at the end of a function": ("def f(xs):\n    for x in xs:\n        pass", ["f([])"]),
    "loop that ends with an error": ("def f(xs):\n    for x in xs:\n        pass", ["f(1)"]),
    "while": (
        "def f(n):\n    while n > 0:\n        n -= 1\n        if n == 3: continue\n        n -= 1\n    return n",
        ["f(5)"],
    ),
    "endless loop": ("def f(n):\n    while True:\n        n += 1\n        if n > 3: return n", ["f(5)"]),
    "while with else": (
        "def f(n):\n    while n:\n        n -= 1\n        if n == 7:\n            break\n    else:\n        n = 9\n    return n",
        ["f(2)"],
    ),
    "constant conditions": (
        "def f(x):\n    if 0:\n        x = 1\n    if not False:\n        x = 2\n    while 0:\n        x = 3\n    return x",
        ["f(1)"],
    ),
    "try": (
        "def f(x):\n    try:\n        y = 1 / x\n    except ZeroDivisionError:\n        return 0\n    except TypeError as e:\n        raise ValueError from e\n    else:\n        y += 1\n    finally:\n        x = None\n    return y",
        ["f(1)", "f('a')"],
    ),
    "raise in try": (
        "def f(x):\n    try:\n        if x:\n            raise ValueError\n    except ValueError:\n        x = 2\n    return x",
        ["f(1)"],
    ),
    "return through finally": (
        "def f(x):\n    for i in range(x):\n        try:\n            if i == 1:\n                return i\n            continue\n        finally:\n            x += 1\n    return x",
        ["f(0)", "f(3)"],
    ),
    "with": (
        "import contextlib\ndef f(x):\n    with contextlib.suppress(ValueError):\n        if x:\n            raise ValueError\n    with contextlib.nullcontext() as a, \\\n            contextlib.nullcontext():\n        with contextlib.nullcontext():\n            if x:\n                return 1\n            x = 3\n    return 2",
        ["f(1)", "f(0)"],
    ),
    "with at the end of a loop": (
        "import contextlib\ndef f(xs):\n    for x in xs:\n        with contextlib.nullcontext():\n            if x:\n                xs = 1\n",
        ["f([0])"],
    ),
    "match": (
        "def f(x):\n    match x:\n        case 1:\n            return 1\n        case [a, b] if a:\n            x = b\n        case str() | bytes():\n            x = 3\n    match x:\n        case 7:\n            pass\n        case _:\n            x = 4\n    return x",
        ["f([1, 2])", "f(8)"],
    ),
    "generator": (
        "def f(n):\n    for i in range(n):\n        if i % 2:\n            yield i\n        else:\n            got = yield\n            if got:\n                return",
        ["assert list(f(4)) == [None, 1, None, 3]", "next(f(1))"],
    ),
    "generator that is not used up": (
        "def f(n):\n    try:\n        while n:\n            yield n\n            n -= 1\n    finally:\n        n = 0",
        ["g = f(3)\nnext(g)\nnext(g)\ng.close()"],
    ),
    "yield from": (
        "def g(n):\n    yield n\n    if n:\n        yield n\ndef f(n):\n    yield from g(n)\n    return 1",
        ["assert list(f(0)) == [0]"],
    ),
    "async": (
        "import asyncio\nasync def g(x):\n    await asyncio.sleep(0)\n    if x:\n        return 1\nasync def f(x):\n    async with asyncio.Lock():\n        y = await g(x)\n    return y",
        ["import asyncio\nassert asyncio.run(f(0)) is None"],
    ),
    "class": (
        'class f:\n    """Text."""\n    size = 3\n\n    def __init__(self, x):\n        """Text."""\n        self.x = x\n\n    @property\n    def y(self):\n        if self.x:\n            return 1\n        return 2\n\n    @staticmethod\n    def z():\n        return 5',
        ["assert f(1).y == 1"],
    ),
    "docstrings": ('"""A\nB"""\ndef f(x):\n    """Text\n    more"""\ndef g(): "text"\n', ["f(1)"]),
    "decorators": (
        "import functools\n@functools.lru_cache(\n    maxsize=3,\n)\n@functools.wraps(len)\ndef f(x):\n    if x:\n        return 1",
        ["f(0)"],
    ),
    "lines that go on": (
        "def f(\n    x,\n    y=3,\n):\n    z = {\n        x: y,\n        **{1: 2},\n    }\n    if (\n        x\n        and y\n    ):\n        z = [\n            1,\n        ]\n    return \\\n        z",
        ["f(1)"],
    ),
    "semicolons": ("def f(x):\n    y = 1; z = 2\n    if x: y = 3; z = 4\n    return y", ["f(0)"]),
    "comprehensions and lambdas": (
        "def f(xs):\n    g = lambda x: (\n        x + 1\n    )\n    ys = [\n        g(x)\n        for x in xs\n        if x\n    ]\n    return any(y for y in ys) or {y: 1 for y in ys}",
        ["f([0, 1])"],
    ),
    "recursion and inner functions": (
        "def f(n):\n    def g(n):\n        if n > 5:\n            return 0\n        return f(n)\n    if n < 2:\n        return n\n    return g(n - 1) + f(n - 2)",
        ["f(4)"],
    ),
    "unreachable": (
        "def f(x):\n    return x\n    x += 1\ndef g(x):\n    while True:\n        pass\n    return x",
        ["f(1)"],
    ),
    "exceptions of callees": (
        "def g(x):\n    return 1 / x\ndef f(x):\n    if g(x) > 1:\n        return 1\n",
        ["f(0)"],
    ),
    "threads": (
        "import threading\ndef g(x):\n    if x:\n        x = 2\ndef f(x):\n    t = threading.Thread(target=g, args=(x,))\n    t.start()\n    t.join()",
        ["f(1)"],
    ),
    "imports and globals": (
        "from __future__ import annotations\nimport math as m\nN: int = 3\nif N > 4:\n    N = 5\ndef f(x):\n    global N\n    N += x\n    assert N\n    del x\n",
        ["f(1)"],
    ),
    "carriage returns": ("def f(x):\r\n    if x:\r\n        return 1\r\n    return 2\r\n", ["f(1)"]),
    "no tests": ("def f(x):\n    return 1\n", []),
    "only a text": ("f = print\n", []),
}  # fmt: skip


def test_statements_of_all_kinds_as_coverage_py_has_them(sandbox):
    cases = [(problem(code), tests) for code, tests in CASES.values()]
    theirs = coverage_py(cases)
    found = [ours(case, tests, sandbox) for case, tests in cases]
    assert dict(zip(CASES, found, strict=True)) == dict(zip(CASES, theirs, strict=True))
    assert sum(row[3] for row in found) > 50


def test_starter_problems_as_coverage_py_has_them(sandbox):
    cases = []
    for number, each in enumerate(load_problems("starter")):
        tests = each.tests if number % 2 else each.tests[number % 7 :][:1]
        cases.append((each, tests))
    theirs = coverage_py(cases)
    found = [ours(case, tests, sandbox) for case, tests in cases]
    differ = {case.task_id for (case, _), a, b in zip(cases, found, theirs, strict=True) if a != b}
    assert not differ
    assert len({tuple(row) for row in found}) > 30
    assert any(row[3] < row[2] for row in found)


def test_functions_of_unleakedtestbench_as_coverage_py_has_them(shared_data, sandbox):
    missing = {"ULT/10084"}  # it needs the package six
    changing = re.compile("import random|localtime")  # chance or the clock decides what runs
    commented = {"ULT/8694"}  # "# pragma: no cover" leaves the whole function out there
    kinder = {"ULT/2109"}  # its tests use timedelta without importing it
    path = shared_data / "ult_lite.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        tests = [json.loads(line)["test_list"] for line in lines]
    cases = [
        (case, suite)
        for case, suite in zip(load_problems(str(path)), tests, strict=True)
        if case.task_id not in missing and not changing.search(case.reference)
    ]
    results = sandbox.run_many(
        [Job(case.reference, suite, case.entry_point) for case, suite in cases]
    )
    assert sum(result.passed for row in results for result in row) > 100
    ran = {
        Outcome.PASS,
        Outcome.FAIL,
        Outcome.ERROR,
        Outcome.UNENCODABLE,
    }  # others may take the process with them
    assert {result.outcome for row in results for result in row} == ran
    theirs = coverage_py(cases)
    found = [ours(case, suite, sandbox) for case, suite in cases]
    differ = {case.task_id for (case, _), a, b in zip(cases, found, theirs, strict=True) if a != b}
    assert differ == commented | kinder
    assert sum(row[3] for row in found) > 1000


REFERENCE = """
def f(x):
    if x == 1:
        return 1
    if x == 2:
        return 2
    return 3
"""


def test_several_suites(sandbox):
    suites = [
        ["assert f(1) == 1"],
        ["f(1)", "for x in (2, 3):\n    f(x)"],
        [],
        ["assert f(1) == 1"],
    ]
    found = measure_coverage(problem(REFERENCE), suites, sandbox)
    first = Coverage(lines=6, lines_hit=3, branches=4, branches_hit=1)
    assert found == [first, Coverage(6, 6, 4, 4), Coverage(6, 1, 4, 0), first]
    assert found[0].line_share == 0.5
    assert found[0].branch_share == 0.25
    assert Coverage(0, 0, 0, 0).line_share is Coverage(0, 0, 0, 0).branch_share is None


def test_tests_that_fail_and_what_are_no_tests(sandbox):
    suite = ["assert f(1) == 7", "assert f(", "f(2).x", "import nothing_of_this_name", "f(2, 3)"]
    assert measure_coverage(problem(REFERENCE), [suite], sandbox) == [Coverage(6, 5, 4, 3)]


def test_a_test_that_ends_the_process_takes_nothing_from_others():
    code = REFERENCE.replace("        return 2\n", "        while True: pass\n")
    suites = [["f(1)", "f(2)", "f(3)"], ["f(1)", "f(2)"], ["f(2)"], ["x = f(1)", "f(2)"]]
    with Sandbox(limits=Limits(call_cpu_time=0.02, calls_per_test=1)) as sandbox:
        found = measure_coverage(problem(code), suites, sandbox)
    assert found == [
        Coverage(6, 5, 4, 3), Coverage(6, 3, 4, 1), Coverage(6, 1, 4, 0), Coverage(6, 3, 4, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "test",
    [
        "def f(x):\n    return x\nfor x in range(9):\n    f(x)",
        "import sys\nsys.settrace(lambda *_: None)\nwanted = executed = set()",
        "codea1_env_executed_arcs = lambda: []\n",
        "codea1_env_executed_arcs()",
        "import program\nprogram.codea1_env_executed_arcs = list",
        "f.__code__ = (lambda x: x).__code__",
        "f.__globals__.clear()",
        "import gc\nfor each in gc.get_objects():\n    if type(each) is set:\n        each.clear()",
        "raise SystemExit",
        "import os\nos._exit(0)",
    ],
)
def test_a_test_cannot_forge_it(test, sandbox):
    assert measure_coverage(problem(REFERENCE), [[test]], sandbox) == [Coverage(6, 1, 4, 0)]
    assert measure_coverage(problem(REFERENCE), [["f(1)", test]], sandbox) == [Coverage(6, 3, 4, 1)]


def test_programs_that_say_nonsense_are_data(sandbox):
    code = f"{REFERENCE}\nimport sys\ncodea1_env_executed_arcs = lambda: [[1], ([],), 2.0, None]\n"
    measure_coverage(problem(code), [["f(1)"]], sandbox)


def test_references_that_cannot_be_measured(sandbox):
    with pytest.raises(BrokenReferenceError, match=r"test/0.*ZeroDivisionError"):
        measure_coverage(problem("def f(x): pass\n1 / 0"), [["f(1)"]], sandbox)
    with pytest.raises(BrokenReferenceError, match="does not define 'f'"):
        measure_coverage(problem("def g(x): pass"), [["f(1)"]], sandbox)
    for text in ("def f(x:", "(" * 100_000, "x = '\\ud800'\n\0", "-" * 3_000_000 + "1"):
        with pytest.raises(AnalysisError):
            measure_coverage(problem(text), [["f(1)"]], sandbox)


def test_a_missing_extra_is_named(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(packaged, "packaged_sandbox", packaged.packaged_sandbox.__wrapped__)
    with pytest.raises(ImportError, match=r"coverage to be installed.*codea1-env\[evaluation\]"):
        packaged.coverable.__wrapped__("x = 1", "none", 0)
