"""Files between machines that share no folder: they go in pieces, since those of a model are larger than a message may be."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from codea1_env.support import start

_PIECE = 64 << 20
"""Bytes that are sent at a time."""
_REMOVE = 'exec 3<&0; (read _ <&3; rm -rf -- "$0") &'
"""Waits until whoever started it has ended, in whatever way, and removes a folder. Ray ends children, not their children."""


def pieces(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Read all files of a folder in pieces, each with the name of its file."""
    for source in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = source.relative_to(folder).as_posix()
        with source.open("rb") as file:
            yield name, file.read(_PIECE)
            while piece := file.read(_PIECE):
                yield name, piece


def append(folder: Path, name: str, data: bytes) -> None:
    """Write the next piece of a file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


class Receiver:
    """A process on a node that is sent files, and loads what computes."""

    loaded: Any = None
    """What computes, once there is something. It has a method `close`."""

    def __init__(self, folder: str) -> None:
        start.spin_briefly()
        with suppress(OSError):  # another machine may not have it, and not need it
            os.chdir(folder)
        # What libraries write lies there, too.
        tempfile.tempdir = self._temporary = tempfile.mkdtemp(prefix="codea1-ray-")
        command = ["sh", "-c", _REMOVE, self._temporary]
        self._alive = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self._alive.wait()
        self.received = Path(self._temporary, "received")
        self.received.mkdir()

    def append(self, name: str, data: bytes) -> None:
        """Receive the next piece of a file."""
        append(self.received, name, data)

    def empty(self) -> None:
        """Remove all files that were received."""
        shutil.rmtree(self.received)
        self.received.mkdir()

    def close(self) -> None:
        """Free what is held here."""
        if self.loaded is not None:
            self.loaded.close()
        shutil.rmtree(self._temporary)
