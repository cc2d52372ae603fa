"""Functions of published packages, each in a copy of its file that runs on its own."""

from __future__ import annotations

import ast
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


def single_file(site: Path, file: str, folder: Path) -> Path:
    """Copy a file of a package, with its relative imports made absolute; returns the copy."""
    path = folder / file.replace("/", "_").replace("__init__", "init")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(absolute(file, (site / file).read_text(encoding="utf-8")), encoding="utf-8")
    return path


def absolute(file: str, source: str) -> str:
    r"""Make the relative imports of a file absolute, line by line.

    Example:
        >>> absolute("stdnum/de/idnr.py", "from ..util import clean\nfrom . import x")
        'from stdnum.util import clean\nfrom stdnum.de import x'
    """
    lines = source.splitlines(keepends=True)
    parents = list(Path(file).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(parents[: len(parents) - node.level + 1])
            dots = "." * node.level + (node.module or "")
            full = f"{base}.{node.module}" if node.module else base
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line.replace(f"from {dots} ", f"from {full} ", 1)
    return "".join(lines)


def listed() -> Iterator[tuple[str, str]]:
    """The file and the name of each function in the list."""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, _, name = line.partition("::")
            yield file, name


def requirements() -> list[str]:
    """The packages of the list, with their versions."""
    text = LISTED.read_text(encoding="utf-8")
    return [line[2:] for line in text.splitlines() if line.startswith("# ") and "==" in line]
