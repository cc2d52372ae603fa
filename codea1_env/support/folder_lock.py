"""Keeps a folder of results to one process at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO


def lock_folder(path: Path, error: type[Exception]) -> IO[bytes]:
    """Take a folder's lock, which is given back when the returned file is closed or the process ends.

    Args:
        path: The folder.
        error: What is raised if another process has it.
    """
    lock = (path / ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as cause:
        lock.close()
        raise error(
            f"Expect nobody else to work on {path}, actually: another process does. Wait for it, "
            "or stop it first."
        ) from cause
    return lock
