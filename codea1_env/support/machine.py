"""What figures depend on: the machine that they were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """What figures depend on."""

    cores: int
    """Cores that this process may use."""
    processor: str
    system: str
    python: str
    load: float
    """Load average of the last minute, before anything was measured."""

    def __str__(self) -> str:
        return (
            f"{self.cores} cores ({self.processor}), {self.system}, Python {self.python}, "
            f"load before the run {self.load:.2f}"
        )


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        load=os.getloadavg()[0],
    )


def usable_cores(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the cores that this process may use, and a container has processor time for."""
    cores = len(os.sched_getaffinity(0))
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((root / name).read_text() for name in names).split()
            if quota not in ("max", "-1"):
                cores = max(1, min(cores, round(int(quota) / int(period))))
        except (OSError, ValueError):
            continue
    return cores


def _processor() -> str:
    try:
        lines = os.fsdecode(Path("/proc/cpuinfo").read_bytes()).splitlines()
    except OSError:
        return "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        "unknown processor",
    )
