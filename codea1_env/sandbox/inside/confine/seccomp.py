"""A seccomp filter for one child, assembled here: no library to install and nothing to compile.

No new processes, no program execution, no sockets but a private pair, no signals to others, no locks on files that
others see, nothing that inspects or changes another process, the machine or the sandbox. Refused calls fail with EPERM,
so that a program sees an ordinary `PermissionError`. Calls of another architecture end the process.

An allow-list: a call without a number in here, and what future kernels add, is refused. Numbers are those of the
kernel's own headers (arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct

from .privileges import check, libc

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000

_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7,
    "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
    "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16, "pread64": 17, "pwrite64": 18,
    "readv": 19, "writev": 20, "access": 21, "pipe": 22, "select": 23, "sched_yield": 24,
    "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28, "dup": 32, "dup2": 33, "pause": 34,
    "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "sendfile": 40,
    "sendto": 44, "recvfrom": 45, "shutdown": 48, "getsockname": 51, "socketpair": 53,
    "setsockopt": 54, "getsockopt": 55, "clone": 56, "exit": 60, "wait4": 61, "kill": 62,
    "uname": 63, "fcntl": 72, "flock": 73, "fsync": 74, "fdatasync": 75, "ftruncate": 77,
    "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81, "rename": 82, "mkdir": 83,
    "rmdir": 84, "unlink": 87, "readlink": 89, "umask": 95, "gettimeofday": 96, "getrlimit": 97,
    "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107,
    "getegid": 108, "getppid": 110, "getpgrp": 111, "getgroups": 115, "getresuid": 118,
    "getresgid": 120, "getpgid": 121, "getsid": 124, "rt_sigpending": 127, "rt_sigtimedwait": 128,
    "rt_sigsuspend": 130, "sigaltstack": 131, "statfs": 137, "fstatfs": 138, "prctl": 157,
    "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "epoll_create": 213,
    "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219, "fadvise64": 221,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "waitid": 247, "openat": 257,
    "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "readlinkat": 267,
    "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273,
    "get_robust_list": 274, "epoll_pwait": 281, "eventfd": 284, "fallocate": 285, "eventfd2": 290,
    "epoll_create1": 291, "dup3": 292, "pipe2": 293, "preadv": 295, "pwritev": 296,
    "prlimit64": 302, "getcpu": 309, "renameat2": 316, "getrandom": 318, "copy_file_range": 326,
    "statx": 332, "rseq": 334, "clone3": 435, "close_range": 436,
    "faccessat2": 439,
}  # fmt: skip

_AARCH64 = {
    "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22,
    "dup": 23, "dup3": 24, "fcntl": 25, "ioctl": 29, "flock": 32, "mkdirat": 34, "unlinkat": 35,
    "renameat": 38, "statfs": 43, "fstatfs": 44, "ftruncate": 46, "fallocate": 47, "faccessat": 48,
    "chdir": 49, "fchdir": 50, "openat": 56, "close": 57, "pipe2": 59, "getdents64": 61,
    "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67,
    "pwrite64": 68, "preadv": 69, "pwritev": 70, "sendfile": 71, "pselect6": 72, "ppoll": 73,
    "readlinkat": 78, "newfstatat": 79, "fstat": 80, "fsync": 82, "fdatasync": 83, "exit": 93,
    "exit_group": 94, "waitid": 95, "set_tid_address": 96, "futex": 98, "set_robust_list": 99,
    "get_robust_list": 100, "nanosleep": 101, "getitimer": 102, "setitimer": 103,
    "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123,
    "sched_yield": 124, "restart_syscall": 128, "kill": 129, "tgkill": 131, "sigaltstack": 132,
    "rt_sigsuspend": 133, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigpending": 136,
    "rt_sigtimedwait": 137, "rt_sigreturn": 139, "getresuid": 148, "getresgid": 150, "times": 153,
    "getpgid": 155, "getsid": 156, "getgroups": 158, "uname": 160, "getrlimit": 163,
    "getrusage": 165, "umask": 166, "prctl": 167, "getcpu": 168, "gettimeofday": 169,
    "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177,
    "gettid": 178, "sysinfo": 179, "socketpair": 199, "getsockname": 204, "sendto": 206,
    "recvfrom": 207, "setsockopt": 208, "getsockopt": 209, "shutdown": 210, "brk": 214,
    "munmap": 215, "mremap": 216, "clone": 220, "mmap": 222, "fadvise64": 223, "mprotect": 226,
    "msync": 227, "mincore": 232, "madvise": 233, "wait4": 260, "prlimit64": 261,
    "renameat2": 276, "getrandom": 278, "copy_file_range": 285, "statx": 291,
    "rseq": 293, "clone3": 435, "close_range": 436, "faccessat2": 439,
}  # fmt: skip

_ARCHITECTURES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

# All that pthread_create asks for, in glibc and in musl: CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS,
# PARENT_SETTID, CHILD_CLEARTID; musl adds DETACHED. Nothing else: with CLONE_VFORK a thread would stand in state D.
_THREAD_FLAGS = (0x003D0F00, 0x007D0F00)
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_TCGETS, _FIONREAD, _FIONBIO, _FIOCLEX, _FIONCLEX = 0x5401, 0x541B, 0x5421, 0x5451, 0x5450
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ.
# Not F_SETOWN and F_SETSIG, with which a process can send signals.
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)
# F_GETLK, F_SETLK, F_SETLKW: for sqlite and the like, where a program has files of its own. Others see locks, too.
_LOCKS = (5, 6, 7)
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_SOL_SOCKET = 1
_SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF, _SO_PROTOCOL, _SO_DOMAIN = 3, 4, 7, 8, 38, 39
_SO_REUSEADDR, _SO_RCVTIMEO, _SO_SNDTIMEO = 2, 20, 21
# Of `open`: O_TRUNC with an access mode (O_RDONLY, or 3) for which Landlock up to version 2 does not ask who may write.
_MODE_AND_TRUNCATE, _TRUNCATE_UNASKED = 0o1003, (0o1000, 0o1003)
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


def _any_of(values: tuple[int, ...]) -> list[bytes]:
    """Skip the instruction that follows if the loaded word is one of the values."""
    count = len(values)
    return [_instruction(_JUMP_EQUAL, value, count - index) for index, value in enumerate(values)]


def _one_of(values: tuple[int, ...], otherwise: int = errno.EPERM) -> list[bytes]:
    """Allow if the loaded word is one of the values."""
    return [*_any_of(values), _return(_ERRNO | otherwise), _return(_ALLOW)]


def _own_signal(process: int, number: int) -> list[bytes]:
    """Allow signals to the process itself, but those that nobody can catch: who dies of one was killed from outside."""
    to_itself = [_argument(process), _instruction(_JUMP_EQUAL, _OWN_PID, 1, 0), _DENY]
    return [*to_itself, _argument(number), *_any_of(_UNCATCHABLE), _return(_ALLOW), _DENY]


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


def _opening(flags: int) -> list[bytes]:
    """Allow to open files, but not to empty one without the right to write to it."""
    empties = [_argument(flags), _instruction(_AND, _MODE_AND_TRUNCATE)]
    return [*empties, *_any_of(_TRUNCATE_UNASKED), _return(_ALLOW), _DENY]


def _option(*names: int) -> list[bytes]:
    """Allow some options of sockets, of those that every socket has."""
    of_all = [_argument(1), _instruction(_JUMP_EQUAL, _SOL_SOCKET, 1, 0), _DENY]
    return [*of_all, _argument(2), *_one_of(names)]


# Calls that the filter allows or refuses by their arguments.
_BLOCKS: dict[str, list[bytes]] = {
    # New threads, but no new processes. glibc falls back to clone when clone3 does not exist.
    "clone": [_argument(0), *_one_of(_THREAD_FLAGS)],
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
    "flock": [_DENY],
    "open": _opening(1),
    "openat": _opening(2),
    "getsockopt": _option(_SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF, _SO_PROTOCOL, _SO_DOMAIN),
    "setsockopt": _option(_SO_REUSEADDR, _SO_RCVTIMEO, _SO_SNDTIMEO),
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

_WITH_LOCKS: dict[str, list[bytes]] = {
    "fcntl": [_argument(1), *_one_of((*_FCNTL, *_LOCKS), errno.EINVAL)],
    "flock": [_return(_ALLOW)],
}


def build(*, locks: bool = False) -> bytes:
    """Assembles the filter, which `Filter` completes with the number of the process."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    architecture, numbers = _ARCHITECTURES[machine]
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _return(_KILL_PROCESS),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [_instruction(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _DENY]
    blocks = {**_BLOCKS, **(_WITH_LOCKS if locks else {})}
    verdicts: dict[int, list[bytes]] = {}  # what begins at a number
    for name, number in numbers.items():
        verdicts[number] = blocks.get(name, [_return(_ALLOW)])
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


_prctl = libc.prctl  # looked up here: a child that does it the first time pays for it
_getpid = os.getpid  # a test's process sees another number


class Filter:
    """The assembled filter, in memory that the kernel can read: a child has only to complete it."""

    def __init__(self, *, locks: bool) -> None:
        assembled = build(locks=locks)
        own = struct.pack("<I", _OWN_PID)
        self._buffer = ctypes.create_string_buffer(assembled, len(assembled))
        self._words = memoryview(self._buffer).cast("B").cast("I")
        self._own_pid_at = [found.start() // 4 for found in re.finditer(re.escape(own), assembled)]
        program = _Program(len(assembled) // 8, ctypes.cast(self._buffer, ctypes.c_void_p))
        self._program = ctypes.pointer(program)

    def install(self) -> None:
        """Put the filter in force for this process, for good."""
        pid = _getpid()
        for place in self._own_pid_at:
            self._words[place] = pid
        result = _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._program, 0, 0)
        check(result, "the kernel refuses the seccomp filter")
