"""Landlock: which files a child may read, and which one folder it may write.

The rules are made once per worker; a child only puts them in force. Kernels differ in how much they can
control (the "ABI", 1 to 7): rights that a kernel does not know are left out, and what it does know is
denied unless a rule allows it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE, _REFER = 1 << 14, 1 << 13
_FILE_RIGHTS = _WRITE_FILE | _READ_FILE | _TRUNCATE
_SCRATCH_RIGHTS = (
    _FILE_RIGHTS | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER
)

# The highest right that each ABI knows; network rights since 4; scopes (signals, abstract sockets) since 6.
_FILE_SYSTEM_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6

_HIGH_DESCRIPTOR = 40

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _syscall(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def abi() -> int:
    """The version of Landlock that the kernel has; 0 without Landlock."""
    try:
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def _handled(version: int) -> int:
    return (1 << _FILE_SYSTEM_BITS.get(version, 16)) - 1


class Ruleset:
    """Rules that a child can put in force.

    Args:
        readable: Files and folders that may be read, with all below them.
        listable: Folders that may be listed but whose files may not be read.
        scratch: The folder that may be written, or None.

    Raises:
        OSError: The kernel has no Landlock.
    """

    def __init__(
        self, readable: Iterable[str], listable: Iterable[str], scratch: str | None
    ) -> None:
        version = abi()
        if not version:
            raise OSError(errno.ENOSYS, "the kernel does not offer Landlock")
        self._handled = _handled(version)
        attributes = _Ruleset(
            self._handled,
            0b11 if version >= _NETWORK_SINCE else 0,
            0b11 if version >= _SCOPES_SINCE else 0,
        )
        size = 24 if version >= _SCOPES_SINCE else 16 if version >= _NETWORK_SINCE else 8
        low = _syscall(
            _CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0)
        )
        # Out of the way of the numbers that a child gives to its pipes.
        try:
            self.descriptor = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
        except OSError:
            needed = f"a process may have too few descriptors (ulimit -n): {_HIGH_DESCRIPTOR + 20} are needed"
            raise OSError(errno.EMFILE, needed) from None
        os.close(low)
        for path in readable:
            self._allow(path, _READ_FILE | _READ_DIR)
        for path in listable:
            self._allow(path, _READ_DIR)
        for device in ("/dev/null", "/dev/zero"):
            self._allow(device, _READ_FILE | _WRITE_FILE)
        for device in ("/dev/urandom", "/dev/random"):
            self._allow(device, _READ_FILE)
        if scratch is not None:
            self._allow(scratch, _SCRATCH_RIGHTS)
        # Made here, since every object that a child makes or touches costs it a page.
        self._arguments = (ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(self.descriptor), 0)

    def _allow(self, path: str, rights: int) -> None:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not there, so that nobody can read it either
            return
        try:
            if not os.path.isdir(path):
                rights &= _FILE_RIGHTS
            rule = _PathBeneath(rights & self._handled, descriptor)
            _syscall(
                _ADD_RULE,
                ctypes.c_int(self.descriptor),
                ctypes.c_int(_PATH_BENEATH),
                ctypes.byref(rule),
                ctypes.c_uint32(0),
            )
        finally:
            os.close(descriptor)

    def restrict(self) -> None:
        """Put the rules in force for this process, for good."""
        if _libc.syscall(*self._arguments) < 0:
            raise OSError(ctypes.get_errno(), "the kernel refuses the Landlock rules")
