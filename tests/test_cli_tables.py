"""Tables and reports in a terminal: rows can be told apart, and no column is lost, however narrow it is."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest
from rich.console import Console

from codea1_env.cli import tables
from codea1_env.cli.eval_display import print_table
from codea1_env.cli.tables import PlainProgress, print_markdown

ROWS = [["name", *(f"figure {n}" for n in range(5))], ["mine", *["0.500 [0.400, 0.600]"] * 5]]


def test_long_work_says_how_much_of_it_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(tables.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    progress = PlainProgress(Console(file=out), known=20)
    for done, seconds in ((20, 0), (21, 4), (22, 15), (40, 40), (41, 40.5), (60, 80), (60, 81)):
        now[0] = 100.0 + seconds
        progress.tell(done, 60, f"{done} of 60", lambda: ", so far 0.5")
    assert out.getvalue().splitlines() == [
        "20 of 60, so far 0.5",  # what was known took no time
        "22 of 60, about 4:45 left, so far 0.5",
        "40 of 60, about 0:40 left, so far 0.5",
        "60 of 60, so far 0.5",
    ]


def test_no_column_is_lost_on_a_narrow_screen():
    shown = io.StringIO()
    print_table(ROWS, Console(file=shown, width=80))
    text = shown.getvalue()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert len(re.findall(r"0\.500 \[0\.400, 0\.600\]", text)) == 5
    assert re.findall(r"figure \d", text) == ROWS[0][1:]
    assert text.count("mine") == len(re.findall("name", text)) > 1


def test_a_reader_who_goes_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "codea1_env.cli", "problems", "list", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


NAMES = ["mylearn.py:LongerNameOfAnAlgorithm", "mylearn.py:LongerNameOfAnother"]
HEADINGS = ["", "coder: pass rate, IQM", "mean", "P", "tester: kill rate, IQM", "mean", "P", "runs"]
CELLS = ["0.334 [0.312, 0.422]", "0.383", "0.406 [0.188, 0.625]"] * 2 + ["2"]
TABLE = [HEADINGS, ["---"] * len(HEADINGS), *([name, *CELLS] for name in NAMES)]
REPORT = "\n".join([*(f"| {' | '.join(row)} |" for row in TABLE), "", "![scores](scores.png)"])


def shown(width: int, *, terminal: bool) -> str:
    out = io.StringIO()
    print_markdown(REPORT, Console(file=out, width=width, force_terminal=terminal, no_color=True))
    return out.getvalue()


def test_names_are_whole_in_a_pipe():
    lines = shown(80, terminal=False).splitlines()
    for name in NAMES:
        (line,) = [line for line in lines if name in line]
        assert line.count("0.334 [0.312, 0.422]") == 2


@pytest.mark.parametrize("width", [60, 120])
def test_names_go_on_in_the_next_line_of_a_terminal(width: int):
    text = shown(width, terminal=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\u2026" not in text, "nothing is cut off"
    parts = text.split("\u2500 \n")[1:]
    for part in parts:  # columns that do not fit stand below, with the names again
        rows = part.split("\n  ")[0].splitlines()
        assert "".join(row[1:].partition(" ")[0] for row in rows if row.strip()) == "".join(NAMES)
    assert all(text.count(cell) >= 2 * CELLS.count(cell) for cell in set(CELLS[:-1]))
