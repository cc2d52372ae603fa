"""Which statements and branches of a program were run, by coverage.py itself; its data stays in memory."""

from __future__ import annotations

import coverage
from coverage.parser import PythonParser

Lines = list[int]
Arcs = list[tuple[int, int]]


class Reached:
    """Measures one file of this process, from now on.

    Attributes:
        statements: Its statements, by their first lines. Nothing is left out, whatever its comments ask for.
        branches: Its branches: a line with several next ones, and one of them.
    """

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._parser = PythonParser(text=text or "\n", filename=path)
        self._parser.parse_source()
        counts = self._parser.exit_counts()
        self.statements: Lines = sorted(self._parser.statements)
        self.branches: Arcs = sorted(arc for arc in self._parser.arcs() if counts[arc[0]] > 1)
        self._lines: set[int] = set()
        self._arcs: set[tuple[int, int]] = set()
        self._coverage = coverage.Coverage(
            data_file=None, branch=True, config_file=False, include=[path], messages=False
        )
        self._coverage.start()

    def new(self) -> tuple[Lines, Arcs]:
        """Return which statements and branches were run for the first time since the last call."""
        data = self._coverage.get_data()
        arcs = data.arcs(self._path) or []
        lines = {line for arc in arcs for line in arc if line > 0}
        statements = self._parser.translate_lines(lines) & set(self.statements)
        branches = self._parser.translate_arcs(arcs) & set(self.branches)
        found = sorted(statements - self._lines), sorted(branches - self._arcs)
        self._lines |= statements
        self._arcs |= branches
        return found
