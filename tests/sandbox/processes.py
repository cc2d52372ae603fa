"""Processes of this machine, as /proc tells of them, and Python processes that use our package."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import codea1_env

ROOT = str(Path(codea1_env.__file__).parent.parent)


def parents() -> dict[int, int]:
    """Every living process and its parent."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_bytes()  # the name may be no text
        except OSError:  # it has just ended
            continue
        state, parent = stat.rpartition(b")")[2].split()[:2]
        if state not in (b"X", b"Z"):
            found[int(name)] = int(parent)
    return found


def children() -> set[int]:
    """Our own."""
    return {pid for pid, parent in parents().items() if parent == os.getpid()}


def workers() -> set[int]:
    """Our own children that are workers of a sandbox."""
    found = set()
    for pid in children():
        with contextlib.suppress(OSError):  # it has just ended
            if b"run.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def descendants(pid: int) -> set[int]:
    """All that a process has started, and what these have started."""
    family, everybody = {pid}, parents()
    while new := {each for each, parent in everybody.items() if parent in family} - family:
        family |= new
    return family - {pid}


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it has come true within a time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def environment(**others: str) -> dict[str, str]:
    """In which Python finds our package and all that we find."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path]), **others}


def run_python(*arguments: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Runs Python from another folder, with more in its environment."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True, text=True, timeout=120, cwd="/", env=environment(**others),
    )  # fmt: skip
