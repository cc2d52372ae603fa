"""What a user names: a function, or all that are public in a file, a folder or a package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.testgen.modules import Module, TargetError, find_module, module_of_file
from codea1_env.testgen.public import public
from codea1_env.testgen.source_files import check_file, read_text

_NOT_CODE = {
    "tests",
    "test",
    "docs",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
    "env",
}
"""Folders whose files are no part of a program."""
_NO_MODULES = {"setup.py", "conftest.py", "__main__.py", "noxfile.py"}


@dataclass(frozen=True)
class PublicNames:
    """A module and what is to be tested of it."""

    path: Path
    module: Module | None
    """None if nothing of the file can be tested."""
    names: tuple[str, ...] = ()
    problem: str = ""
    """Why nothing can be tested."""

    def label(self, name: str = "") -> str:
        """How a result is called."""
        where = self.module.name if self.module is not None else str(self.path)
        return f"{where}::{name}" if name else where


def places_named(target: str, sandbox: Sandbox) -> list[PublicNames]:
    """Find what a user names: ``FILE.py``, ``FOLDER``, ``PACKAGE``, or one of these with ``::NAME``.

    Raises:
        TargetError: There is no such place.
    """
    where, _, name = target.partition("::")
    path = Path(where)
    if path.suffix == ".py" or os.sep in where or (path.exists() and not name):
        module = None
    else:
        module = find_module(where)
        path = module.path
    if name:
        check_file(path)
        return [PublicNames(path, module or module_of_file(path), (name,))]
    if path.name == "__init__.py" and module is not None:
        path = path.parent
    if not path.exists():
        read_text(path)  # which says what is wrong
    return places_in(path, sandbox)


def check_public(places: Sequence[PublicNames], target: str) -> None:
    """Look whether there is anything.

    Raises:
        TargetError: What the user named defines nothing that is public.
    """
    if not any(place.names or place.problem for place in places):
        raise TargetError(
            f"Expect {target} to define public functions or classes, actually: it has none in {len(places)} files. "
            "Name one of its own with FILE.py::NAME."
        )


def places_in(path: Path, sandbox: Sandbox) -> list[PublicNames]:
    """The public functions and classes of a file, or of all files of a folder, in the order of their paths.

    Args:
        path: A file or folder.
        sandbox: Where texts are parsed.
    """
    return [_place(file, sandbox) for file in _files(path)]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(
            each
            for each in folders
            if each.isidentifier()
            and each not in _NOT_CODE
            and not each.startswith("__")
            and not (Path(folder, each) / "pyvenv.cfg").exists()
        )
        found += [
            Path(folder, each)
            for each in sorted(files)
            if each.endswith(".py")
            and each not in _NO_MODULES
            and not each.startswith("test_")
            and not each.endswith("_test.py")
        ]
    return found


def _place(path: Path, sandbox: Sandbox) -> PublicNames:
    try:
        names, problem = sandbox.analyse(public, read_text(path))
        if problem:
            return PublicNames(path, None, problem=f"it is no program of this Python: {problem}")
        return PublicNames(path, module_of_file(path) if names else None, tuple(names))
    except (TargetError, AnalysisError) as error:
        return PublicNames(path, None, problem=str(error))
