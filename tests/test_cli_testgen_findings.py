"""Findings on the command line: which are shown, what is compared, and the exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from codea1_env.cli.app import run

STATS = """\
def half(n: int) -> int:
    return n // 2


def mean(xs: list[int]) -> float:
    return sum(xs) / len(xs)


def number(text: str) -> int:
    return int(text)
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    (tmp_path / "stats.py").write_text(STATS)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "m"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_checking_what_has_changed(project, capsys):
    (project / "stats.py").write_text(STATS.replace("n // 2", "n // 2 + (n > 6)"))
    assert run(["testgen", "--check", "stats.py", "--against", "HEAD"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "stats.py:1: half(7) returns 4; at HEAD it returns 3",
        "  python -c 'from stats import half; print(repr(half(7)))'",
        "1 finding in 1 function or class; 2 have not changed",
    ]
    assert list(project.glob("test_*")) == []
    arguments = ["testgen", "--check", "stats.py::mean", "stats.py::number", "--json"]
    assert run([*arguments, "--fail-on", "nothing"]) == 0
    mean, number = json.loads(capsys.readouterr().out)["results"]
    assert [each["kind"] for each in mean["findings"]] == ["crash"]
    assert number["findings"] == []
    assert [each["kind"] for each in number["questions"]] == ["exception"]
    assert run(["testgen", "--check", "stats.py::number", "--all-findings"]) == 1


def test_questions_are_no_findings_and_a_file_can_be_written_again(project, capsys):
    assert run(["testgen", "stats.py::number"]) == 0
    assert "1 question, such as: number('') raises ValueError" in capsys.readouterr().out
    path = project / "test_stats_number.py"
    before = path.read_text()
    assert "@pytest.mark.skip(reason=\"number('') raises ValueError" in before
    assert run(["testgen", "stats.py::number", "--overwrite"]) == 0
    assert path.read_text() == before
    path.write_text("def test_mine(): pass\n")
    capsys.readouterr()
    assert run(["testgen", "stats.py::number", "--overwrite"]) == 2
    assert "it does not say so" in capsys.readouterr().err
    assert path.read_text() == "def test_mine(): pass\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "none.py"], "expect none.py to be a Python file, actually: there is no such file"),
        (["--check"], "Expect at least one file, folder or function"),
        (["--check", "stats.py::hafl"], "Did you mean half?"),
        (["--check", "stats.py", "--against", "nix"], "expect a commit, branch or tag with --against, actually: 'nix'"),
        (["stats.py::half", "--against", "nix"], "expect a commit, branch or tag with --against"),
        (["stats.py::half", "--fail-on", "all"], "findings"),
        (["--check", "stats.py", "--seed", "-1"], "Expect --seed to be at least 0"),
        (["--check", "stats.py", "--workers", "0"], "Expect --workers to be at least 1"),
    ],
)  # fmt: skip
def test_bad_input(project, arguments, message, capsys):
    try:
        code = run(["testgen", *arguments])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_file_in_no_repository(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "stats.py").write_text(STATS)
    assert run(["testgen", "--check", "stats.py", "--against", "HEAD"]) == 2
    assert "to lie in a git repository" in capsys.readouterr().err
