"""Folders of jobs: what they refuse and what they go on with; and the processes that do jobs."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codea1_env.support.jobs import DIAGNOSTICS, FolderError, Jobs, read_table
from codea1_env.support.pool import DiedError, run_jobs


def of(row: dict[str, Any]) -> tuple[str, int]:
    return row["key"], row["value"]


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(FolderError, match=r"it has no eval.json"):
        Jobs(tmp_path / "none", {}, resume=True)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(FolderError, match="a new or an empty folder"):
            Jobs(path, {}, resume=False)
    folder = tmp_path / "begun"
    with (
        Jobs(folder, {"seed": 1, "n": [1]}, resume=False),
        pytest.raises(FolderError, match="another process does"),
    ):
        Jobs(folder, {"seed": 1, "n": [1]}, resume=True)
    with pytest.raises(FolderError, match="Add --resume"):
        Jobs(folder, {"seed": 1, "n": [1]}, resume=False)
    with pytest.raises(FolderError, match="seed was 1, now 2"):
        Jobs(folder, {"seed": 2, "n": (1,)}, resume=True)
    for content in ("{", '{"version": 0}', '{"version": 1}'):
        (folder / "eval.json").write_text(content)
        with pytest.raises(FolderError, match=r"JSON file|has version 0|hold the settings"):
            Jobs(folder, {"seed": 1, "n": [1]}, resume=True)


def test_a_process_killed_at_its_very_beginning_leaves_the_folder_free(tmp_path):
    for name in (".lock", ".eval.json.part"):
        (tmp_path / name).write_bytes(b"")
    with Jobs(tmp_path, {}, resume=False) as folder:
        assert (folder.path / "eval.json").exists()


def test_settings_that_may_change_are_those_of_the_last_time(tmp_path):
    for seeds in (1, 2):
        Jobs(tmp_path, {"seeds": seeds}, DIAGNOSTICS, resume=None, command=f"c {seeds}").close()
    found = json.loads((tmp_path / "diagnose.json").read_text())
    assert found == {"version": 1, "settings": {"seeds": 2}, "command": "c 2"}
    (tmp_path / "diagnose.json").write_text('{"command": "of before versions"}')
    with pytest.raises(
        FolderError, match=r"diagnostics of version 1, actually .* has version None"
    ):
        Jobs(tmp_path, {}, DIAGNOSTICS, resume=None)


def test_a_row_that_was_cut_off_is_done_again_and_the_last_of_a_key_counts(tmp_path):
    whole = '{"key": "a", "value": 1}\n{"key": "b", "value": 2}\n'
    table = tmp_path / "rows.jsonl"
    with Jobs(tmp_path, {}, resume=False) as jobs:
        for cut in range(len(whole) + 1):
            table.write_text(whole[:cut])
            lines = whole[:cut].count("\n")
            expected = dict([("a", 1), ("b", 2)][:lines])
            assert read_table(table, of) == expected, "who only reads changes nothing"
            assert jobs.done("rows.jsonl", of) == expected
            assert table.read_text() == whole[: 25 * lines]
        jobs.append("rows.jsonl", [{"key": "a", "value": 3}])
        assert jobs.done("rows.jsonl", of) == {"a": 3, "b": 2}


@pytest.mark.parametrize("line", ['{"garbage": 1}', "{", "[1]", '{"key": []}'])
def test_a_damaged_row_is_named_and_nothing_is_lost(tmp_path, line):
    good = '{"key": "a", "value": 1}\n'
    (tmp_path / "rows.jsonl").write_text(damaged := f"{good}{line}\n{good}")
    with pytest.raises(FolderError, match=r"not in line 2\. Take that line out"):
        read_table(tmp_path / "rows.jsonl", of)
    assert (tmp_path / "rows.jsonl").read_text() == damaged


def test_on_a_full_disk_what_is_done_stays_done(tmp_path):
    def fill() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))

    code = """
from pathlib import Path
from codea1_env.support.jobs import Jobs
with Jobs(Path("full"), {}, resume=False) as jobs:
    for number in range(1000):
        jobs.append("rows.jsonl", [{"key": str(number), "value": number}])
        print(number)
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=fill)
    assert "rows.jsonl" in ended.stderr.splitlines()[-1]
    told = ended.stdout.split()
    with Jobs(tmp_path / "full", {}, resume=True) as jobs:
        assert list(jobs.done("rows.jsonl", of)) == told


def finds(number: int, tell) -> None:
    tell(number)
    print("said in", os.getpid())
    tell(-number)


def stays(tell) -> None:
    """Leaves a thread that nobody ends."""
    tell("told")
    threading.Thread(target=time.sleep, args=(600,)).start()


def dies(tell) -> None:
    tell("alive")
    os._exit(3)


def raises(tell) -> None:
    raise KeyError("mine")


def is_killed_once(flag: Path, tell) -> None:
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    tell("whole")


def waits(folder: Path, tell) -> None:
    """Ends half a second after SIGTERM, with something that it found."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    (folder / str(os.getpid())).touch()
    while not asked:
        time.sleep(0.05)
    tell("last")


def ran(jobs, **options: Any) -> tuple[dict[Any, list[Any]], dict[Any, Exception]]:
    heard: dict[Any, list[Any]] = {}
    failed: dict[Any, Exception] = {}
    run_jobs(
        jobs,
        jobs.__getitem__,
        lambda job, found: heard.setdefault(job, []).append(found),
        failed.__setitem__,
        processes=2,
        **options,
    )
    return heard, failed


def test_jobs_that_die_or_raise_are_begun_again_once(tmp_path, monkeypatch):
    jobs = {n: partial(finds, n) for n in range(1, 4)}
    monkeypatch.setattr("codea1_env.support.pool._TO_LEAVE", 0.5)
    jobs |= {
        "stays": stays,
        "dies": dies,
        "raises": raises,
        "killed": partial(is_killed_once, tmp_path / "flag"),
    }
    heard, failed = ran(jobs, log=lambda job: tmp_path / f"{job}.txt")
    assert heard == {
        1: [1, -1],
        2: [2, -2],
        3: [3, -3],
        "stays": ["told"],
        "dies": ["alive", "alive"],
        "killed": ["whole"],
    }
    assert {job: (type(error), str(error)) for job, error in failed.items()} == {
        "dies": (DiedError, "with exit code 3"),
        "raises": (KeyError, "'mine'"),
    }
    assert (tmp_path / "1.txt").read_text().startswith("said in ")
    assert (tmp_path / "raises.txt").read_text().count("Traceback") == 2


def test_who_stops_hears_what_processes_still_find(tmp_path):
    heard = []

    def interrupt() -> None:
        if any(tmp_path.iterdir()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(
            ["a"],
            lambda job: partial(waits, tmp_path),
            lambda job, found: heard.append(found),
            lambda job, error: heard.append(error),
            processes=1,
            tick=interrupt,
        )
    assert heard == ["last"]


def test_processes_end_with_their_parent(tmp_path):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from functools import partial
from pathlib import Path
from test_jobs import waits
from codea1_env.support.pool import run_jobs
run_jobs([0], lambda job: partial(waits, Path({str(tmp_path)!r})), print, print, processes=1)
"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while not (begun := list(tmp_path.iterdir())) and time.monotonic() < until:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    child = Path("/proc", begun[0].name)
    while child.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not child.exists()
