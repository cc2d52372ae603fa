"""Which level of confinement this machine offers, how that was found out, and what to do about what it lacks."""

from __future__ import annotations

import functools
import math
import os
import resource
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from .inside.confine.confinement import LEVELS
from .jobs import Limits, WorkerKind
from .results import InfraError, LevelUnavailableError, WorkerDiedError
from .worker import Worker

_ATTEMPTS = 3

_REMEDIES = {
    "kernel": (
        "needs Linux 5.13 or newer with seccomp and Landlock (CONFIG_SECCOMP_FILTER, "
        "CONFIG_SECURITY_LANDLOCK, and 'landlock' in the kernel's lsm= list)"
    ),
    "namespaces": (
        "needs root with CAP_SYS_ADMIN, or user namespaces for ordinary users "
        "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns); in a container, a seccomp profile that allows unshare"
    ),
}


@dataclass(frozen=True)
class LevelReport:
    """What was found out about one level."""

    level: str
    found: dict[str, str]
    """What a confined child tried -> what happened; empty if the level does not work."""
    error: str = ""
    """What is missing, and in `remedy` what to do about it."""
    remedy: str = ""

    @property
    def works(self) -> bool:
        """Whether the level can be used."""
        return not self.error


def check_level(level: str | None) -> str | None:
    """Check a level's name; warns of one that does not contain hostile programs."""
    if level is not None and level not in LEVELS:
        raise ValueError(f"Expect level to be one of {', '.join(LEVELS)}, actually: {level!r}")
    if level == "process":
        warnings.warn(
            "the sandbox runs at level 'process': programs can read files, start processes and use the "
            'network; use level "kernel" or "namespaces" for programs that you do not trust',
            stacklevel=3,
        )
    return level


def check_machine() -> None:
    """Look for what every level needs."""
    if not os.path.exists("/proc/self/maps"):
        raise LevelUnavailableError(
            "Expect the file system /proc, actually: there is none; mount it (`mount -t proc proc /proc`), "
            "also in a chroot or a container"
        )


def check_memory(limits: Limits) -> None:
    """Check that a process may have as much memory as a program may use: else the verdict on it would be ours."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if resource.RLIM_INFINITY != most < limits.memory:
        raise LevelUnavailableError(
            f"Expect processes that may use Limits.memory, {limits.memory} bytes of address space, actually: this one, and "
            f"so all that it starts, may use {most}. Raise it (`ulimit -v {math.ceil(limits.memory / 1024)}`, or "
            f"`unlimited`), or lower the limit: Limits(memory={most})"
        )


def start_worker(kind: WorkerKind, level: str, packages: Mapping[str, str]) -> Worker:
    """Start a worker; see `Worker`."""
    check_machine()
    try:
        return Worker(kind, level, packages)
    except LevelUnavailableError as error:
        raise _unavailable(level, str(error)) from None


def _unavailable(level: str, error: str) -> LevelUnavailableError:
    return LevelUnavailableError(
        f"Expect a machine that offers level {level!r}, actually: {error}. {_remedy(level)}"
        "A weaker level must be asked for by name; `codea1 sandbox doctor` shows every layer"
    )


def _remedy(level: str) -> str:
    if level == "namespaces" and not examine("kernel").works:
        level = "kernel"  # which it includes
    return f"Level {level!r} {_REMEDIES[level]}. " if level in _REMEDIES else ""


@functools.cache
def examine(level: str) -> LevelReport:
    """Start a worker at a level and let a child try what the level forbids.

    Raises:
        InfraError: Three workers died, which says nothing of the machine. It is not remembered.
    """
    try:
        check_machine()
    except LevelUnavailableError as error:  # which has its remedy in it
        return LevelReport(level, {}, str(error))
    for _ in range(_ATTEMPTS):
        try:
            worker = Worker(WorkerKind(), level, {})
        except LevelUnavailableError as error:
            return LevelReport(level, {}, str(error), _remedy(level))
        except WorkerDiedError as error:
            died = error
        else:
            worker.close()
            return LevelReport(level, worker.found)
    raise InfraError(f"{_ATTEMPTS} workers died at level {level!r}: {died}") from None


def strongest_level() -> str:
    """Return the strongest level that works here.

    Raises:
        LevelUnavailableError: It is weaker than "kernel".
    """
    check_machine()
    for level in ("namespaces", "kernel"):
        report = examine(level)
        if report.works:
            return level
    raise LevelUnavailableError(
        f"Expect a machine that can confine untrusted programs, actually: {report.error}. {report.remedy}"
        "To run programs that you trust all the same, ask for "
        'Sandbox(level="process"); `codea1 sandbox doctor` shows every layer.'
    )
