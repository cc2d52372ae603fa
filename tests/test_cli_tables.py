"""Tables and reports in a terminal: rows can be told apart, and no column is lost, however narrow it is."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from codea1_env.cli import tables
from codea1_env.cli.tables import PlainProgress, print_markdown, print_table

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


@pytest.mark.parametrize("width", [60, 120])
def test_nothing_is_cut_off_on_a_narrow_screen(width: int):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, no_color=True)
    print_table(ROWS, console)
    print_markdown(REPORT, console)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "\u2026" not in text
    assert text.count("0.500 [0.400, 0.600]") == 5, "figures are whole"
    assert text.count("0.406 [0.188, 0.625]") == 4
    for n in range(5):
        assert f"figure {n}" in text


@pytest.mark.slow
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


def test_names_are_whole_in_a_pipe():
    out = io.StringIO()
    print_markdown(REPORT, Console(file=out, width=80))
    for name in NAMES:
        (line,) = [line for line in out.getvalue().splitlines() if name in line]
        assert line.count("0.334 [0.312, 0.422]") == 2
