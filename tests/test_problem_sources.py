"""Sets of problems of one's own: by a registered name, or from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env import Problem, load_problems, parallel_env, problems, register_source
from codea1_env.cli.app import run
from codea1_env.problems import ProblemsError

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

FILE = """
from codea1_env import Problem

def mine():
    for split in ("train", "eval"):
        yield Problem(
            f"mine/{split}", "def double(n: int) -> int:", "double", "def double(n):\\n    return 2 * n\\n",
            ("assert double(2) == 4",), metadata={"split": split},
        )

def broken():
    return [1]

def wants(split):
    return []
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return str(path)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "_registered", {})


def one() -> list[Problem]:
    return [Problem("mine/one", "def one():", "one", "def one():\n    return 1\n")]


def test_a_registered_name_is_a_source() -> None:
    register_source("mine", one)
    with pytest.raises(ValueError, match="'mine' is taken"):
        register_source("mine", one)
    assert load_problems("mine") == one()
    env = parallel_env(problems="mine")
    env.reset(seed=0)
    assert env.game.running().problem.task_id == "mine/one"


@pytest.mark.slow
def test_a_file_is_a_source(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = load_problems(f"{file}:mine")
    assert [problem.task_id for problem in found] == ["mine/train", "mine/eval"]
    assert [problem.task_id for problem in load_problems(f"{file}:mine", "eval")] == ["mine/eval"]
    assert run(["play", "--json", "--problems", f"{file}:mine", "--problem", "mine/eval"]) == 0
    assert "mine/eval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "load", "kind", "message"),
    [
        ("starter", one, ValueError, "is taken. Choose another"),
        ("a/b", one, ValueError, "which stand in files and ids"),
        ("mine", lambda split: [], TypeError, "a function without parameters"),
    ],
)
def test_what_is_no_source_is_named_at_registration(name, load, kind, message):
    with pytest.raises(kind, match=message):
        register_source(name, load)  # type: ignore[arg-type]


def test_what_a_file_gives_is_checked(file: str) -> None:
    with pytest.raises(ProblemsError, match="Expect a Problem, actually: <class 'int'>"):
        load_problems(f"{file}:broken")
    with pytest.raises(ProblemsError, match="to define the function 'mien'"):
        load_problems(f"{file}:mien")
    with pytest.raises(ProblemsError, match="without parameters"):
        load_problems(f"{file}:wants")
