"""Empties folders that hostile programs have filled."""

from __future__ import annotations

import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _unlinked(name: str, folder: int) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        return False
    return True


def empty(path: str) -> None:
    """Removes everything in a folder, however deep and whatever its permissions.

    Folders within folders are moved up before they are emptied: nothing recurses, and no path gets long.

    Raises:
        OSError: Something cannot be removed.
    """
    top = os.open(path, _FOLDER)
    try:
        prefix, moved = os.urandom(8).hex(), 0
        while names := os.listdir(top):
            for name in names:
                if _unlinked(name, top):
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                inner = os.open(name, _FOLDER, dir_fd=top)
                try:
                    for child in os.listdir(inner):
                        if not _unlinked(child, inner):
                            os.chmod(child, 0o700, dir_fd=inner)
                            moved += 1
                            os.rename(child, f"{prefix}-{moved}", src_dir_fd=inner, dst_dir_fd=top)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def remove(path: str) -> None:
    """Removes a folder and everything in it; without complaint if it is gone already.

    Raises:
        OSError: Something cannot be removed.
    """
    try:
        empty(path)
        os.rmdir(path)
    except FileNotFoundError:
        return
