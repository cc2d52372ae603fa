"""Files of suites of tests, and what counts as one test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.evaluation.samples import (
    SamplesError,
    SuiteSample,
    digest,
    evalplus_id,
    read_samples,
    read_suites,
    sample_row,
)
from codea1_env.evaluation.suites.evaluation import SuiteEvaluation
from codea1_env.evaluation.suites.reading import ReadSuite, read_suite
from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox


def problem(task_id: str, source: str = "") -> Problem:
    return Problem(
        task_id,
        "def f(n):",
        "f",
        "def f(n): return n",
        metadata={"source": source} if source else {},
    )


PROBLEMS = [problem("ULT/10"), problem("ULT/7"), problem("MBPP/2", "mbpp+")]


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tasks_by_their_names_and_by_the_last_part(tmp_path):
    rows = [
        {"task_id": "10", "test_list": ["assert f(1) == 1"], "code": "..."},
        {"task_id": 7, "tests": []},
        {"task_id": "ULT/10", "answer": "text"},
        {"task_id": "Mbpp/2", "tests": ["x"]},
    ]
    file = read_suites(write(tmp_path / "s.jsonl", *rows), PROBLEMS)
    assert [(each.task_id, each.index) for each in file.samples] == [
        ("ULT/10", 0), ("ULT/7", 0), ("ULT/10", 1), ("MBPP/2", 0),
    ]  # fmt: skip
    assert file.samples[0].row == rows[0]
    assert file.missing == ()
    assert file.unknown == {}


def test_a_last_part_that_two_problems_have_is_no_name(tmp_path):
    both = [problem("a/1"), problem("b/1")]
    path = write(
        tmp_path / "s.jsonl", {"task_id": "1", "tests": []}, {"task_id": "a/1", "tests": []}
    )
    file = read_suites(path, both)
    assert file.unknown == {"1": 1}
    assert file.missing == ("b/1",)


def suite(**row: Any) -> SuiteSample:
    return SuiteSample("ULT/7", 0, row)


def read(sandbox: Sandbox, limit: int = 20, **row: Any) -> ReadSuite:
    return read_suite(suite(**row), PROBLEMS[1], limit, sandbox)


def said(found: ReadSuite) -> list[list[str]]:
    """For each test its calls, or why it has none."""
    return [
        [test.text for test in each.tests] or [part.reason for part in each.dropped]
        for each in found.tests
    ]


def test_each_text_of_a_list_is_one_test(sandbox):
    texts = [
        "assert f(1) == 1",
        "def test_f():\n    assert f(2) == 2\n    assert f(3) == 3",
        "```python\nassert f(6) == 6\n```",
        "x = 8",
        "",
        "assert f(9) == 9",
    ]
    found = read(sandbox, 5, tests=texts)
    assert found.texts == tuple(texts[:5])
    assert said(found) == [
        ["assert f(1) == 1"],
        ["assert f(2) == 2", "assert f(3) == 3"],
        ["assert f(6) == 6"],
        ["the answer holds no test"],
        ["the answer is empty"],
    ]
    assert (found.late, found.empty) == (1, "")
    [many] = read(sandbox, tests=["for n in range(40):\n    assert f(n) == n"]).tests
    assert len(many.tests) == 16


def test_an_answer_without_tests(sandbox):
    for answer, why in (
        ("", "the answer is empty"),
        ("I cannot do that.", "the answer holds no test"),
        ("x" * 100_000, "the answer is too long: 100000 characters, of at most 65536"),
        ("def f(n): return n", "the answer holds no test"),
    ):
        found = read(sandbox, answer=answer)
        assert (found.tests, found.empty) == ((), why)


ANSWER = """\
Here:
```python
from solution import f
assert f(1) == 2
assert f(2) > 4
for x in (1, 2):
    assert f(x) == x + 1
assert len(f(9)) == 1
assert abs(f(2.5) - 3.5) < 0.01
```
"""


def test_tests_of_an_answer_keep_their_places(sandbox):
    found = read(sandbox, 5, answer=ANSWER)
    texts = ("assert f(1) == 2", "assert f(2) > 4", "assert f(1) == 2", "assert f(2) == 3")
    assert found.texts == (*texts, "assert len(f(9)) == 1")
    assert [len(test.tests) for test in found.tests] == [1, 0, 1, 1, 0]
    assert found.late == 1


def test_the_signature_does_not_bind_tests(sandbox):
    typed = Problem("ULT/7", "def f(n: int) -> int:", "f", "def f(n: int) -> int: return n")
    found = read_suite(suite(tests=["assert f('a') == 'a'"]), typed, 1, sandbox)
    assert [(test.call_text, test.fault) for test in found.tests[0].tests] == [("f('a')", None)]


@pytest.mark.parametrize("bad", ["'\0'", "'\ud800'", "(" * 100_000, "exit()", "-" * 30_000 + "1"])
def test_hostile_parts_harm_only_themselves(sandbox, bad):
    text = f"assert f(1) == 2\nassert f({bad[:30_000]}) == 1\nassert f(2) == 3\n"
    found = read(sandbox, answer=text)
    assert (said(found)[0], said(found)[-1]) == (["assert f(1) == 2"], ["assert f(2) == 3"])
    assert len(found.tests) == 3


def test_the_digest_follows_the_reference():
    one, other = problem("a/1"), problem("a/2")
    changed = Problem("a/1", "def f(n):", "f", "def f(n): return n + 1")
    digests = [SuiteEvaluation().digest(each) for each in (one, other, changed)]
    assert digests[0] == digests[1] != digests[2]


SOLVED = [
    Problem("demo/a", "def a():\n", "a", "def a():\n    return 1\n", ("assert a() == 1",)),
    Problem("demo/b", "def b():\n", "b", "def b():\n    return 2\n", ("assert b() == 2",)),
    Problem("MBPP/7", "def c():\n", "c", "def c():\n    return 3\n", metadata={"source": "mbpp+"}),
]


def test_solutions_and_completions(tmp_path):
    path = write(
        tmp_path / "s.jsonl",
        {"task_id": "demo/b", "solution": "x"},
        {"task_id": "demo/a", "completion": "    return 1\n", "extra": [1]},
        {"task_id": "demo/b", "solution": "y", "completion": "ignored, as evalplus does"},
        {"task_id": "Mbpp/7", "solution": "z"},
        {"task_id": "MBPP/7", "solution": "z"},
    )
    file = read_samples(path, SOLVED)
    assert [(s.task_id, s.index, s.code) for s in file.samples] == [
        ("demo/b", 0, "x"),
        ("demo/a", 0, "def a():\n    return 1\n"),
        ("demo/b", 1, "y"),
        ("MBPP/7", 0, "z"),
        ("MBPP/7", 1, "z"),
    ]
    assert file.samples[1].row["extra"] == [1]
    assert file.missing == ()
    assert file.unknown == {}


def test_unknown_and_missing_tasks_are_named(tmp_path):
    row = {"task_id": "demo/z", "solution": ""}
    path = write(tmp_path / "s.jsonl", row, row, {"task_id": "demo/a", "solution": ""})
    file = read_samples(path, SOLVED)
    assert file.unknown == {"demo/z": 2}
    assert file.missing == ("demo/b", "MBPP/7")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"task_id": "demo/a", "solu', "line 2: Expect one JSON object a line"),
        ('{"solution": ""}', "line 2: Expect 'task_id' to be text, actually: None"),
        ('{"task_id": "demo/a", "code": ""}', "line 2: Expect a field 'solution'"),
        ('{"task_id": "demo/a", "solution": ["", ""]}', "Write one line for each program"),
    ],
)
def test_broken_lines_are_named(line, message, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"task_id": "demo/a", "solution": ""}\n' + line + "\n")
    with pytest.raises(SamplesError, match=message):
        read_samples(path, SOLVED)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.jsonl", "", "Expect at least one sample"),
        ("s.jsonl.gz", "not compressed", "Expect a file that gzip can unpack"),
        ("missing.jsonl", None, "actually there is no .*missing.jsonl"),
    ],
)
def test_unusable_files(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SamplesError, match=message):
        read_samples(tmp_path / name, SOLVED)


def test_rows_have_the_names_of_evalplus():
    assert [evalplus_id(problem) for problem in SOLVED] == ["demo/a", "demo/b", "Mbpp/7"]
    row = sample_row(SOLVED[0], "x = 1\n", "```python\nx = 1\n```")
    assert row == {"task_id": "demo/a", "solution": "x = 1\n", "answer": "```python\nx = 1\n```"}


def test_the_digest_changes_with_the_tests():
    changed = Problem("demo/a", "def a():\n", "a", SOLVED[0].reference, ("assert a() == 2",))
    same = Problem("demo/a", "def a():\n", "a", "def a(): return 1", ("assert a() == 1",))
    assert digest(changed) != digest(SOLVED[0]) == digest(same)
