"""Whether a second worker helps, and whether a queue hurts."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure
from sandbox_speed.jobs import SpeedSubject, subjects

SPEEDUP = 1.6
CLIENTS = 32
_SLOWER = 1.1


def measure(
    problems: Sequence[Problem], config: SpeedConfig, level: str | None, progress: Progress
) -> Iterator[SpeedFigure]:
    """Run the same blocks of jobs with one worker and two, and for few clients and many."""
    with Sandbox(1, level=level) as one, Sandbox(2, level=level) as two:
        found = subjects(problems)
        if not found:
            yield SpeedFigure("scaling", "jobs", None, note="no problem has 5 calls with literals")
            return
        jobs = list(itertools.islice(itertools.cycle(found), config.block))
        yield from _workers(one, two, jobs, config, progress)
    workers = config.pool_size
    with Sandbox(workers, level=level) as sandbox:
        yield from _clients(sandbox, workers, jobs, config, progress)


def _workers(
    one: Sandbox,
    two: Sandbox,
    jobs: Sequence[SpeedSubject],
    config: SpeedConfig,
    progress: Progress,
) -> Iterator[SpeedFigure]:
    rates: dict[int, list[float]] = {1: [], 2: []}
    for sandbox in (one, two):
        _all_at_once(sandbox, jobs[:20])
    for repeat in range(config.repeats):
        progress(f"scaling: workers, {repeat + 1}/{config.repeats}")
        for sandbox in (one, two):
            rates[sandbox.workers].append(len(jobs) / _all_at_once(sandbox, jobs))
    cores = len(os.sched_getaffinity(0))
    yield SpeedFigure(
        "scaling", "2 workers / 1 worker", median(rates[2]), "jobs/s", median(rates[1]),
        at_least=SPEEDUP if cores > 1 else None,
        note=f"{len(jobs)} jobs of 5 calls queued at once, {config.repeats} blocks each, {cores} cores",
    )  # fmt: skip


def _all_at_once(sandbox: Sandbox, jobs: Sequence[SpeedSubject]) -> float:
    start = time.perf_counter()
    futures = [sandbox.submit_calls(job.code, job.entry_point, job.calls) for job in jobs]
    for future in futures:
        future.result()
    return time.perf_counter() - start


def _clients(
    sandbox: Sandbox,
    workers: int,
    jobs: Sequence[SpeedSubject],
    config: SpeedConfig,
    progress: Progress,
) -> Iterator[SpeedFigure]:
    """Worker time of a job with every worker busy and nobody waiting, and with a queue of clients.

    All workers are busy in both cases, so a job takes workers / (jobs per second) of a worker's time.
    """
    few = workers
    service: dict[int, list[float]] = {few: [], CLIENTS: []}
    latency: dict[int, list[float]] = {few: [], CLIENTS: []}
    _by_clients(sandbox, jobs[:20], few)
    for repeat in range(config.repeats):
        progress(f"scaling: clients, {repeat + 1}/{config.repeats}")
        for clients in service:
            seconds, waits = _by_clients(sandbox, jobs, clients)
            service[clients].append(1e3 * workers * seconds / len(jobs))
            latency[clients].append(1e3 * median(waits))
    yield SpeedFigure(
        "scaling", f"worker time of a job, {CLIENTS} clients / {few}", median(service[CLIENTS]), "ms",
        median(service[few]), at_most=_SLOWER, note=f"{workers} workers, each client a thread with one job at a time",
    )  # fmt: skip
    queue = max(1.0, CLIENTS / workers)
    waited = median(latency[CLIENTS])
    yield SpeedFigure(
        "scaling", f"median latency / place in the queue, {CLIENTS} clients / {few}", waited / queue, "ms",
        median(latency[few]) / max(1.0, few / workers),
        note=f"{CLIENTS} clients wait {waited:.3g} ms, {queue:g} in line for a worker",
    )  # fmt: skip


def _by_clients(
    sandbox: Sandbox, jobs: Sequence[SpeedSubject], clients: int
) -> tuple[float, list[float]]:
    """Seconds for all jobs, and the latency of each, when so many threads take them one by one."""
    waiting = iter(jobs)  # threads may share the iterator of a list

    def client() -> list[float]:
        waits = []
        for job in waiting:
            start = time.perf_counter()
            sandbox.call(job.code, job.entry_point, job.calls)
            waits.append(time.perf_counter() - start)
        return waits

    with ThreadPoolExecutor(clients) as threads:
        start = time.perf_counter()
        futures = [threads.submit(client) for _ in range(clients)]
        waits = [wait for future in futures for wait in future.result()]
        return time.perf_counter() - start, waits
