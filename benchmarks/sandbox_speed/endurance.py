"""Whether anything grows while many jobs run: descriptors, processes, threads, memory."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from codea1_env.sandbox import Job, Limits, Sandbox
from sandbox_speed import processes
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure

MEGABYTE = 1e6
GROWTH = 5.0
WORKER = 40.0
_BATCH = 250
_GOOD = "def f(x):\n    return x + 1\n"
_CHECK = "def check(g):\n    for i in range(5):\n        assert g(i) == i + 1\n\n\ncheck(f)\n"
_PROGRAMS = (
    _GOOD,
    "import numpy as np\n\n\ndef f(x):\n    return int(np.int64(x) + 1)\n",
    "def f(x):\n    return x - 1\n",
    "def f(x):\n    raise ValueError(x)\n",
    "def f(x):\n    raise SystemExit(x)\n",
    "def f(x):\n    print('x' * 10_000)\n    return x + 1\n",
    "def f(x):\n    return list(range(10_000))\n",
    "def f(x:\n",
)
"""What the jobs run: right, with a package, wrong, raising, leaving, printing, large, not Python."""
_SLEEPS = "import time\n\n\ndef f(x):\n    time.sleep(0.02)\n    return x + 1\n"
_HANGS = "def f(x):\n    while True:\n        pass\n"
_HANGS_EVERY = 250
_LIMITS = Limits(call_cpu_time=0.1, calls_per_test=1)


def job(number: int, label: str = "") -> Job:
    """One of some kinds of job; those with a label are unlike all others."""
    code = _HANGS if number % _HANGS_EVERY == 100 else _PROGRAMS[number % 8]
    mark = f"# {label}\n" if label else ""
    # A quarter of them inside, half with the other hash seed; over 64 numbers every program meets all.
    test = _CHECK if number // 8 % 4 == 3 else "assert f(1) == 2"
    return Job(code + mark, (test + "\n" + mark,), "f", _LIMITS, hash_seed=number // 32 % 2)


@dataclass(frozen=True)
class Snapshot:
    """What this process has and what it has started."""

    descriptors: int
    threads: int
    processes: int
    zombies: int
    resident: float
    """Megabytes of this process."""
    workers: tuple[float, ...]
    """Megabytes of each worker process and child that it has ready."""
    worker_descriptors: int
    """Of all workers; 0 where the kernel does not let us look."""
    shared_out: tuple[float, ...]
    """Megabytes of each worker process, shared memory counted in part; empty where we may not look."""


def snapshot() -> Snapshot:
    """Look at this process and at all that it has started."""
    gc.collect()
    started = processes.descendants(os.getpid())
    workers = [each.pid for each in started if processes.is_worker(each.pid)]
    parts = [processes.proportional(pid) for pid in workers]
    return Snapshot(
        descriptors=processes.descriptors(os.getpid()) or 0,
        threads=threading.active_count(),
        processes=len(started),
        zombies=sum(each.state == "Z" for each in started),
        resident=processes.resident(os.getpid()) / MEGABYTE,
        workers=tuple(processes.resident(pid) / MEGABYTE for pid in workers),
        worker_descriptors=sum(processes.descriptors(pid) or 0 for pid in workers),
        shared_out=tuple(part / MEGABYTE for part in parts if part is not None),
    )


def measure(config: SpeedConfig, level: str | None, progress: Progress) -> Iterator[SpeedFigure]:
    """Run jobs of all kinds and compare what there is before and after."""
    with Sandbox(config.pool_size, level=level) as sandbox:
        _run(sandbox, max(_HANGS_EVERY, min(1000, config.jobs // 4)), "", progress)
        before = _settled(sandbox)
        start = time.perf_counter()
        _run(sandbox, config.jobs, "", progress)
        seconds = time.perf_counter() - start
        after = _settled(sandbox)
        fresh = max(1, config.jobs // 10)
        _run(sandbox, fresh, "new", progress)
        last = _settled(sandbox)
    yield SpeedFigure(
        "endurance", "jobs of 8 kinds", config.jobs / seconds, "jobs/s",
        note=f"{config.jobs} jobs, a quarter of them inside, 1 in {_HANGS_EVERY} into its time limit, "
        f"{config.pool_size} workers",
    )  # fmt: skip
    for what in ("descriptors", "worker_descriptors", "threads", "processes", "zombies"):
        old, new = getattr(before, what), getattr(after, what)
        name = f"growth: {what.replace('worker_', 'workers’ ')}"
        yield SpeedFigure("endurance", name, new - old, at_most=0, note=f"{old} to {new}")
    yield SpeedFigure(
        "endurance", "growth: memory of this process", after.resident - before.resident, "MB",
        at_most=GROWTH, note=f"{before.resident:.1f} to {after.resident:.1f} MB",
    )  # fmt: skip
    yield SpeedFigure(
        "endurance", "the same, with new texts", last.resident - after.resident, "MB",
        note=f"{fresh} jobs more, no two alike: what is remembered of tests grows up to a bound",
    )  # fmt: skip
    part = f"{max(after.shared_out):.1f} MB" if after.shared_out else "not readable here"
    yield SpeedFigure(
        "endurance", "memory of the largest worker process", max(after.workers, default=None), "MB",
        at_most=WORKER, note=f"resident (Rss), the largest of {len(after.workers)}; shared pages in part (Pss): {part}",
    )  # fmt: skip


def _run(sandbox: Sandbox, count: int, label: str, progress: Progress) -> None:
    for start in range(0, count, _BATCH):
        progress(f"endurance: {start}/{count} {label}".rstrip())
        numbers = range(start, min(start + _BATCH, count))
        sandbox.run_many([job(number, f"{label} {number}" if label else "") for number in numbers])


def _settled(sandbox: Sandbox) -> Snapshot:
    """Return what there is once every worker of every kind has done the same and waits for more.

    Workers are kept for each hash seed, with packages and without: the jobs sleep, so that all are needed.
    """
    for seed in (0, 1):
        for package in ("", "import numpy\n"):
            codes = [f"{package}{_SLEEPS}# {number}\n" for number in range(10 * sandbox.workers)]
            tests = ("assert f(1) == 2",)
            sandbox.run_many([Job(code, tests, "f", hash_seed=seed) for code in codes])
    time.sleep(0.5)
    return snapshot()
