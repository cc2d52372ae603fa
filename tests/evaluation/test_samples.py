from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.evaluation.samples import (
    SamplesError,
    digest,
    evalplus_id,
    read_samples,
    sample_row,
)
from codea1_env.problems import Problem

PROBLEMS = [
    Problem("demo/a", "def a():\n", "a", "def a():\n    return 1\n", ("assert a() == 1",)),
    Problem("demo/b", "def b():\n", "b", "def b():\n    return 2\n", ("assert b() == 2",)),
    Problem("MBPP/7", "def c():\n", "c", "def c():\n    return 3\n", metadata={"source": "mbpp+"}),
]


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_solutions_and_completions(tmp_path):
    path = write(
        tmp_path / "s.jsonl",
        {"task_id": "demo/b", "solution": "x"},
        {"task_id": "demo/a", "completion": "    return 1\n", "extra": [1]},
        {"task_id": "demo/b", "solution": "y", "completion": "ignored, as evalplus does"},
        {"task_id": "Mbpp/7", "solution": "z"},
        {"task_id": "MBPP/7", "solution": "z"},
    )
    file = read_samples(path, PROBLEMS)
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
    file = read_samples(path, PROBLEMS)
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
        read_samples(path, PROBLEMS)


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
        read_samples(tmp_path / name, PROBLEMS)


def test_rows_have_the_names_of_evalplus():
    assert [evalplus_id(problem) for problem in PROBLEMS] == ["demo/a", "demo/b", "Mbpp/7"]
    row = sample_row(PROBLEMS[0], "x = 1\n", "```python\nx = 1\n```")
    assert row == {"task_id": "demo/a", "solution": "x = 1\n", "answer": "```python\nx = 1\n```"}


def test_the_digest_changes_with_the_tests():
    changed = Problem("demo/a", "def a():\n", "a", PROBLEMS[0].reference, ("assert a() == 2",))
    same = Problem("demo/a", "def a():\n", "a", "def a(): return 1", ("assert a() == 1",))
    assert digest(changed) != digest(PROBLEMS[0]) == digest(same)
