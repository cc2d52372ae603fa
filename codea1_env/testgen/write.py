"""Writes the tests of a function or class as a file for pytest."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from codea1_env.testgen.layout import laid_out
from codea1_env.testgen.search import WrittenSuite
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import modules_of, snake_case

WRITTEN = "written by codea1 testgen"
"""Stands at the top of every file."""


def default_output(folder: Path, target: Target) -> Path:
    """Return the file for the tests of a target in a folder."""
    module = target.module.name.rpartition(".")[2]
    names = [module, target.name] if module.lower() != target.name.lower() else [module]
    return folder / f"test_{'_'.join(map(snake_case, names))}.py"


def pytest_file(suite: WrittenSuite, output: Path) -> str:
    """Return the text of the file, formatted by ruff's settings there, if ruff is installed and has any.

    Args:
        suite: The tests.
        output: Where it will lie.
    """
    target = suite.target
    errors = {error for test in suite.tests for error in test.errors}
    names = sorted({target.name} | {each for each in errors if each in target.names})
    text = "".join(f"\n\n{each}\n" for each in laid_out(suite.tests, target.shape))
    for error in errors - {*names, *vars(builtins)}:  # what nothing imports
        text = text.replace(f"pytest.raises({error}):", f"pytest.raises(Exception):  # {error}")
    standard = modules_of(text)
    blocks = [
        [f"import {name}" for name in standard],
        ["import pytest"] if "pytest." in text else [],
        _imports(target, names),
    ]
    head = "".join("\n" + "\n".join(block) + "\n" for block in blocks if block)
    return _formatted(_docstring(suite) + head + text, output)


def path_hint(target: Target, output: Path) -> str:
    """Return what to put before `pytest` so that the file finds its module; "" if nothing is needed."""
    folder = output.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    root = target.module.root.resolve()
    return (
        "" if target.module.installed or folder == root else f"PYTHONPATH={os.path.relpath(root)} "
    )


def _formatted(text: str, output: Path) -> str:
    folder = output.resolve().parent
    command = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if command is None or not any(map(_has_settings, (folder, *folder.parents))):
        return text
    for part in (["check", "--fix-only", "--select", "I"], ["format"]):
        done = subprocess.run(
            [command, *part, "--quiet", "--stdin-filename", str(output.resolve()), "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=folder,
            encoding="utf-8",
        )
        text = done.stdout if done.returncode == 0 and done.stdout else text
    return text


def _has_settings(folder: Path) -> bool:
    if any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
        return True
    project = folder / "pyproject.toml"
    return project.is_file() and b"[tool.ruff" in project.read_bytes()


def _docstring(suite: WrittenSuite) -> str:
    return (
        f'"""Tests of {suite.target.name}, {WRITTEN}.\n\n'
        "They expect what the program gave when they were written: it still does the same. Whether that is\n"
        f"right, the reader decides. They notice {len(suite.killed)} of {len(suite.mutants)} small faults.\n"
        '"""\n'
    )


def _imports(target: Target, names: Sequence[str]) -> list[str]:
    """Return the imports: of the target as users import it, of other names where they are defined."""
    offered = target.offered or target.module.name
    places: dict[str, list[str]] = {}
    for name in names:
        places.setdefault(offered if name == target.name else target.module.name, []).append(name)
    return [f"from {module} import {', '.join(some)}" for module, some in sorted(places.items())]
