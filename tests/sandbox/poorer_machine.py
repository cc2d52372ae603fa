"""Runs a Python command on a machine that lacks something.

Usage: poorer_machine.py landlock|namespaces|writing|proc ARGUMENT...

What is lacking is refused by a seccomp filter, as containers do it, or hidden by a mount.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_NUMBERS = {
    "x86_64": {"unshare": 272, "openat": 257, "mkdir": 83, "mkdirat": 258},
    "aarch64": {"unshare": 97, "openat": 56, "mkdirat": 34},
}.get(platform.machine(), {})
_LOAD, _EQUAL, _SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _THIRD_ARGUMENT = 0, 32  # offsets in struct seccomp_data
_ERRNO, _ALLOW = 0x50000, 0x7FFF0000
_NEWNS, _PRIVATE, _RECURSIVE = 0x20000, 1 << 18, 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)

Instruction = tuple[int, int, int, int]


def _refuse(name: str, error: int) -> list[Instruction]:
    number = 444 if name == "landlock_create_ruleset" else _NUMBERS.get(name, -1) % (1 << 32)
    return [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _refuse_new_files() -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 3, _NUMBERS["openat"]),
        (_LOAD, 0, 0, _THIRD_ARGUMENT),
        (_SET, 0, 1, os.O_CREAT),
        (_RETURN, 0, 0, _ERRNO | errno.EROFS),
    ]


def _install(instructions: list[Instruction]) -> None:
    program = [*instructions, (_RETURN, 0, 0, _ALLOW)]
    data = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
    kept = ctypes.create_string_buffer(data, len(data))
    filter_ = struct.pack("@HP", len(program), ctypes.addressof(kept))
    assert _libc.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
    assert _libc.prctl(22, 2, filter_, 0, 0) == 0


def _hide_proc() -> None:
    flags = ctypes.c_ulong(_PRIVATE | _RECURSIVE)
    for done in (
        _libc.unshare(_NEWNS),
        _libc.mount(b"none", b"/", None, flags, None),
        _libc.mount(b"none", b"/proc", b"tmpfs", ctypes.c_ulong(0), None),
    ):
        if done != 0:
            raise OSError(ctypes.get_errno(), "cannot hide /proc")


def take_away(what: str) -> None:
    """Makes the machine lack something, for this process and those that it starts."""
    if what == "landlock":
        _install(_refuse("landlock_create_ruleset", errno.ENOSYS))
    elif what == "namespaces":
        _install(_refuse("unshare", errno.EPERM))
    elif what == "writing":
        names = [name for name in ("mkdir", "mkdirat") if name in _NUMBERS]
        folders = [each for name in names for each in _refuse(name, errno.EROFS)]
        _install([*_refuse_new_files(), *folders])
    elif what == "proc":
        _hide_proc()
    else:
        raise ValueError(f"unknown: {what}")


if __name__ == "__main__":
    take_away(sys.argv[1])
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
