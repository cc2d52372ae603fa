"""A seccomp filter for one child, assembled here: no library to install and nothing to compile.

No new processes, no program execution, no sockets but a private pair, no signals to others, nothing that
inspects or changes another process, the machine or the sandbox. Refused calls fail with EPERM, so that a
program sees an ordinary `PermissionError`. Calls of another architecture end the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct

from . import syscalls

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _AND, _RETURN = (
    0x20,
    0x15,
    0x35,
    0x45,
    0x54,
    0x06,
)
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000

_ARCHITECTURES = {
    "x86_64": (0xC000003E, syscalls.X86_64),
    "aarch64": (0xC00000B7, syscalls.AARCH64),
}

_CLONE_THREAD = 0x00010000
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_TCGETS, _FIONREAD, _FIONBIO, _FIOCLEX, _FIONCLEX = 0x5401, 0x541B, 0x5421, 0x5451, 0x5450
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ.
# Not F_SETOWN and F_SETSIG, with which a process can send signals.
_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032)
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_UNCATCHABLE = (9, 19)  # SIGKILL, SIGSTOP
_RLIMIT_CPU, _RLIMIT_RTTIME = 0, 15
_OWN_PID = 0x5A5A5A5A  # replaced by the child's own number


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _argument(index: int) -> bytes:
    return _instruction(_LOAD, _ARGUMENTS + 8 * index)


def _return(action: int) -> bytes:
    return _instruction(_RETURN, action)


_DENY = _return(_ERRNO | errno.EPERM)


def _one_of(values: tuple[int, ...], otherwise: int = errno.EPERM) -> list[bytes]:
    """Allow if the loaded word is one of the values."""
    count = len(values)
    tests = [_instruction(_JUMP_EQUAL, value, count - index) for index, value in enumerate(values)]
    return [*tests, _return(_ERRNO | otherwise), _return(_ALLOW)]


def _own_signal(process: int, number: int) -> list[bytes]:
    """Allow signals to the process itself, but those that nobody can catch: who dies of one was killed from outside.

    Args:
        process: Index of the argument that holds the process number.
        number: Index of the argument that holds the signal's.
    """
    to_itself = [
        _argument(process),
        _instruction(_JUMP_EQUAL, _OWN_PID, 1, 0),
        _DENY,
        _argument(number),
    ]
    tests = [
        _instruction(_JUMP_EQUAL, each, len(_UNCATCHABLE) - index, 0)
        for index, each in enumerate(_UNCATCHABLE)
    ]
    return [*to_itself, *tests, _return(_ALLOW), _DENY]


def _own_limits() -> list[bytes]:
    """Allow to read and lower the process's own limits, but not those of which the kernel makes a SIGKILL."""
    new_limit = _ARGUMENTS + 8 * 2
    return [
        _argument(0),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        _DENY,
        _argument(1),
        _instruction(_JUMP_EQUAL, _RLIMIT_CPU, 2, 0),
        _instruction(_JUMP_EQUAL, _RLIMIT_RTTIME, 1, 0),
        _return(_ALLOW),
        # Only to be read: without a pointer to new ones.
        _instruction(_LOAD, new_limit),
        _instruction(_JUMP_EQUAL, 0, 0, 2),
        _instruction(_LOAD, new_limit + 4),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        _DENY,
        _return(_ALLOW),
    ]


_BLOCKS: dict[str, list[bytes]] = {
    # New threads, but no new processes. glibc falls back to clone when clone3 does not exist.
    "clone": [_argument(0), _instruction(_JUMP_SET, _CLONE_THREAD, 1, 0), _DENY, _return(_ALLOW)],
    "clone3": [_return(_ERRNO | errno.ENOSYS)],
    "kill": _own_signal(0, 1),
    "tgkill": _own_signal(0, 2),
    "prctl": [_argument(0), *_one_of((_PR_SET_NAME, _PR_GET_NAME))],
    "prlimit64": _own_limits(),
    "ioctl": [
        _argument(1),
        *_one_of((_TCGETS, _FIONREAD, _FIONBIO, _FIOCLEX, _FIONCLEX), errno.ENOTTY),
    ],
    "fcntl": [_argument(1), *_one_of(_FCNTL, errno.EINVAL)],
    # asyncio needs a pair. Only streams: a datagram socket can be made to send elsewhere.
    "socketpair": [
        _argument(0),
        _instruction(_JUMP_EQUAL, _AF_UNIX, 1, 0),
        _DENY,
        _argument(1),
        _instruction(_AND, _SOCK_TYPE_MASK),
        *_one_of((_SOCK_STREAM,)),
    ],
}


def supported() -> bool:
    """Whether this module knows the system calls of the machine."""
    return platform.machine() in _ARCHITECTURES


def build() -> bytes:
    """Assembles the filter, which `Filter` completes with the number of the process.

    Raises:
        OSError: The machine's system calls are not known here.
    """
    if not supported():
        raise OSError(errno.ENOSYS, f"no table of system calls for {platform.machine()}")
    architecture, numbers = _ARCHITECTURES[platform.machine()]
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _return(_KILL_PROCESS),
        _instruction(_LOAD, _NUMBER),
    ]
    if platform.machine() == "x86_64":
        program += [_instruction(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _DENY]
    verdicts: dict[int, list[bytes]] = {}  # what begins at a number
    for name, number in numbers.items():
        block = _BLOCKS[name] if name in syscalls.CONDITIONAL else [_return(_ALLOW)]
        verdicts[number] = block
        verdicts.setdefault(number + 1, [_DENY])
    starts = [(0, [_DENY]), *sorted(verdicts.items())]
    merged = [
        each for last, each in zip([(0, []), *starts], starts, strict=False) if each[1] != last[1]
    ]
    return b"".join([*program, *_search(merged)])


def _search(blocks: list[tuple[int, list[bytes]]]) -> list[bytes]:
    """Go to the block of the last start that is not above the loaded number.

    By halves, not one number after the other: when a filter is installed, the kernel runs it for every number.
    """
    if len(blocks) == 1:
        return blocks[0][1]
    middle = len(blocks) // 2
    below, above = _search(blocks[:middle]), _search(blocks[middle:])
    return [_instruction(_JUMP_GREATER_EQUAL, blocks[middle][0], len(below), 0), *below, *above]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


# Looked up here: a child that does it the first time pays for it.
_prctl = ctypes.CDLL(None, use_errno=True).prctl
_getpid = os.getpid  # a test's process sees another number


class Filter:
    """The assembled filter, in memory that the kernel can read: a child has only to complete it.

    Raises:
        OSError: The machine's system calls are not known here.
    """

    def __init__(self) -> None:
        assembled = build()
        own = struct.pack("<I", _OWN_PID)
        self._buffer = ctypes.create_string_buffer(assembled, len(assembled))
        self._words = memoryview(self._buffer).cast("B").cast("I")
        self._own_pid_at = [found.start() // 4 for found in re.finditer(re.escape(own), assembled)]
        program = _Program(len(assembled) // 8, ctypes.cast(self._buffer, ctypes.c_void_p))
        self._program = ctypes.pointer(program)

    def install(self) -> None:
        """Put the filter in force for this process, for good.

        Raises:
            OSError: The kernel refuses, for example because it has no seccomp.
        """
        pid = _getpid()
        for place in self._own_pid_at:
            self._words[place] = pid
        if _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the kernel refuses the seccomp filter")
