"""Tries forbidden acts in a confined child: a layer counts only if it is seen to work."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
from collections.abc import Callable

from ..codec import frames
from . import privileges
from .confinement import Confinement

CONTROLS = ("read the standard library", "start a thread")
SCRATCH = "write to the scratch folder"


def _attempt(act: Callable[[], object]) -> str:
    try:
        act()
    except OSError as error:
        return f"denied ({errno.errorcode.get(error.errno or 0, str(error))})"
    except RuntimeError as error:  # "can't start new thread"
        return f"denied ({error})"
    return "allowed"


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()


def _write_scratch() -> None:
    with open("probe", "w") as file:
        file.write("x")
    os.unlink("probe")


def _lock() -> None:
    with open("/dev/null", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _empty() -> None:
    os.close(os.open("/dev/null", os.O_RDONLY | os.O_TRUNC))


def _thread() -> None:
    import threading  # here, since what a worker has imported makes forks dearer

    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def _without_new_privileges() -> None:
    if privileges.prctl(privileges.PR_GET_NO_NEW_PRIVS) == 1:
        raise PermissionError(errno.EPERM, "no_new_privs")


def acts_of(
    level: str, parent: int, scratch: bool = False
) -> dict[str, tuple[str, Callable[[], object]]]:
    """Return the acts to try at a level: what is tried -> the layer that must refuse it, and how to try it.

    The controls, which must succeed, have the layer "".
    """
    acts: dict[str, tuple[str, Callable[[], object]]] = {
        CONTROLS[0]: ("", lambda: _read(os.__file__)),
        CONTROLS[1]: ("", _thread),
        "raise a resource limit": ("rlimits", _raise_limit),
        "become root": ("privileges", lambda: os.setgroups([0])),
        "gain privileges through a program": ("no_new_privs", _without_new_privileges),
    }
    if scratch:
        acts[SCRATCH] = ("", _write_scratch)
        acts["write beside the scratch folder"] = ("Landlock", lambda: os.mkdir("../probe"))
    elif level in ("kernel", "namespaces"):
        acts["write a file"] = ("Landlock", _write_scratch)
        acts["lock a file that others see"] = ("seccomp", _lock)
    if level in ("kernel", "namespaces"):
        acts |= {
            "start a process": ("seccomp", _fork),
            "empty a file that it opens to read": ("seccomp", _empty),
            "open a socket": ("seccomp", lambda: __import__("_socket").socket().close()),
            "signal the worker": ("seccomp", lambda: os.kill(parent, signal.SIG_DFL)),
            "read /etc/passwd": ("Landlock", lambda: _read("/etc/passwd")),
            "list /": ("Landlock", lambda: os.listdir("/")),
        }
    if level == "namespaces":
        acts["see the machine's processes"] = ("pid namespace", _own_process_tree)
        acts["find the machine's files"] = ("mount namespace", lambda: os.stat("/etc/passwd"))
    return acts


def _raise_limit() -> None:
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except ValueError as error:  # what Python makes of EPERM
        raise PermissionError(errno.EPERM, str(error)) from None


def _own_process_tree() -> None:
    if os.getppid() == 1:
        raise ProcessLookupError(errno.ESRCH, "the parent is process 1")


class ProbeDiedError(Exception):
    """The child died before it had said what happened."""


def run(confinement: Confinement) -> dict[str, str]:
    """Fork a confined child that tries all acts of the level."""
    parent = os.getpid()
    settings = confinement.settings
    confinement.prepare()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            confinement.put_on(parent)
            confinement.seal()
            acts = acts_of(settings.level, parent, settings.scratch)
            found = {name: _attempt(act) for name, (_, act) in acts.items()}
        except BaseException as error:  # the parent must learn what went wrong
            found = {"put on the layers": f"failed: {type(error).__name__}: {error}"}
        try:
            frames.write_frame(theirs, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    try:
        found = json.loads(frames.FrameReader(ours).frame())
    except frames.ChannelClosedError:
        raise ProbeDiedError("the child that tries what is forbidden has died") from None
    finally:
        os.close(ours)
        os.waitpid(pid, 0)
    return dict(found)


def faults(level: str, found: dict[str, str]) -> list[str]:
    """Faults among the findings: forbidden acts that succeeded, controls that failed."""
    wrong = []
    acts = acts_of(level, 0, scratch=SCRATCH in found)
    for name, happened in found.items():
        layer = acts[name][0] if name in acts else ""
        if layer and happened == "allowed":
            wrong.append(f"{layer} does not work here: a child could {name}")
        elif not layer and happened != "allowed":
            wrong.append(f"a child could not {name}: {happened}")
    return wrong
