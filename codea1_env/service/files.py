"""Files of a run: those that a request brings, and those that it wants back.

The program itself is given them, and gives them: nothing of ours looks into a folder that a hostile program may write
to. So what comes back is what the program says, and is no more worth than what it prints.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MAX_FILES = 100
MAX_FILE = 1 << 20
"""Bytes of one file, which is what the sandbox lets a program write into one."""
MAX_BYTES = 8 << 20
"""Of all files together: half of the folder that a run has."""
MAX_FETCHED = MAX_BYTES * 3 // 2
"""Characters that files may add to what a program prints."""
_MAX_NAME = 200
_MAX_PARTS = 10

_AROUND = """\
def around(files, wanted, mark, most, code):
    import base64, json, os, sys

    code = base64.b64decode(code).decode("utf-8", "surrogatepass")
    for name, text in files.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as file:
            file.write(base64.b64decode(text))
    out, folder = os.dup(1), os.getcwd()
    namespace = sys.modules["__main__"].__dict__
    del namespace["around"]
    try:
        exec(compile(code, "<program>", "exec", dont_inherit=True), namespace)
    finally:
        found, left = {}, most
        for name in wanted:
            name_here = os.path.join(folder, name)
            if os.path.isfile(name_here) and os.path.getsize(name_here) <= left:
                with open(name_here, "rb") as file:
                    data = file.read(left)
                left -= len(data)
                found[name] = base64.b64encode(data).decode()
        if wanted:
            try:
                sys.stdout.flush()
            except Exception:
                pass
            text = memoryview((mark + json.dumps(found) + mark).encode())
            while text:
                text = text[os.write(out, text):]
"""


def _check_names(names: Iterable[str]) -> None:
    """Refuse names that are no files below the run's folder."""
    names = list(names)
    if len(names) > MAX_FILES:
        raise ValueError(f"Expect at most {MAX_FILES} files, actually: {len(names)}")
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
    if both := folders & set(names):
        name = min(both)
        raise ValueError(f"Expect {name!r:.100} to be a file or a folder, actually: it is both")


def _check_contents(contents: Mapping[str, str]) -> None:
    """Refuse files that are not in base64, or too large."""
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


class Parcel:
    """A program with its files."""

    def __init__(self, code: str, files: Mapping[str, str | None], fetch: Iterable[str]) -> None:
        contents = {name: text for name, text in files.items() if text is not None}
        self._fetch = list(dict.fromkeys(fetch))
        _check_names(contents)
        _check_names(self._fetch)
        _check_contents(contents)
        self._mark = f"\n{secrets.token_hex(16)}\n"
        self.needs_folder = bool(contents or self._fetch)
        self.extra_output = MAX_FETCHED if self._fetch else 0
        self.code = code
        if self.needs_folder:
            # In base64, since as a literal one character may take ten.
            text = base64.b64encode(code.encode("utf-8", "surrogatepass")).decode()
            arguments = (contents, self._fetch, self._mark, MAX_BYTES, text)
            self.code = f"{_AROUND}\naround({', '.join(map(ascii, arguments))})"

    def unpack(self, stdout: str) -> tuple[str, dict[str, str]]:
        """Return what the program printed, and the files that it gave back."""
        if not self._fetch:
            return stdout, {}
        before, _, rest = stdout.partition(self._mark)
        text, ended, after = rest.partition(self._mark)
        try:
            found = json.loads(text) if ended else {}
        except (ValueError, RecursionError):  # the program has written to it
            found = {}
        if not isinstance(found, dict):
            found = {}
        files = {name: found[name] for name in self._fetch if isinstance(found.get(name), str)}
        return before + (after if ended else rest), files
