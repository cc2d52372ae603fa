"""Runs pytest as an ordinary user without privileges, when one is root.

Usage: python tests/sandbox/as_ordinary_user.py ARGUMENT-OF-PYTEST...

Python, or the project, often lies under a folder that no other user may enter. Such folders are opened in a
mount namespace of this process only: nothing on the machine changes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from pathlib import Path

USER = 65534  # "nobody"
_PROJECT = Path(__file__).resolve().parents[2]
_NEWNS, _BIND, _RECURSIVE, _PRIVATE = 0x20000, 4096, 1 << 14, 1 << 18
_NOT_ALLOWED = 77  # exit status, as other test tools have it for "skipped"

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    texts = [text.encode() for text in (source, target, kind)]
    done = _libc.mount(*texts, ctypes.c_ulong(flags), data.encode())
    _check(done, f"mount {target}")


def _needed() -> set[Path]:
    """What the tests read: Python, its packages, the project, and where these are links, also their targets."""
    named = [_PROJECT, Path(sys.prefix), Path(sys.base_prefix), *map(Path, filter(None, sys.path))]
    links = [Path(sys.executable), *Path(sys.executable).resolve().parents[:1]]
    found = {path for each in (*named, *links) for path in (each, each.resolve()) if path.exists()}
    return {path if path.is_dir() else path.parent for path in found}


def _closed_above(path: Path) -> Path | None:
    """The topmost folder above a path, or the path itself, that others may not enter."""
    closed = [each for each in (path, *path.parents) if not each.stat().st_mode & 0o001]
    return closed[-1] if closed else None


def open_folders() -> None:
    """Lets every user reach what the tests need, for this process and those that it starts.

    Raises:
        OSError: It may not mount.
    """
    needed = _needed()
    closed = sorted({top for path in needed if (top := _closed_above(path)) is not None})
    if not closed:
        return
    _check(_libc.unshare(_NEWNS), "unshare")
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    stage = Path(tempfile.mkdtemp())
    for top in closed:
        inner = sorted(path for path in needed if path.is_relative_to(top))
        inner = [
            path
            for path in inner
            if not any(path != up and path.is_relative_to(up) for up in inner)
        ]
        _mount("none", str(stage), "tmpfs", 0)
        for number, path in enumerate(inner):
            (stage / str(number)).mkdir()
            _mount(str(path), str(stage / str(number)), "", _BIND | _RECURSIVE)
        _mount("none", str(top), "tmpfs", 0, "mode=755")
        for number, path in enumerate(inner):
            path.mkdir(parents=True, exist_ok=True)
            _mount(str(stage / str(number)), str(path), "", _BIND | _RECURSIVE)
        _check(_libc.umount2(str(stage).encode(), 2), "umount")
    stage.rmdir()


def become_ordinary(home: str) -> None:
    """Gives up everything that root has.

    Raises:
        OSError: What the tests need cannot be read then.
    """
    os.chown(home, USER, USER)
    os.environ.update(HOME=home, TMPDIR=home, PYTHONDONTWRITEBYTECODE="1")
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    for path in _needed():
        os.listdir(path)


def main(arguments: list[str]) -> int:
    """Runs pytest; its exit status, or 77 where this cannot be done."""
    if os.geteuid() != 0:
        print("Expect to be started by root, to become an ordinary user", file=sys.stderr)
        return _NOT_ALLOWED
    os.chdir(_PROJECT)
    os.umask(0o022)
    home = tempfile.mkdtemp(prefix="ordinary-")
    pid = os.fork()
    if pid == 0:
        try:
            open_folders()
            become_ordinary(home)
        except OSError as error:
            print(
                f"Expect to be allowed to open Python's folders to others, actually: {error}",
                file=sys.stderr,
            )
            os._exit(_NOT_ALLOWED)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        os.execv(sys.executable, command)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
