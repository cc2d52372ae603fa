"""A finding as one line for a shell, in the folder that the user stands in."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from codea1_env.testgen.findings import Finding
from codea1_env.testgen.target import Target


def one_line(finding: Finding, target: Target, folder: Path | None = None) -> str:
    """A command that shows what a finding says. It runs the program as you, in no sandbox.

    Args:
        finding: What was found.
        target: The function or class that it was found in.
        folder: Where the command will run; None for the current one.
    """
    root = target.place[0]
    test = finding.test
    names = [target.name, *(test.uses if test else ())]
    imports = [f"import {each}" for each in (test.modules if test else ())]
    imports += [f"from {module} import {', '.join(some)}" for module, some in target.imports(names)]
    *steps, last = finding.source.split("; ") if target.is_class else [finding.source]
    if target.asynchronous:
        imports, last = ["import asyncio", *imports], f"asyncio.run({last})"
    lines = [*imports, *finding.before.splitlines(), *steps]
    # A statement that shows something, such as a loop that prints, is run as it is.
    shown = f"print(repr({last}))" if _is_call(last) else last
    simple = not any(line[:1].isspace() or line.rstrip().endswith(":") for line in lines)
    text = ("; " if simple else "\n").join([*lines, shown])
    away = os.path.relpath(root, folder or Path.cwd())
    path = "" if away == "." or target.installed else f"PYTHONPATH={shlex.quote(away)} "
    return f"{path}python -c {shlex.quote(text)}"


def as_data(finding: Finding, target: Target) -> dict[str, Any]:
    """A finding for a report."""
    return {
        "source": finding.source,
        "did": finding.did,
        "expected": finding.expected,
        "kind": finding.kind,
        "reproduction": one_line(finding, target),
    }


def _is_call(text: str) -> bool:
    return (
        not text.startswith(("print(", "for ", "with ", "if ", "while ", "try:"))
        and "\n" not in text
    )
