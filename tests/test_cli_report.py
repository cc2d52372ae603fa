"""`codea1 report`: one page, and one line for what a user gets wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from run_logs import episode, write_run

from codea1_env.cli.app import run


def test_a_page_is_written_once_unless_forced(tmp_path, capsys):
    folder, page = write_run(tmp_path / "run", [episode(1)]), tmp_path / "page.html"
    assert run(["report", str(folder), "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "All 1 logged episodes" in text
    assert "http://" not in text.partition("<script>")[0]
    assert run(["report", str(folder), "-o", str(page)]) == 2
    assert "add --force" in capsys.readouterr().err
    assert run(["report", str(folder), "-o", str(page), "--force"]) == 0
    assert page.read_text("utf-8") == text


@pytest.mark.parametrize("words", [["none"], [], [".", "-o", "."], [".", "-o", "no/page.html"]])
def test_bad_input_is_one_line(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["report", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_that_has_only_begun_has_no_empty_tables(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [])
    for log in folder.glob("*.jsonl"):
        log.unlink()
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "steps so far" in text
    assert "damaged lines" not in text
    assert "Time and tokens" not in text


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "altair", None)
    folder = write_run(tmp_path / "run", [])
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 2
    error = capsys.readouterr().err
    assert "codea1-env[report]" in error
    assert error.count("\n") == 1
