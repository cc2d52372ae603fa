"""What /proc says of this process and of all that it has started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class MeasuredProcess(NamedTuple):
    """One process."""

    pid: int
    parent: int
    state: str
    """One letter; "Z" for a zombie."""
    cpu_time: float
    """Seconds of its own and of the children that it has waited for."""


def _read(path: str) -> bytes | None:
    """Return the contents of a file of a process that may end, or be closed to us, at any moment."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def process(pid: int) -> MeasuredProcess | None:
    """Return what is known of a process; None if there is none."""
    stat = _read(f"/proc/{pid}/stat")
    if stat is None:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()  # the name before it may hold anything
    return MeasuredProcess(
        pid, int(fields[1]), fields[0].decode(), sum(map(int, fields[11:15])) / _TICKS
    )


def descendants(pid: int) -> list[MeasuredProcess]:
    """All processes that a process has started, and that those have started."""
    everybody = [process(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    children: dict[int, list[MeasuredProcess]] = {}
    for each in everybody:
        if each is not None:
            children.setdefault(each.parent, []).append(each)
    found: list[MeasuredProcess] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.append(child)
            waiting.append(child.pid)
    return found


def is_worker(pid: int) -> bool:
    """Whether it is a worker process of a sandbox, or a child that one has forked."""
    command = _read(f"/proc/{pid}/cmdline") or b""
    return b"run.zygote" in command.split(b"\0")


def resident(pid: int) -> int:
    """Bytes of memory in use, shared ones included; 0 if the process is gone."""
    statm = _read(f"/proc/{pid}/statm")
    return int(statm.split()[1]) * _PAGE if statm else 0


def proportional(pid: int) -> int | None:
    """Bytes in use, shared ones counted in part; None where the kernel does not let us look."""
    rollup = _read(f"/proc/{pid}/smaps_rollup") or b""
    for line in rollup.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return None


def descriptors(pid: int) -> int | None:
    """How many descriptors a process has open; None where the kernel does not let us look."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None
