"""`codea1 watch`: a run that is done, one that goes on, and folders that are no run."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from run_logs import episode, write_run

from codea1_env.cli.app import run
from codea1_env.report.live import read_live
from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS


def append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_finished_run_is_shown_once_without_a_terminal(tmp_path, capsys):
    hostile = episode(3, "own/\x1b[31m<b>", suites=[], history=[{"test": "assert\u202e\nf()", "status": "kept", "outcome": "fail"}])  # fmt: skip
    folder = write_run(tmp_path / "a", [episode(1), hostile])
    append(folder / METRICS, 'no row\n{"step": 4')
    assert run(["watch", str(folder)]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].endswith("3 steps, 1 damaged lines")
    assert "0.25 steps/s" in lines[2]
    (kills,) = (line for line in lines if line.startswith("held-out mutants"))
    (copies,) = (line for line in lines if line.startswith("  that copying"))
    # Controls are drawn on the scale of what they control: from 0.1 (new kills) to 0.7.
    assert kills.split()[-4:] == ["▅▆▇█", "0.400", "→", "0.700"]
    assert copies.split()[-4:] == ["▇▇▇▇", "0.600", "→", "0.600"]
    assert "judging 75%" in shown.replace("\u00a0", " ")
    assert [line.split()[:3] for line in lines[-2:]] == [["step", "3", "tester"], ["step", "1", "tester"]]  # fmt: skip
    assert "assert\\u202e f()" in lines[-2]
    assert "assert one() == 1" in lines[-1]
    assert "\x1b" not in shown


def test_a_run_is_read_on_while_it_is_written(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", [episode(1)], max_steps=9)
    first = read_live(folder, "a", 2)
    assert (first.run.step, first.finished, len(first.episodes)) == (3, False, 1)
    # 6 steps of 4 seconds; what was measured took no time that is logged.
    assert first.pace.left == 24.0

    append(folder / METRICS, '{"step": 4, "book/size": 7}\n{"step": 5, "boo')
    append(folder / EPISODES, json.dumps(episode(4)) + "\n" + json.dumps(episode(5))[:-9])
    second = read_live(folder, "a", 2)
    assert (second.run.step, second.run.damaged) == (4, {})
    assert [each.step for each in second.episodes] == [4, 1]
    append(folder / METRICS, 'k/size": 8}\n')
    append(folder / EPISODES, json.dumps(episode(5))[-9:] + "\n")
    third = read_live(folder, "a", 2)
    assert third.run.metrics[-1] == {"step": 5, "book/size": 8}
    assert [each.step for each in third.episodes] == [5, 4]

    # Resumed from step 1, with more steps than were asked for at first.
    for name in (METRICS, EPISODES, TIMINGS):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if json.loads(line)["step"] <= 1))
    config = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(config.replace("max_steps = 9", "max_steps = 12"))
    again = read_live(folder, "a", 2)
    assert (again.run.step, again.run.config.max_steps) == (1, 12)
    assert [each.step for each in again.episodes] == [1]


def test_a_folder_that_is_no_run_is_one_line(tmp_path, capsys):
    write_run(tmp_path / "a", [])
    for folder in (tmp_path, tmp_path / "none", tmp_path / "a" / METRICS):
        assert run(["watch", str(folder)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert (str(tmp_path / "a") in error.partition("It holds runs")[2]) == (folder == tmp_path)
    (tmp_path / "a" / "config.toml").write_text("no_such_setting = 1\n")
    assert run(["watch", str(tmp_path / "a")]) == 2
    assert "of this version" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_leaves_a_terminal_as_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", [], max_steps=9)
    for name in (METRICS, EPISODES, TIMINGS):
        (folder / name).unlink()  # a run that has just begun has none of them
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "codea1_env.cli", "watch", str(folder)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read_until(text: str) -> str:
        shown, end = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < end
            try:
                shown += os.read(terminal, 65536).decode()
            except OSError:  # it has ended
                break
        return shown

    read_until("Nothing is logged yet")
    append(folder / METRICS, '{"step": 1, "reward/coder/mean": 0.5}\n')
    read_until("reward of the coder")
    os.write(terminal, b"\x03")
    rest = read_until("no such text")
    assert "Traceback" not in rest
    assert "\x1b[?25h" in rest  # the cursor is back
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
