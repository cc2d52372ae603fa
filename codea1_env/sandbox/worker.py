"""The supervisor's side of one worker: starts it, asks it to fork, and ends what it has forked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .jobs import WorkerKind
from .packages import settings
from .results import LevelUnavailableError, WorkerDiedError

_START = Path(__file__).parent / "inside" / "start.py"
_NUMBER = struct.Struct("<i")
_ENDED = struct.Struct("<idq")
_START_TIMEOUT = 60.0
_ANSWER_TIMEOUT = 30.0
_HASH_SEEDS = ("0", "1000003", "2000003", "3000017")


def environment(hash_seed: int) -> dict[str, str]:
    """All that a helper process sees of the environment: nothing of ours, least of all tokens."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": "/nonexistent",
        "PYTHONHASHSEED": _HASH_SEEDS[hash_seed],
        "LD_BIND_NOW": "1",  # else every child looks up the functions of the C library anew
        # numpy must not start threads: the worker forks.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def start_helper(
    module: str, *descriptors: int, hash_seed: int = 0, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a module of `inside` in a process of its own, which gets these descriptors and nothing else of ours."""
    # No site-packages, no user folder, no script folder on the path. Not `-I`, which would ignore the fixed hash seed.
    return subprocess.Popen(
        [sys.executable, "-s", "-S", "-P", "-B", str(_START), module, *map(str, descriptors)],
        pass_fds=descriptors,
        env=environment(hash_seed),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Ended:
    """How a run's process ended."""

    code: int
    """Its exit status, or minus the signal that ended it."""
    cpu_time: float
    grown: int = 0
    """Bytes of memory that it had at most, beyond what its worker had."""
    reached_backstop: bool = False
    """Whether the kernel ended it for its CPU time, before the supervisor had seen it."""


def _outer_pid(pidfd: int) -> int:
    """Return the process number on this side of a process number namespace."""
    descriptor = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY)  # quicker than a file object
    try:
        return int(os.read(descriptor, 4096).split(b"\nPid:", 1)[1].split(None, 1)[0])
    finally:
        os.close(descriptor)


@dataclass
class ChildProcess:
    """A forked child: its number as its worker knows it and as we do; a handle that is readable when it has ended."""

    inner_pid: int
    pid: int
    pidfd: int


@dataclass
class WorkerAnswer:
    """What a worker will answer to a request; without data until it has been waited for."""

    data: bytes = b""
    handle: int = -1


class Worker:
    """One warmed-up interpreter that forks a fresh child for each run.

    Attributes:
        found: What its first child tried, against its confinement, and what happened.
        confines_signals: Whether no child can kill or stop itself: who does not end by itself, somebody else has ended.
        ran_out: Whether a run was stopped by a limit of CPU time, since somebody has set this to False.
        signalled: Likewise, whether a signal has ended a process of a run.
        starved: Likewise, whether a process was killed that had much memory.

    Raises:
        LevelUnavailableError: The machine does not offer what the level needs.
        WorkerDiedError: The process did not start.
    """

    def __init__(self, kind: WorkerKind, level: str, packages: Mapping[str, str]) -> None:
        self.kind = kind
        self.ran_out = self.signalled = self.starved = False
        self.has_folder = kind.scratch and level == "namespaces"
        self._own_process_tree = level == "namespaces"
        self.confines_signals = level in ("kernel", "namespaces")
        self._unanswered: deque[WorkerAnswer] = deque()
        self._unclaimed: set[int] = set()  # handles that nobody has asked for yet
        self._last_end: WorkerAnswer | None = None
        chosen = settings(kind, level, packages)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = start_helper(
                "run.zygote", theirs.fileno(), hash_seed=kind.hash_seed, stderr=subprocess.PIPE
            )
        self._control.settimeout(_START_TIMEOUT)
        try:
            self._control.send(chosen.encode())
            report = json.loads(self._receive(1 << 16)[0])
            if "error" in report:
                raise LevelUnavailableError(report["error"])
            if "failed" in report:
                raise WorkerDiedError(f"a worker did not start: {report['failed']}")
        except BaseException:
            self.close()
            raise
        self.found: dict[str, str] = report["found"]
        self._control.settimeout(_ANSWER_TIMEOUT)

    @property
    def pid(self) -> int:
        """The number of the worker process."""
        return self._process.pid

    def _receive(self, size: int) -> tuple[bytes, list[int]]:
        try:
            data, handles, _, _ = socket.recv_fds(self._control, size, 1)
        except OSError as error:
            raise WorkerDiedError(f"a worker does not answer: {error}") from None
        if not data:
            raise WorkerDiedError(f"a worker process has ended: {self._last_words()}")
        return data, handles

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it closed its socket"
        os.set_blocking(self._process.stderr.fileno(), False)
        words = self._process.stderr.read() or b""
        return f"status {self._process.returncode}, {words[-1000:].decode(errors='replace')}"

    def _wait(self, answer: WorkerAnswer) -> None:
        """Receive answers, which come in the order of the requests, until this one is there."""
        while not answer.data:
            data, handles = self._receive(64)
            first = self._unanswered.popleft()
            first.data = data
            if handles:
                first.handle = handles[0]
                self._unclaimed.add(first.handle)

    def ask(self, request: bytes, descriptors: list[int]) -> WorkerAnswer:
        """Send a request (see `inside.run.zygote`) with a new child's ends of its pipes; do not wait for the answer."""
        try:
            socket.send_fds(self._control, [request], descriptors)
        except OSError as error:
            raise WorkerDiedError(f"a worker does not answer: {error}") from None
        answer = WorkerAnswer()
        self._unanswered.append(answer)
        return answer

    def forked(self, answer: WorkerAnswer) -> ChildProcess:
        """Return the child that was asked for."""
        self._wait(answer)
        self._unclaimed.discard(answer.handle)
        (number,) = _NUMBER.unpack(answer.data)
        pid = _outer_pid(answer.handle) if self._own_process_tree else number
        return ChildProcess(number, pid, answer.handle)

    def end(self, process: ChildProcess) -> WorkerAnswer:
        """Ask for a child to be killed, if it still runs, and reaped; closes its handle."""
        os.close(process.pidfd)
        self._last_end = self.ask(b"k" + _NUMBER.pack(process.inner_pid), [])
        return self._last_end

    def wait_for_ends(self) -> None:
        """Wait until all children that were to be ended have ended, and their folders are gone."""
        if self._last_end is not None:
            self._wait(self._last_end)

    def ended(self, answer: WorkerAnswer) -> Ended:
        """How the child that was to be ended had ended."""
        self._wait(answer)
        status, cpu_time, grown = _ENDED.unpack(answer.data)
        return Ended(os.waitstatus_to_exitcode(status), cpu_time, grown)

    def close(self) -> None:
        """End the worker and everything that it has forked."""
        # It kills its children and exits. Also where a forked copy of this process holds the socket, too.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        while self._unclaimed:
            os.close(self._unclaimed.pop())
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
