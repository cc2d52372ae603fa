"""The functions of published packages that the scripts of this folder run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LISTED = Path(__file__).with_name("functions.txt")


def listed() -> Iterator[tuple[str, str]]:
    """The file and the name of each function in the list."""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, _, name = line.partition("::")
            yield file, name
