"""Files that a request brings. The program itself writes them: nothing of ours writes into a folder of hostile programs."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import PurePosixPath

MAX_FILES = 100
MAX_FILE = 1 << 20
"""Bytes of one file, which is what the sandbox lets a program write into one."""
MAX_BYTES = 8 << 20
"""Of all files together: half of the folder that a run has."""
_MAX_NAME = 200
_MAX_PARTS = 10

_AROUND = """\
def around(files, code):
    import base64, os, sys

    code = base64.b64decode(code).decode("utf-8", "surrogatepass")
    for name, text in files.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as file:
            file.write(base64.b64decode(text))
    namespace = sys.modules["__main__"].__dict__
    del namespace["around"]
    exec(compile(code, "<program>", "exec", dont_inherit=True), namespace)
"""


def with_files(code: str, files: Mapping[str, str | None]) -> str:
    """Return a program that has these files in its folder; their contents are in base64.

    Raises:
        ValueError: A name is no file below the run's folder, or a content is not in base64 or too large.
    """
    contents = {name: text for name, text in files.items() if text is not None}
    if not contents:
        return code
    _check_names(contents)
    _check_contents(contents)
    # In base64, since as a literal one character may take ten.
    text = base64.b64encode(code.encode("utf-8", "surrogatepass")).decode()
    return f"{_AROUND}\naround({contents!a}, {text!a})"


def _check_names(names: Mapping[str, str]) -> None:
    for name in names:
        parts = name.split("/")
        if not name.isprintable() or any(part in ("", ".", "..") for part in parts):
            raise ValueError(
                f'Expect files to have relative paths without "..", actually: {name!r:.100}'
            )
        if len(name.encode()) > _MAX_NAME or len(parts) > _MAX_PARTS:
            raise ValueError(
                f"Expect paths of at most {_MAX_NAME} bytes and {_MAX_PARTS} parts, actually: {name!r:.100}"
            )
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents}
    if both := folders & names.keys():
        name = min(both)
        raise ValueError(f"Expect {name!r:.100} to be a file or a folder, actually: it is both")


def _check_contents(contents: Mapping[str, str]) -> None:
    size = 0
    for name, text in contents.items():
        try:
            length = len(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise ValueError(f"Expect {name!r:.100} to be in base64, actually: it is not") from None
        if length > MAX_FILE:
            raise ValueError(
                f"Expect {name!r:.100} to have at most {MAX_FILE} bytes, actually: {length}"
            )
        size += length
    if size > MAX_BYTES:
        raise ValueError(f"Expect files of at most {MAX_BYTES} bytes together, actually: {size}")
