"""The worker process: a slim, warmed-up interpreter that forks one child per run.

It never parses or holds job data, since every later child would inherit it: a request on the control
socket is one byte and some descriptors, and the child reads its job itself. Single-threaded.
A worker forks children for calls (v), or those for everything else (c): the former need much less memory.

Requests (first byte), and the descriptors that come with them:
    c   fork a process for a script, or for a program with its tests: job, reply, output, errors
    v   fork a process for a program whose function is only called: job, reply
    k   kill and reap the process whose number follows, and everything that it left behind
Answers: the child's number with a pidfd; or wait status and CPU seconds.
"""

from __future__ import annotations

import _socket
import contextlib
import errno
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import Any

from ..confine import namespaces, probes
from ..confine.confinement import Confinement, Settings
from ..confine.privileges import (
    MAX_THREADS,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    prctl,
)
from ..start import no_hooks
from . import running

_NUMBER = struct.Struct("<i")
_ENDED = struct.Struct("<idq")
_ROOM_FOR_FDS = _socket.CMSG_SPACE(8 * _NUMBER.size)
_CHILD_FIRST_FD = 3
_MOST_DESCRIPTORS = 256
_SHORTAGES = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)
_MOST_SETTINGS = 1 << 18
_MOST_DIGITS = 50_000
"""Of an integer that is printed or read: as the evaluator of LiveCodeBench has it."""
_FILES_SEEN = (
    "names, sizes and times of all files of the machine (stat); to read one of Python's may change its access time, "
    "which later programs can see"
)
_THREADS_OF_ALL = (
    "not limited: the kernel counts them with those of this user's other processes (ulimit -u), so that a program "
    "can take them from others; it needs Linux 5.14 and user namespaces, or root and Python where others may read it"
)


# The modules that a worker imports once, so that no run pays for them.

_PREIMPORTED = (
    "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "csv",
    "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq",
    "inspect", "io", "itertools", "json", "math", "numbers", "operator", "os", "pathlib", "random", "re",
    "statistics", "string", "sys", "textwrap", "time", "types", "typing", "unittest", "uuid",
)  # fmt: skip

_COMMON = (
    "bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "os", "re", "string",
    "sys", "time", "types", "typing",
)  # fmt: skip
"""Of these, what nearly every program uses that is only called: each module more makes every fork dearer."""

_PARTS = {"matplotlib": ("matplotlib.pyplot",)}
"""Parts of a package that its programs use, that take long to import, and that come with it only when asked."""

_PYTEST = (
    "asyncio", "doctest", "unittest.mock", "_pytest.config", "_pytest.python", "_pytest.terminal", "_pytest.debugging",
    "_pytest.unittest", "_pytest.capture", "_pytest.skipping", "_pytest.legacypath", "_pytest.tmpdir", "_pytest.monkeypatch",
    "_pytest.recwarn", "_pytest.assertion", "_pytest.setuponly", "_pytest.setupplan", "_pytest.stepwise", "_pytest.warnings",
    "_pytest.unraisableexception", "_pytest.threadexception", "_pytest.logging", "_pytest.reports", "_pytest.subtests",
    "_pytest.cacheprovider", "_pytest.doctest", "_pytest.junitxml", "_pytest.pastebin", "_pytest.faulthandler", ".pytest_driver",
)  # fmt: skip
"""What workers import that run tests by pytest, before they are confined."""


class AllowedPackages:
    """A finder that finds only the packages outside the standard library that a sandbox allows."""

    def __init__(self, folders: dict[str, str], metadata: list[str]) -> None:
        self.folders = folders
        self.metadata = metadata

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Find a top-level package; its submodules are found through the package's own path."""
        folder = self.folders.get(name)
        if folder is None:
            return None
        from importlib.util import spec_from_file_location

        # Not by the folder's list of names: a confined process may not see what else is there.
        for file in (f"{folder}/{name}/__init__.py", f"{folder}/{name}.py"):
            if os.path.isfile(file):
                inside = [os.path.dirname(file)] if file.endswith("__init__.py") else None
                return spec_from_file_location(name, file, submodule_search_locations=inside)
        return PathFinder.find_spec(name, [folder])

    def find_distributions(self, context: Any) -> Iterator[object]:
        """Yield what `importlib.metadata` knows of them."""
        from importlib.metadata import PathDistribution  # whoever asks has imported it
        from pathlib import Path

        for each in map(PathDistribution, map(Path, self.metadata)):
            if context.name is None or _alike(each.name) == _alike(context.name):
                yield each


def _alike(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


@contextlib.contextmanager
def _folder_to_import_in(settings: Settings) -> Iterator[None]:
    """Give a folder that packages may write to while they are imported: some insist on one, but not numpy."""
    if set(settings.imported) <= {"numpy"}:
        yield
        return
    import tempfile  # only here: it is large

    place = namespaces.SCRATCH if settings.level == "namespaces" else None
    with contextlib.ExitStack() as stack:
        try:
            made = tempfile.TemporaryDirectory(prefix="codea1-import-", dir=place)
        except OSError:  # nobody may write anywhere: most packages do without
            yield
            return
        folder = stack.enter_context(made)
        home = os.environ["HOME"]
        os.environ["TMPDIR"] = os.environ["HOME"] = folder
        try:
            yield
        finally:
            os.environ["HOME"] = home
            del os.environ["TMPDIR"]
            tempfile.tempdir = None


def _preimport(settings: Settings) -> None:
    modules = _COMMON if settings.calls_only else _PREIMPORTED
    with no_hooks(), _folder_to_import_in(settings):
        for name in (
            *modules,
            *(part for each in settings.imported for part in (each, *_PARTS.get(each, ()))),
        ):
            try:
                importlib.import_module(name)
            except Exception:  # built without it, or broken: the program's own import says so
                continue


def _seed_generators() -> None:
    """Start every run of every worker with the same random numbers: one sequence for each hash seed."""
    seed = int(os.environ["PYTHONHASHSEED"])
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _own_null() -> int:
    """Not the worker's own: flags of an open file, and locks, would be there for the next program."""
    return os.open("/dev/null", os.O_RDWR)


def _keep_only(one: int, other: int) -> None:
    """Close all descriptors but two; what is printed goes nowhere."""
    low, high = (one, other) if one < other else (other, one)
    closerange = os.closerange
    closerange(0, low)
    closerange(low + 1, high)
    closerange(high + 1, _MOST_DESCRIPTORS)
    null = _own_null()
    os.dup(null)
    os.dup(null)


def _become_child(descriptors: list[int]) -> list[int]:
    """Move the pipes of job and replies to 3 and 4, and the run's streams to 1 and 2."""
    # First out of the way of the target numbers, then into place.
    free = max(descriptors) + 1
    moved = [os.dup2(number, free + index, False) for index, number in enumerate(descriptors)]
    null = _own_null()
    os.dup2(null, 0)
    os.close(null)
    job, reply, output, errors = moved
    os.dup2(output, 1)
    os.dup2(errors, 2)
    return [os.dup2(job, _CHILD_FIRST_FD, False), os.dup2(reply, _CHILD_FIRST_FD + 1, False)]


def _strays() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
        return [int(word) for word in file.read().split()]


class Zygote:
    """Serves requests until the supervisor closes the control socket."""

    def __init__(
        self, control: _socket.socket, confinement: Confinement, main: Callable[..., None]
    ) -> None:
        self.control = control
        self.main = main
        self.confinement = confinement
        self.live: set[int] = set()
        # Of those that tried the confinement. Not our own, which begins with that of who started us.
        self.memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        settings = confinement.settings
        # From "kernel" on children can start no process, and only those with folders can write a file.
        self.leaves_something = settings.scratch or not settings.at_least("kernel")

    def serve(self) -> None:
        """Run the request loop."""
        # A supervisor that is killed may be waiting for an answer, or have one that it has not read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while self.serve_one():
                pass
        for pid in list(self.live):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.tidy()

    def serve_one(self) -> bool:
        """Do what the next request asks for; False if there will be none."""
        # As socket.recv_fds does it, with less in between: this process runs its code anew after each fork.
        request, ancillary, _, _ = self.control.recvmsg(16, _ROOM_FOR_FDS)
        if not request:
            return False
        if request[:1] == b"k":
            self.end(_NUMBER.unpack(request[1:])[0])
        else:
            numbers = ancillary[0][2] if ancillary else b""
            self.fork(request[:1], list(memoryview(numbers).cast("i")))
        return True

    def fork(self, role: bytes, descriptors: list[int]) -> None:
        """Fork one child and answers with its number and a pidfd."""
        parent = os.getpid()
        self.confinement.prepare()
        pid = os.fork()
        if pid == 0:
            try:
                if role == b"v":
                    _keep_only(*descriptors)
                    self.confinement.put_on(parent)
                else:
                    self.control.close()
                    descriptors = _become_child(descriptors)
                    self.confinement.put_on(parent)
                    os.closerange(max(descriptors) + 1, _MOST_DESCRIPTORS)
                self.main(self.confinement.seal, *descriptors)
            finally:
                os._exit(70)
        for descriptor in descriptors:
            os.close(descriptor)
        self.live.add(pid)
        handle = os.pidfd_open(pid)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _NUMBER.pack(handle))]
        self.control.sendmsg([_NUMBER.pack(pid)], rights)
        os.close(handle)

    def end(self, pid: int) -> None:
        """Kill one child, waits for it and answers how it had ended."""
        if pid not in self.live:
            raise RuntimeError(f"{pid} is not a child of this worker")
        os.kill(pid, signal.SIGKILL)  # no effect on a child that has ended already
        _, status, usage = os.wait4(pid, 0)
        self.live.discard(pid)
        if self.leaves_something:
            self.tidy()
        grown = usage.ru_maxrss - self.memory
        cpu_time = usage.ru_utime + usage.ru_stime
        self.control.send(_ENDED.pack(status, cpu_time, max(0, grown) << 10))

    def tidy(self) -> None:
        """End what the run has left behind, and take its folders away. We inherit all its processes."""
        if not self.confinement.settings.at_least("kernel"):  # where no process can be started
            while strays := [pid for pid in _strays() if pid not in self.live]:
                for pid in strays:
                    os.kill(pid, signal.SIGKILL)
                for pid in strays:
                    os.waitpid(pid, 0)
        if self.confinement.settings.scratch and not self.live:
            self.confinement.clean()


def _enter_namespaces(settings: Settings, control: _socket.socket) -> bool:
    """Go on as the first process of new namespaces; whether it may change its children's user."""
    in_user_namespace = namespaces.enter()
    starter = os.pidfd_open(os.getpid())
    pid = os.fork()
    if pid:
        control.close()
        _, status = os.waitpid(pid, 0)
        os._exit(0 if status == 0 else 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # If it was killed before, nobody waits for us. getppid() cannot tell: there is no number for it in here.
    if select.select([starter], [], [], 0)[0]:
        os._exit(1)
    os.close(starter)
    namespaces.isolate_files(settings.mounts, os.uname().machine)
    if [name for _, name in _socket.if_nameindex()] not in ([], ["lo"]):
        raise OSError("the network namespace has interfaces of the machine")
    return not in_user_namespace


def _prepare(control: _socket.socket, settings: Settings) -> tuple[Confinement, dict[str, str]]:
    may_change_user, own_users = True, False
    if settings.level == "namespaces":
        may_change_user = _enter_namespaces(settings, control)
        own_users = not may_change_user and namespaces.counts_threads()
    elif os.geteuid() != 0 and namespaces.counts_threads():
        own_users = namespaces.enter_own_users()
    # Not before: a process that cannot be looked at may not write its own user map.
    prctl(PR_SET_DUMPABLE, 0)
    os.environ.pop("LD_BIND_NOW", None)  # it was for this interpreter
    _preimport(settings)
    _seed_generators()
    confinement = Confinement(settings, may_change_user, own_users)
    confinement.harden_worker()
    can_read = probes.CONTROLS[0]
    if confinement.change_user and probes.run(confinement).get(can_read) != "allowed":
        confinement.keep_user()
    confinement.restrict_worker()
    if settings.level == "namespaces":  # again: another user means that it is forgotten
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    found = probes.run(confinement)
    wrong = probes.faults(settings.level, found)
    if wrong:
        raise OSError("; ".join(wrong))
    found["children's user"] = (
        "a number of their own" if confinement.change_user else "the worker's"
    )
    found["children's threads"] = (
        f"at most {MAX_THREADS}, counted apart" if confinement.counts_threads else _THREADS_OF_ALL
    )
    if settings.level == "kernel":
        found["what programs see of files"] = _FILES_SEEN
    return confinement, found


def main(arguments: list[str]) -> None:
    """Start the worker. Argument: the number of the control socket, on which the settings come first, as JSON."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Of its own memory nothing is limited but what cannot be changed; of its children's, what each job says.
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # A Ctrl-C in the terminal is the supervisor's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = _socket.socket(fileno=int(arguments[0]))
    settings = Settings(**json.loads(control.recv(_MOST_SETTINGS)))
    # What children do. What they import is there before the worker is confined.
    finder: Any = AllowedPackages(settings.packages, settings.metadata)
    sys.meta_path.append(finder)
    with no_hooks():
        for name in _PYTEST if settings.testing else ():
            importlib.import_module(name, __package__)
    if settings.calls_only:
        of_child: Callable[..., None] = running.main
    else:
        of_child = importlib.import_module(".candidate", __package__).main
    try:
        confinement, found = _prepare(control, settings)
    except OSError as error:
        # For want of something at this moment, or because the machine does not offer the level.
        kind = "failed" if error.errno in _SHORTAGES else "error"
        control.send(json.dumps({kind: str(error)}).encode())
        os._exit(1)
    sys.argv[:] = sys.orig_argv[:] = [""]
    sys.set_int_max_str_digits(_MOST_DIGITS)
    running.know_numpy()
    if settings.calls_only:
        running.rehearse()
    gc.collect()
    gc.freeze()
    with contextlib.suppress(BrokenPipeError):  # then there is nothing to serve
        control.send(json.dumps({"found": found}).encode())
    Zygote(control, confinement, of_child).serve()
