"""Where code lies: modules, the folders from which they are imported, and the packages that they need.

Nothing of the user's is imported or parsed in this process.
"""

from __future__ import annotations

import difflib
import keyword
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from codea1_env.sandbox.packages import locate

_STANDARD = Path(os.__file__).resolve().parent
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_MOST_FILES = 1000
_SKIPPED = {
    "tests", "test", "docs", "build", "dist", "node_modules", "site-packages", "venv", "env", "setup.py",
    "conftest.py", "__main__.py", "noxfile.py", "tasks.py",
}  # fmt: skip
"""Files and folders that are no part of a program."""
_OF_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")


class TargetError(ValueError):
    """Something cannot be tested; the message says why, and what to do."""


class NotImportedError(TargetError):
    """A module cannot be imported in the sandbox; `error` says what its import raised."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True)
class Module:
    """A module of Python text."""

    path: Path
    name: str
    """As it is imported: ``package.module``."""
    root: Path
    """The folder from which it is imported."""

    @property
    def top(self) -> str:
        """The package, or the module itself where it is in none."""
        return self.name.partition(".")[0]


def module_of_file(path: Path) -> Module:
    """Return the module that a file is; a TargetError if none of this name can be imported."""
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise TargetError(f"Expect {path} to be a Python file, actually: {what}")
    path = Path(os.path.abspath(path))
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise TargetError(
                f"Expect the names of a file and its packages to be Python names, actually: {part!r}. Rename it."
            )
    if parts and parts[0] in sys.stdlib_module_names and folder.resolve() != _STANDARD:
        raise TargetError(
            f"Expect a file that tests can import, actually: {parts[0]!r} is a module of Python itself. Rename it."
        )
    return Module(path, ".".join(parts), folder)


def _exists(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or any((folder / name).rglob("*.py"))


def split_target(target: str) -> tuple[str, str]:
    """Return the place and the name in ``PLACE::NAME``; the name is empty if there is none."""
    place, _, name = target.partition("::")
    if "." in name or "::" in name:
        raise TargetError(
            f"Expect a function or class at the top level of a file, actually: {name!r}. Its tests are among those of "
            f"its class: {place}::{re.split(r'[.:]', name)[0]}"
        )
    return place, name


def modules_in(place: str) -> list[Module]:
    """Return the modules of a file or folder; test files are left out."""
    path = Path(place)
    if path.suffix == ".py" and not path.is_dir():
        return [module_of_file(path)]
    if not path.exists():
        raise TargetError(f"Expect {place} to be a file or folder, actually: there is none.")
    found = []
    for file in files_in(path):
        try:
            found.append(module_of_file(file))
        except TargetError:  # a script with a name of its own
            continue
    return found


def files_in(path: Path) -> Iterable[Path]:
    """Yield the files of a folder that belong to a program: no tests, no environments, nothing built."""
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(
            each
            for each in folders
            if each.isidentifier()
            and each not in _SKIPPED
            and not each.startswith("__")
            and not Path(folder, each, "pyvenv.cfg").exists()
        )
        for each in sorted(files):
            if each.endswith(".py") and each not in _SKIPPED and not is_test_file(each):
                yield Path(folder, each)


def is_test_file(name: str) -> bool:
    """Whether pytest would take a file for tests."""
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def folders_for(module: Module, allowed: Iterable[str] = ()) -> dict[str, str]:
    """Return the packages that a module needs to be imported, and others by name, with the folder of each."""
    root = str(module.root.resolve())
    own, others = {module.top: root}, set(allowed)
    left = _sources(module.root, module.top)
    for path in islice(left, _MOST_FILES):  # it grows
        text = path.read_bytes().decode("utf-8", "replace")
        for name in set(_IMPORTS.findall(text)) - own.keys() - sys.stdlib_module_names:
            if _exists(module.root, name):
                own[name] = root
                left += _sources(module.root, name)
            else:
                others.add(name)
    return {**locate(sorted(others)), **own}


def _sources(root: Path, name: str) -> list[Path]:
    file = root / f"{name}.py"
    return [file] if file.is_file() else sorted((root / name).rglob("*.py"))


def readme_of(module: Module) -> str:
    """Return the text of the README of a module's project: beside its package, or above its `src`.

    Where many packages are installed, a README beside them is of any of them.
    """
    root = module.root.resolve()
    if {"site-packages", "dist-packages"} & {*root.parts} or root.is_relative_to(_STANDARD):
        return ""
    above = root.name == "src" or any((root.parent / each).exists() for each in _OF_PROJECTS)
    folders = (root, root.parent) if above else (root,)
    paths = [path for folder in folders for path in sorted(folder.glob("README*"))]
    texts = (path for path in paths if path.is_file())
    return next((each.read_text("utf-8", "replace")[:200_000] for each in texts), "")


def missing(module: Module, name: str, names: Iterable[str]) -> TargetError:
    """Return the error that a module does not define a name, with the nearest ones that it does."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"It defines {', '.join(names[:12]) or 'none'}."
    hint = f"Did you mean {' or '.join(near)}?" if near else hint
    return TargetError(
        f"Expect {module.path} to define the function or class {name!r}, actually: it does not. {hint}"
    )
