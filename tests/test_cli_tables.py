"""Tables on narrow screens: nothing in them is broken, and no column is lost."""

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
from codea1_env.cli.tables import PlainProgress

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
