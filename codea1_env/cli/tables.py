"""Tables for narrow terminals: columns that do not fit stand below, each part with the names in front."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

_WIDEST = 1 << 16


def parts_of(table: Table, console: Console, width: int) -> Iterator[Table]:
    """Divide a table into parts that a screen has room for, as far as single columns allow.

    Args:
        table: Its first column has names.
        console: Where it is shown.
        width: Characters of a line.

    Example:
        >>> table = Table("name", "one", "two")
        >>> table.add_row("x", "0.500 [0.400, 0.600]", "0.600 [0.500, 0.700]")
        >>> [len(part.columns) for part in parts_of(table, Console(), 40)]
        [2, 2]
    """
    unbounded = console.options.update(max_width=_WIDEST)
    names, *others = table.columns
    group: list[Column] = []
    for column in others:
        wider = _part(table, [names, *group, column])
        if group and Measurement.get(console, unbounded, wider).maximum > width:
            yield _part(table, [names, *group])
            group = []
        group.append(column)
    yield _part(table, [names, *group])


def _part(table: Table, columns: Sequence[Column]) -> Table:
    part = copy.copy(table)
    part.columns = list(columns)
    return part
