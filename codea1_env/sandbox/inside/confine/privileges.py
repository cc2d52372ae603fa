"""What a child gives up: resources, privileges, being looked at, and with Landlock files.

Kernels differ in what Landlock controls (the "ABI", 1 to 7): rights that a kernel does not know are left out, and what it
does know is denied unless a rule allows it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
from collections.abc import Iterable

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
PR_GET_NO_NEW_PRIVS = 39
_CAPABILITY_VERSION_3 = 0x20080522
MAX_THREADS = 64
"""Of the children of a worker, where the kernel counts them apart."""
MAX_INPUT = 16 << 20
"""Bytes of the file that is a program's standard input; its own files have at most 1 MiB."""

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

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
_prctl = libc.prctl  # looked up here: a child that does it the first time pays for it


def check(result: int, what: str) -> int:
    """Return the result of a call of the C library."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option: int, value: int = 0) -> int:
    """Set or read an option of this process, see the manual page of prctl."""
    return check(_prctl(option, value, 0, 0, 0), f"prctl({option})")


def limit(kind: int, value: int) -> None:
    """Set a resource limit for good, without trying to go above what is allowed."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def limit_job(memory: int, cpu_seconds: int) -> None:
    """Set the limits that a job chooses. CPU time here is only the backstop of the supervisor's clock."""
    limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_CPU, cpu_seconds)
    limit(resource.RLIMIT_FSIZE, 1 << 20)


def limit_resources() -> None:
    """Set the limits of every child that a worker can have itself: its children inherit them."""
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, MAX_INPUT)
    limit(resource.RLIMIT_MEMLOCK, 0)
    limit(resource.RLIMIT_MSGQUEUE, 0)
    limit(resource.RLIMIT_SIGPENDING, MAX_THREADS)


def limit_child(counted_apart: bool) -> None:
    """Set the limits that only a child can have.

    Args:
        counted_apart: Whether the worker's children have a user number or a user namespace that nobody else has. Only
            then may threads be limited: the kernel counts all of a user's threads together.
    """
    limit(resource.RLIMIT_NOFILE, 64)
    if counted_apart:
        limit(resource.RLIMIT_NPROC, MAX_THREADS)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Give up all capabilities, so that a root user's process is an ordinary one."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    check(libc.capset(ctypes.byref(header), ctypes.byref(none)), "capset")


def become(user: int) -> None:
    """Becomes a user without any group or right. Needs root."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def hide() -> None:
    """No ptrace, core or /proc access by the same user. A change of user undoes it."""
    prctl(PR_SET_DUMPABLE, 0)


def gain_nothing() -> None:
    """Set `no_new_privs` for this process and its children."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


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


def _landlock(number: int, *arguments: object) -> int:
    return check(libc.syscall(ctypes.c_long(number), *arguments), "Landlock")


def _create_ruleset(attributes: object, size: int, flags: int) -> int:
    return _landlock(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(flags))


class Ruleset:
    """Rules that a child can put in force.

    Args:
        readable: Files and folders that may be read, with all below them.
        listable: Folders that may be listed but whose files may not be read.
        scratch: The folder that may be written, or None.
    """

    def __init__(
        self, readable: Iterable[str], listable: Iterable[str], scratch: str | None
    ) -> None:
        try:
            version = _create_ruleset(None, 0, _VERSION_FLAG)
        except OSError:
            raise OSError(errno.ENOSYS, "the kernel does not offer Landlock") from None
        network, scopes = version >= _NETWORK_SINCE, version >= _SCOPES_SINCE
        self._handled = (1 << _FILE_SYSTEM_BITS.get(version, 16)) - 1
        attributes = _Ruleset(self._handled, 0b11 * network, 0b11 * scopes)
        low = _create_ruleset(ctypes.byref(attributes), 8 * (1 + network + scopes), 0)
        # Out of the way of the numbers that a child gives to its pipes.
        try:
            self.descriptor = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
        except OSError:
            needed = f"a process may have too few descriptors (ulimit -n): {_HIGH_DESCRIPTOR + 20} are needed"
            raise OSError(errno.EMFILE, needed) from None
        os.close(low)
        self._allow(readable, _READ_FILE | _READ_DIR)
        self._allow(listable, _READ_DIR)
        self._allow(("/dev/null", "/dev/zero"), _READ_FILE | _WRITE_FILE)
        self._allow(("/dev/urandom", "/dev/random"), _READ_FILE)
        if scratch is not None:
            self._allow((scratch,), _SCRATCH_RIGHTS)
        # Made here, since every object that a child makes or touches costs it a page.
        self._arguments = (ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(self.descriptor), 0)

    def _allow(self, paths: Iterable[str], rights: int) -> None:
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # not there, so that nobody can read it either
                continue
            try:
                of_file = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
                rule = _PathBeneath(of_file & self._handled, descriptor)
                ruleset, kind = ctypes.c_int(self.descriptor), ctypes.c_int(_PATH_BENEATH)
                _landlock(_ADD_RULE, ruleset, kind, ctypes.byref(rule), ctypes.c_uint32(0))
            finally:
                os.close(descriptor)

    def restrict(self) -> None:
        """Put the rules in force for this process, for good."""
        check(libc.syscall(*self._arguments), "the kernel refuses the Landlock rules")
