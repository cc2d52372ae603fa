"""Files of Python text: found, and read."""

from __future__ import annotations

import difflib
from pathlib import Path

from codea1_env.testgen.modules import TargetError, module_of_file

_MAX_CHARS = 1 << 23


def import_root(path: Path) -> tuple[Path, str]:
    """The folder from which a file can be imported, and the name of its module.

    Raises:
        TargetError: A file of this name cannot be imported.
    """
    module = module_of_file(path.resolve())
    return module.root, module.name


def check_file(path: Path) -> None:
    """Look whether there is a file.

    Raises:
        TargetError: There is none.
    """
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        near = difflib.get_close_matches(path.name, _neighbours(path), n=3)
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


def _neighbours(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.glob("*.py")) if path.parent.is_dir() else []
