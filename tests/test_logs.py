"""Logs that survive a kill. The folders of runs and of evaluations, which are made of them, have tests of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.support.logs import LogFolder, read_rows, truncate, write_whole


def test_rows_are_read_up_to_one_that_was_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert list(read_rows(log)) == []
    truncate(log)
    assert not log.exists()
    for tail in (b'{"n": 2}', b'{"n": 2\n{"n": 3}\n', b"[2]\n", b"\xff\n", b"[" * 99_999 + b"\n"):
        log.write_bytes(b'{"n": 0}\n{"n": 1}\n' + tail)
        assert list(read_rows(log)) == [{"n": 0}, {"n": 1}]
        assert list(read_rows(log, lambda row: row["n"] < 1)) == [{"n": 0}]
        truncate(log)
        assert log.read_bytes() == b'{"n": 0}\n{"n": 1}\n'
    truncate(log, length=1)
    assert log.read_bytes() == b'{"n": 0}\n'
    truncate(log, lambda row: row["n"] > 0)
    assert log.read_bytes() == b""


def test_rows_are_on_the_disk_before_the_folder_is_closed(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, RuntimeError)
    folder.append("log.jsonl", [{"a": float("inf")}, {"a": "\ud800"}])
    assert (tmp_path / "log.jsonl").read_bytes() == b'{"a": Infinity}\n{"a": "\\ud800"}\n'
    folder.sync()
    with pytest.raises(RuntimeError, match="another process does"):
        LogFolder(tmp_path, RuntimeError)
    folder.close()
    LogFolder(tmp_path, RuntimeError).close()


def test_a_log_may_refuse_numbers_that_are_not_finite(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, RuntimeError, allow_nan=False)
    with pytest.raises(ValueError, match="JSON"):
        folder.append("log.jsonl", [{"a": 1}, {"a": float("nan")}])
    folder.close()
    assert (tmp_path / "log.jsonl").read_bytes() == b""


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"
