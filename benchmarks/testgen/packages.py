"""Functions of published packages, and what scripts that look at them share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def parser_for(text: str | None) -> argparse.ArgumentParser:
    """Return a command line that is explained by this text, and asks where the packages are."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", type=Path, required=True, help="where the packages are installed")
    return parser


class Log(list[dict[str, Any]]):
    """Rows of JSON that are kept in a file, so that a command goes on where it was stopped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        super().__init__(map(json.loads, lines))
        self._path = path

    def add(self, row: dict[str, Any]) -> None:
        """Add a row, which is at once in the file."""
        self.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
