"""Reports in a terminal: rows can be told apart however narrow it is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from codea1_env.cli.tables import print_markdown

NAMES = ["mylearn.py:LongerNameOfAnAlgorithm", "mylearn.py:LongerNameOfAnother"]
HEADINGS = ["", "coder: pass rate, IQM", "mean", "P", "tester: kill rate, IQM", "mean", "P", "runs"]
CELLS = ["0.334 [0.312, 0.422]", "0.383", "0.406 [0.188, 0.625]"] * 2 + ["2"]
TABLE = [HEADINGS, ["---"] * len(HEADINGS), *([name, *CELLS] for name in NAMES)]
REPORT = "\n".join([*(f"| {' | '.join(row)} |" for row in TABLE), "", "![scores](scores.png)"])


def shown(width: int, *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, no_color=True)
    print_markdown(REPORT, console)
    return console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO


def test_names_are_whole_in_a_pipe():
    lines = shown(80, terminal=False).splitlines()
    for name in NAMES:
        (line,) = [line for line in lines if name in line]
        assert line.count("0.334 [0.312, 0.422]") == 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_names_go_on_in_the_next_line_of_a_terminal(width: int):
    text = shown(width, terminal=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\u2026" not in text, "nothing is cut off"
    parts = text.split("\u2500 \n")[1:]
    for part in parts:  # columns that do not fit stand below, with the names again
        rows = part.split("\n  ")[0].splitlines()
        assert "".join(row[1:].partition(" ")[0] for row in rows if row.strip()) == "".join(NAMES)
    assert all(text.count(cell) >= 2 * CELLS.count(cell) for cell in set(CELLS[:-1]))
    assert "scores" not in text
