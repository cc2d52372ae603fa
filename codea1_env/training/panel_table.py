"""The panel of a run as a table: what the tester could do before and after training, and two scripts beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from codea1_env.evaluation.panel import ROWS, PanelCount
from codea1_env.training.metrics import Row

PLAYERS = ("copier", "numbers")
CAPTION = (
    "Each cell: share with its 95% interval, and counts. copier: submits the examples. numbers: tests every number of the "
    "program's text; who does no better copies. Tests break by the reference's value, also where they predict another."
)


def counts_of(rows: Iterable[Row]) -> dict[str, dict[str, PanelCount]]:
    """Return row -> column -> count, from panel.jsonl: "before", "after" and the scripts, of the panel that was met last.

    Example:
        >>> counts_of([{"step": 0, "player": "tester", "panel": "1f", "row": "valid", "hits": 1, "of": 2, "right": 1}])
        {'valid': {'before': PanelCount(hits=1, of=2, right=1)}}
    """
    found: dict[str, dict[str, PanelCount]] = {}
    known = list(rows)
    for row in (each for each in known if each["panel"] == known[-1]["panel"]):
        tested = row["player"] == "tester"
        column = ("after" if row["step"] else "before") if tested else row["player"]
        count = PanelCount(row["hits"], row["of"], row["right"])
        found.setdefault(row["row"], {})[column] = count
    return found


def cell(count: PanelCount | None) -> str:
    """Write a count with its share and interval; "-" for none.

    Example:
        >>> cell(PanelCount(12, 24)), cell(None)
        ('0.50 [0.31, 0.69] 12/24', '-')
    """
    found = None if count is None else count.share
    if count is None or found is None:
        return "-"
    return f"{found.value:.2f} {found.interval('{:.2f}'.format)} {count.hits}/{count.of}"


def panel_table(rows: Sequence[Row]) -> Table | None:
    """Make the table of panel.jsonl; None where no panel was met."""
    counts = counts_of(rows)
    if not counts:
        return None
    table = Table(title="what the tester breaks", title_justify="left", caption=CAPTION)
    table.caption_justify = "left"
    table.add_column("")
    for name in ("before", "after", "of these by a right value", *PLAYERS):
        table.add_column(name, justify="right")
    for name, label in ROWS.items():
        if found := counts.get(name):
            before, after, *scripts = (
                cell(found.get(each)) for each in ("before", "after", *PLAYERS)
            )
            right = str(found["after"].right) if "after" in found else "-"
            table.add_row(label, before, after, right, *scripts)
    return table
