"""Tables on narrow screens: nothing in them is broken, and no column is lost."""

from __future__ import annotations

import io
import re

from rich.console import Console

from codea1_env.cli.eval_display import print_table
from codea1_env.cli.tables import print_markdown

ROWS = [["name", *(f"figure {n}" for n in range(5))], ["mine", *["0.500 [0.400, 0.600]"] * 5]]


def check(text: str, width: int) -> None:
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert len(re.findall(r"0\.500 \[0\.400, 0\.600\]", text)) == 5
    assert re.findall(r"figure \d", text) == ROWS[0][1:]
    assert text.count("mine") == len(re.findall("name", text)) > 1


def test_table() -> None:
    shown = io.StringIO()
    print_table(ROWS, Console(file=shown, width=80))
    check(shown.getvalue(), 80)


def test_markdown() -> None:
    shown = io.StringIO()
    lines = [ROWS[0], ["---"] * 6, ROWS[1]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print_markdown(text, Console(file=shown, width=80, force_terminal=True, color_system=None))
    check(re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()), 80)
