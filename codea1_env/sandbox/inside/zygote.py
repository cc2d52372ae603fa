"""The worker process: a slim, warmed-up interpreter that forks one child per run.

It never parses or holds job data, since every later child would inherit it: a request on the control
socket is one byte and some descriptors, and the child reads its job itself. Single-threaded.

Requests (first byte), and the descriptors that come with them:
    c   fork a process for a candidate: job, reply, output [, requests from a test, replies to it]
    t   fork a process for a test: job, reply, output, requests to a candidate, replies from it
    k   kill and reap the process whose number follows, and everything that it left behind
Answers: the child's number with a pidfd; or wait status, CPU seconds and peak memory.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import socket
import struct
import sys

_NUMBER = struct.Struct("<i")
_ENDED = struct.Struct("<idq")
_CHILD_FIRST_FD = 3
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


class AllowedPackages:
    """A finder that finds only the packages outside the standard library that a sandbox allows."""

    def __init__(self, folders: dict[str, str]) -> None:
        self.folders = folders

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Finds a top-level package; its submodules are found through the package's own path."""
        from importlib.machinery import PathFinder

        folder = self.folders.get(name)
        return PathFinder.find_spec(name, [folder]) if folder is not None else None


def _preimport(packages: dict[str, str]) -> None:
    import importlib

    from .preimported import PREIMPORTED

    sys.meta_path.append(AllowedPackages(packages))  # type: ignore[arg-type]
    for name in (*PREIMPORTED, *packages):
        try:
            importlib.import_module(name)
        except ImportError:  # built without it, or broken: the program's own import says so
            continue


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def apply_limits(memory: int, cpu_seconds: int) -> None:
    """The resource limits of one child. CPU time here is only the backstop of the supervisor's clock."""
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CPU, cpu_seconds)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 1 << 20)
    _limit(resource.RLIMIT_NOFILE, 64)
    _limit(resource.RLIMIT_NPROC, 64)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)


def forbid_core_and_inspection() -> None:
    """No setuid gain, no ptrace or /proc access by processes of the same user."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_DUMPABLE, 0)


def _become_child(descriptors: list[int]) -> list[int]:
    """Moves the run's descriptors to 3, 4, ...; output to 1 and 2; closes all others."""
    job, reply, output, *peers = descriptors
    ordered = [job, reply, *peers]
    # First out of the way of the target numbers, then into place.
    high = [os.dup2(number, 200 + index, False) for index, number in enumerate([output, *ordered])]
    os.dup2(high[0], 1)
    os.dup2(high[0], 2)
    for index, number in enumerate(high[1:]):
        os.dup2(number, _CHILD_FIRST_FD + index, False)
    os.closerange(_CHILD_FIRST_FD + len(ordered), 256)
    return list(range(_CHILD_FIRST_FD, _CHILD_FIRST_FD + len(ordered)))


def _child(role: bytes, descriptors: list[int], parent: int) -> None:
    from . import candidate, tester

    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    forbid_core_and_inspection()
    channel = _become_child(descriptors)
    (tester.main if role == b"t" else candidate.main)(*channel)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


class Zygote:
    """Serves requests until the supervisor closes the control socket."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.live: set[int] = set()

    def serve(self) -> None:
        """The request loop."""
        while True:
            request, descriptors, _, _ = socket.recv_fds(self.control, 16, 8)
            if not request:
                break
            if request[:1] in (b"c", b"t"):
                self.fork(request[:1], descriptors)
            else:
                self.end(_NUMBER.unpack(request[1:])[0])
        for pid in list(self.live):
            os.kill(pid, signal.SIGKILL)
        self.kill_strays(spare=set())

    def fork(self, role: bytes, descriptors: list[int]) -> None:
        """Forks one child and answers with its number and a pidfd."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self.control.close()
                _child(role, descriptors, parent)
            finally:
                os._exit(70)
        for descriptor in descriptors:
            os.close(descriptor)
        self.live.add(pid)
        handle = os.pidfd_open(pid)
        socket.send_fds(self.control, [_NUMBER.pack(pid)], [handle])
        os.close(handle)

    def end(self, pid: int) -> None:
        """Kills one child, waits for it and answers how it had ended."""
        if pid not in self.live:
            raise RuntimeError(f"{pid} is not a child of this worker")
        os.kill(pid, signal.SIGKILL)  # no effect on a child that has ended already
        _, status, usage = os.wait4(pid, 0)
        self.live.discard(pid)
        self.kill_strays(spare=self.live)
        cpu = usage.ru_utime + usage.ru_stime
        self.control.send(_ENDED.pack(status, cpu, usage.ru_maxrss * 1024))

    def kill_strays(self, spare: set[int]) -> None:
        """Ends processes that a child has started and left behind; as subreaper we inherit them."""
        while strays := [pid for pid in _children() if pid not in spare]:
            for pid in strays:
                os.kill(pid, signal.SIGKILL)
            for pid in strays:
                os.waitpid(pid, 0)


def main(arguments: list[str]) -> None:
    """Starts the worker. Arguments: the control socket, then NAME=FOLDER of each allowed package."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    # A Ctrl-C in the terminal is the supervisor's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from . import candidate, codec, tester  # noqa: F401 - loaded once, for all children

    _preimport(dict(item.split("=", 1) for item in arguments[1:]))
    control = socket.socket(fileno=int(arguments[0]))
    gc.collect()
    gc.freeze()
    control.send(b"ready")
    Zygote(control).serve()
