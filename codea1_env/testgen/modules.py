"""Where code lies: a module, the folder from which it is imported, and what it needs to be imported.

Nothing of the user's is imported or parsed in this process.
"""

from __future__ import annotations

import difflib
import importlib
import keyword
import os
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.sandbox.packages import locate
from codea1_env.testgen.source import imported, public

_MAX_CHARS = 1 << 23
_MOST_FILES = 3000
"""Files of packages of the user's that are read for what they import."""
_STANDARD = Path(os.__file__).resolve().parent
_SOURCES = ("", "src")
"""Folders below the current one from which a project's packages are imported."""


class TargetError(ValueError):
    """Tests cannot be written for this; the message says why, and what to do."""


@dataclass(frozen=True)
class Module:
    """A module of Python text."""

    path: Path
    name: str
    """As it is imported: ``package.module``."""
    root: Path
    """The folder from which it is imported."""
    installed: bool = False
    """It is imported from everywhere here."""

    @property
    def top(self) -> str:
        """The package, or the module itself where it is in none."""
        return self.name.partition(".")[0]


def module_of_file(path: Path) -> Module:
    """Return the module that a file is.

    Raises:
        TargetError: A file of this name cannot be imported.
    """
    path = Path(os.path.abspath(path))
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise TargetError(
                f"Expect the names of a file and of its packages to be Python names, so that tests can import it, "
                f"actually: {part!r}. Rename it."
            )
    if parts and parts[0] in sys.stdlib_module_names and folder.resolve() != _STANDARD:
        raise TargetError(
            f"Expect a file that tests can import, actually: {parts[0]!r} is the name of Python's own module. Rename it."
        )
    return Module(path, ".".join(parts), folder, _is_on_path(folder))


def find_module(name: str) -> Module:
    """Find a module by the name that it is imported by: here, below src, or among what is installed.

    Raises:
        TargetError: There is none, or it is not written in Python.
    """
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise TargetError(
            f"Expect the name of a module, or a file that ends with .py, actually: {name!r}. Write "
            "PACKAGE.module::name or FILE.py::name."
        )
    importlib.invalidate_caches()
    folders = [Path.cwd() / each for each in _SOURCES]
    here = [str(each) for each in folders if _exists(each, parts[0])]
    try:
        spec = PathFinder.find_spec(parts[0], here[:1]) if here else find_spec(parts[0])
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise TargetError(_unknown(parts[0], folders))
    root: Path | None = None
    for number, part in enumerate(parts[1:], 1):
        known, places = ".".join(parts[:number]), spec.submodule_search_locations
        if places is None:
            raise TargetError(
                f"Expect {known} to be a package, actually: it is a module without others in it. Write {known}::NAME."
            )
        root = root or Path(places[0]).parent
        spec = PathFinder.find_spec(part, [*places])  # imports nothing
        if spec is None:
            raise TargetError(_missing_module(known, part, places))
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise TargetError(
            f"Expect {name} to be written in Python, actually: it is compiled ({spec.origin or 'a part of Python'}), and "
            "has no text that could be read or given faults. Write tests for the Python functions that call it."
        )
    path = Path(spec.origin)
    root = root or (path.parent.parent if path.name == "__init__.py" else path.parent)
    return Module(path, name, root, _is_on_path(root))


def _exists(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (
        (folder / name).is_dir() and any((folder / name).rglob("*.py"))
    )


def _missing_module(package: str, part: str, places: Sequence[str]) -> str:
    names = sorted({each.name for each in pkgutil.iter_modules(places)})
    near = difflib.get_close_matches(part, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(names[:20])}."
    start = f"Expect the package {package} to have the module {part!r}, actually: it has none."
    return f"{start} {hint if names else ''}".strip()


def _unknown(name: str, folders: Sequence[Path]) -> str:
    from importlib import metadata  # only here: it reads what all packages say of themselves

    names = {each.name for each in pkgutil.iter_modules(map(str, folders))}
    names |= {*metadata.packages_distributions()}
    near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Install it, or set PYTHONPATH."
    return f"Expect {name!r} to be a package or module, here or installed, actually: there is none. {hint}"


def _is_on_path(folder: Path) -> bool:
    """Whether what lies in a folder is imported from everywhere: it is installed."""
    place = str(folder.resolve())
    return any(each and str(Path(each).resolve()) == place for each in sys.path) and not (
        Path.cwd().resolve().is_relative_to(place)
    )


# What a module needs


def folders_for(module: Module, sandbox: Sandbox, allowed: Iterable[str] = ()) -> dict[str, str]:
    """Return the packages that a module needs to be imported, and the folder that holds each.

    Its own package and modules beside it are read for what they import, in turn; of others it is known what they
    require.

    Args:
        module: What is to be imported.
        sandbox: Where texts are parsed.
        allowed: Further packages, by name.
    """
    root = str(module.root.resolve())
    own: dict[str, str] = {module.top: root}
    others: set[str] = {module.top, *allowed} if module.installed else set(allowed)
    left = _files_read(module)
    for path in left:
        for name in _imports_of(path, sandbox):
            if name in own or name in sys.stdlib_module_names:
                continue
            if module.installed or not _exists(module.root, name):
                others.add(name)
            else:
                own[name] = root
                left += _files_of(module.root, name)
        if len(left) > _MOST_FILES:
            break
    return {**locate(sorted(others)), **own}


def _files_read(module: Module) -> list[Path]:
    """Those of a project are all read; an installed package says itself what it requires."""
    if not module.installed:
        return _files_of(module.root, module.top)
    folders = [each for each in module.path.parents if each.is_relative_to(module.root)]
    return [module.path, *(file for each in folders if (file := each / "__init__.py").is_file())]


def _files_of(root: Path, name: str) -> list[Path]:
    if (root / f"{name}.py").is_file():
        return [root / f"{name}.py"]
    return sorted((root / name).rglob("*.py"))


def _imports_of(path: Path, sandbox: Sandbox) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if len(text) > _MAX_CHARS:
            return []
        found: list[str] = sandbox.analyse(imported, text)
    except (AnalysisError, OSError, UnicodeDecodeError):
        return []
    return found


_MAX_CHARS = 1 << 23


def check_file(path: Path) -> None:
    """Look whether there is a file.

    Raises:
        TargetError: There is none.
    """
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        near = difflib.get_close_matches(
            path.name, [each.name for each in path.parent.glob("*.py")]
        )
        hint = f". Did you mean {' or '.join(near)}?" if near else ""
        raise TargetError(f"Expect {path} to be a Python file, actually: {what}{hint}")


def read_text(path: Path) -> str:
    """Read a file of Python text.

    Raises:
        TargetError: There is none, or it is none.
    """
    check_file(path)
    try:
        source = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TargetError(
            f"Expect {path} to be text in UTF-8, actually: {error.reason} at byte {error.start}. Save it as UTF-8."
        ) from error
    if "\0" in source or len(source) > _MAX_CHARS:
        what = "it has a null byte" if "\0" in source else f"it has {len(source)} characters"
        raise TargetError(
            f"Expect {path} to be a program of at most {_MAX_CHARS} characters, actually: {what}"
        )
    return source.replace("\r\n", "\n").replace("\r", "\n")


_NOT_CODE = {
    "tests", "test", "docs", "build", "dist", "node_modules", "site-packages", "venv", "env",
}  # fmt: skip
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
    return [_place(file, sandbox) for file in _files(path)]


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
