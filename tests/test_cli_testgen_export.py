"""`codea1 testgen --export problems`: functions of a package become problems that the game can play."""

from __future__ import annotations

import json

import pytest

from codea1_env.cli.app import run
from codea1_env.problems import load_problems

PACKAGE = {
    "kit/__init__.py": "from .words import shorten\n",
    "kit/other.py": "from .words import LIMIT\n\n\ndef cut(text: str) -> str:\n    'Cut it.'\n    return text[:LIMIT]\n",
    "kit/words.py": '''\
from __future__ import annotations

import os
import string
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 3
_SIGNS = string.punctuation


class Odd:
    """A class."""


def shorten(text: str, marks: Sequence[str] = (".", "!")) -> str:
    """Leave out marks at the end, and what is longer than LIMIT."""
    while text and text[-1] in marks and text[-1] in _SIGNS:
        text = text[:-1]
    return text[:LIMIT]


def total(numbers: list[int], start: int = LIMIT) -> int:
    """Return the sum.

    >>> total([1, 2])
    6
    """
    for number in numbers:
        start += number if number > 0 else 0
    return start


def bare(n: int) -> int:
    return n


def odd(n: int) -> Odd:
    """Return something that is no plain data."""
    return Odd()


def where(place: str) -> str:
    """Ask the machine."""
    return os.environ[place]


def each(n: int) -> Any:
    """Count."""
    yield from range(n)
''',
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_package_becomes_a_problem_set_that_can_be_trained_on(folder, capsys):
    assert run(["testgen", "kit", "--export", "problems", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    reasons = {row["target"].partition("::")[2]: row["reason"] for row in report["results"]}
    assert reasons.pop("shorten") == reasons.pop("total") == ""
    assert reasons.pop("where")
    assert reasons == {
        "cut": "it needs .words of its package",
        "Odd": "it is a class",
        "bare": "it has no docstring",
        "odd": "its signature needs Odd, which only its file defines",
        "each": "it is a generator",
    }
    problems = {each.task_id: each for each in load_problems("problems.jsonl")}
    assert list(problems) == ["kit.words/shorten", "kit.words/total"]
    shorten, total = problems.values()
    assert "from collections.abc import Sequence" in shorten.prompt
    assert "LIMIT = 3\n\n\ndef total(" in total.prompt
    assert total.prompt.rstrip().endswith('"""')
    assert "shorten" not in total.reference
    assert "return start" in total.reference
    assert total.metadata["source"] == "kit.words::total"
    assert run(["problems", "validate", "problems.jsonl"]) == 0
    assert "2 problems" in capsys.readouterr().out
    arguments = ["--preset", "tabular", "--problems", "problems.jsonl", "--max-steps", "2"]
    assert run(["train", *arguments, "--output-dir", "run"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kit", "--export", "problem"], "problems"),
        (["kit", "--export", "problems", "--output", "kit.txt"], "ends with .jsonl"),
        (["kit", "--export", "problems", "--output", "taken.jsonl"], "to be a new file"),
        (["kat", "--export", "problems"], "Did you mean kit"),
        (["kit.words::bare", "--export", "problems"], "none of 1; the first: it has no docstring"),
        (["kit.words::shortn", "--export=problems"], "Did you mean shorten"),
    ],
)
def test_what_cannot_be_exported_is_said(folder, arguments, message, capsys):
    (folder / "taken.jsonl").write_text("")
    try:
        code = run(["testgen", *arguments])
    except SystemExit as error:  # what the command line itself checks
        code = error.code
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "problems.jsonl").exists()
