"""Functions of published packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

LISTED = Path(__file__).with_name("functions.txt")


def allow(site: Path) -> None:
    """Make the packages of this folder importable here, and in sandboxes that are made later."""
    sys.path.insert(0, str(site))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(site), os.environ.get("PYTHONPATH")])
    )


def listed(path: Path = LISTED) -> Iterator[tuple[str, str]]:
    """The file and the name of each function in a list."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, _, name = line.partition("::")
            yield file, name


def requirements(path: Path = LISTED) -> list[str]:
    """The packages of a list, with their versions."""
    text = path.read_text(encoding="utf-8")
    return [line[2:] for line in text.splitlines() if line.startswith("# ") and "==" in line]
