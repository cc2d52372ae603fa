"""What a child gives up whatever the kernel offers: resources, privileges, and being looked at."""

from __future__ import annotations

import ctypes
import os
import resource

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
PR_GET_NO_NEW_PRIVS = 39
_CAPABILITY_VERSION_3 = 0x20080522
_MAX_PROCESSES = 64

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl


def prctl(option: int, value: int = 0) -> int:
    """Set or read an option of this process, see the manual page of prctl.

    Raises:
        OSError: It is refused.
    """
    result: int = _prctl(option, value, 0, 0, 0)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
    return result


def limit(kind: int, value: int) -> None:
    """Set a resource limit for good, without trying to go above what is allowed."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def limit_job(memory: int, cpu_seconds: int) -> None:
    """The limits that a job chooses. CPU time here is only the backstop of the supervisor's clock."""
    limit(resource.RLIMIT_AS, memory)
    limit(resource.RLIMIT_CPU, cpu_seconds)


def limit_resources() -> None:
    """The limits of every child that a worker can have itself: its children inherit them."""
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 1 << 20)
    limit(resource.RLIMIT_MEMLOCK, 0)
    limit(resource.RLIMIT_MSGQUEUE, 0)


def limit_child(own_user: bool) -> None:
    """The limits that only a child can have.

    Args:
        own_user: Whether the worker's children have a user number that nobody else has. Only then may
            processes be counted: the kernel counts all of a user's threads together.
    """
    limit(resource.RLIMIT_NOFILE, 64)
    if own_user:
        limit(resource.RLIMIT_NPROC, _MAX_PROCESSES)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Give up all capabilities, so that a root user's process is an ordinary one."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    if _libc.capset(ctypes.byref(header), ctypes.byref(none)) != 0:
        raise OSError(ctypes.get_errno(), "capset failed")


def become(user: int) -> None:
    """Becomes a user without any group or right. Needs root."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def hide() -> None:
    """No ptrace, core or /proc access by the same user. A change of user undoes it."""
    prctl(PR_SET_DUMPABLE, 0)


def gain_nothing() -> None:
    """No gain of rights through programs, for this process and all that it forks."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
