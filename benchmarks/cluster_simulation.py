"""A cluster of many nodes, simulated: where the controller becomes the limit, and what moves it.

    python benchmarks/cluster_simulation.py
    python benchmarks/cluster_simulation.py --nodes 1 2 4 --workers 1 --delays 0.0001

Discrete events in one process, with the plan of the real code: how many requests a node gets (`dispatcher.batch_size`, `IN_FLIGHT`,
`WAITING`), and which judge gets which problem (`judging.spread`). Times of jobs, problems and messages are those that
`cluster_costs.py` measures; the options take others. A job's time is drawn around its mean (log-normal). The controller does
one thing at a time: it takes jobs, sends batches and reads answers, in threads that Python switches between.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from codea1_env.cluster import dispatcher
from codea1_env.judging.spread import _homes, _Work

SPREAD = 0.5
"""Standard deviation of the logarithm of a job's time."""
SWITCH = sys.getswitchinterval()
"""Seconds after which Python lets another thread run."""
TESTS = 512
"""Verdicts of a problem: 8 programs, 8 suites, 8 tests."""


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes, as `cluster_costs.py` measured them."""

    job: float = 6.38e-3
    """Of a worker."""
    take: float = 50e-6
    """Of the controller: to take a job."""
    read: float = 50e-6
    """Of the controller: to read its answer."""
    send: float = 350e-6
    """Of the controller: to send a batch; and once more when its answer comes."""
    problem: float = 77.7e-3
    """Of a judge with its sandbox."""
    judged_here: float = 26.5e-3
    """Of the controller, where it judges a problem itself."""
    judged_elsewhere: float = 3.52e-3
    """Of the controller, where a judge does."""
    job_bytes: int = 1841
    problem_bytes: int = 129966
    delay: float = 1e-4
    """One way."""
    bandwidth: float = 1.25e8
    """Bytes a second of the controller's network (1 Gbit/s)."""


class Run(NamedTuple):
    """What came of a simulation."""

    rate: float
    """Jobs, or problems, a second."""
    controller: float
    """Share of the time in which the controller had something to do."""
    workers: float
    """Share of the time in which a worker had something to do."""
    batch: float
    """Jobs of a message."""


class Events:
    """A clock, and what happens when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._coming, (self.now + seconds, next(self._number), then))

    def play(self) -> float:
        """Let all happen that happens; when the last did."""
        while self._coming:
            self.now, _, then = heapq.heappop(self._coming)
            then()
        return self.now


class Controller:
    """Does one thing at a time. A thread goes on for as long as Python lets it, then the one that waits longest is next."""

    def __init__(self, events: Events) -> None:
        self.busy_for = 0.0
        self._events = events
        self._busy = False
        self._queues: dict[str, deque[tuple[float, Callable[[], None]]]] = {}
        self._running: tuple[str, float] = "", 0.0

    def do(self, thread: str, seconds: float, then: Callable[[], None]) -> None:
        """Do something when it is its turn."""
        self._queues.setdefault(thread, deque()).append((seconds, then))
        self._next()

    def _next(self) -> None:
        if self._busy or not self._queues:
            return
        thread, since = self._running
        if thread not in self._queues or self._events.now - since > SWITCH:
            if thread in self._queues:  # to the end of those that wait
                self._queues[thread] = self._queues.pop(thread)
            self._running = next(iter(self._queues)), self._events.now
        thread, _ = self._running
        seconds, then = self._queues[thread].popleft()
        self._busy = True

        def done() -> None:
            self.busy_for += seconds
            then()
            self._busy = False
            if not self._queues[thread]:
                del self._queues[thread]
            self._next()

        self._events.after(seconds, done)


class Network:
    """The controller's: one message after another, each with a delay of its own."""

    def __init__(self, events: Events, costs: Costs) -> None:
        self._events = events
        self._costs = costs
        self._free_at = {"out": 0.0, "in": 0.0}

    def carry(self, way: str, size: float, then: Callable[[], None]) -> None:
        """Carry a message `way`: "out" or "in"."""
        start = max(self._events.now, self._free_at[way])
        self._free_at[way] = start + size / self._costs.bandwidth
        self._events.after(self._free_at[way] - self._events.now + self._costs.delay, then)


class Home:
    """A node: its workers, and how many batches it has."""

    def __init__(self, workers: int) -> None:
        self.batches = 0
        self.free_at = [0.0] * workers


def run_jobs(
    costs: Costs, nodes: int, workers: int, jobs: int, seed: int = 0, batch: int = dispatcher.BATCH
) -> Run:
    """Simulate `RemoteSandbox.run_many`.

    Args:
        costs: What things take.
        nodes: How many nodes.
        workers: Of each.
        jobs: How many jobs.
        seed: Of the jobs' times.
        batch: What to take for `dispatcher.BATCH`.
    """
    random_time = times_of(costs.job, seed)
    events = Events()
    controller, network = Controller(events), Network(events, costs)
    homes = [Home(workers) for _ in range(nodes)]
    waiting, left, busy, sent, messages = 0, jobs, 0.0, 0, 0
    taking = looking = False

    def take() -> None:
        nonlocal taking
        if not taking and left and waiting < dispatcher.WAITING:
            taking = True
            controller.do("taking", costs.take, taken)

    def taken() -> None:
        nonlocal waiting, left, taking
        waiting += 1
        left -= 1
        taking = False
        wake()
        take()

    def wake() -> None:
        nonlocal looking
        free = any(home.batches < dispatcher.IN_FLIGHT for home in homes)
        if not looking and waiting and free:
            looking = True
            controller.do("sending", 0.0, look)

    def look() -> None:
        nonlocal waiting, sent, messages, looking
        looking = False
        free = [home for home in homes if home.batches < dispatcher.IN_FLIGHT]
        for home in sorted(free, key=lambda each: each.batches):
            size = min(batch, dispatcher.batch_size(waiting, nodes))
            if not size:
                break
            waiting -= size
            sent += size
            messages += 1
            home.batches += 1
            controller.do("sending", costs.send, _sender(home, size))
        wake()
        take()

    def _sender(home: Home, size: int) -> Callable[[], None]:
        half = size * costs.job_bytes / 2
        return lambda: network.carry("out", half, lambda: arrive(home, size))

    def arrive(home: Home, size: int) -> None:
        nonlocal busy
        done = events.now
        for _ in range(size):
            worker = min(range(workers), key=home.free_at.__getitem__)
            seconds = random_time()
            busy += seconds
            home.free_at[worker] = max(home.free_at[worker], events.now) + seconds
            done = max(done, home.free_at[worker])
        half = size * costs.job_bytes / 2
        cost = costs.send + size * costs.read
        events.after(
            done - events.now,
            lambda: network.carry(
                "in", half, lambda: controller.do("answers", cost, lambda: answered(home))
            ),
        )

    def answered(home: Home) -> None:
        home.batches -= 1
        wake()

    take()
    seconds = events.play()
    assert not left
    assert not waiting
    share = busy / (seconds * nodes * workers)
    return Run(jobs / seconds, controller.busy_for / seconds, share, sent / messages)


def run_judges(costs: Costs, judges: int, problems: int, seed: int = 0) -> Run:
    """Simulate `RemoteJudges.judge_answers`, each judge with a processor of its own."""
    random_time = times_of(costs.problem, seed)
    events = Events()
    controller, network = Controller(events), Network(events, costs)
    homes = _homes([f"problem {number}" for number in range(problems)], judges)
    work = _Work([None] * problems, homes)  # type: ignore[list-item] # only their number is asked for
    busy = 0.0

    def ask(judge: int) -> None:
        if work._take(judge) is None:
            return
        half = costs.judged_elsewhere / 2
        answer = lambda: controller.do(f"{judge}", half, lambda: ask(judge))  # noqa: E731
        judge_it = lambda: judged(lambda: network.carry("in", costs.problem_bytes, answer))  # noqa: E731
        controller.do(f"{judge}", half, lambda: network.carry("out", 0, judge_it))

    def judged(then: Callable[[], None]) -> None:
        nonlocal busy
        seconds = random_time()
        busy += seconds
        events.after(seconds, then)

    for judge in sorted(set(homes)):
        ask(judge)
    seconds = events.play()
    share = busy / (seconds * judges)
    return Run(problems / seconds, controller.busy_for / seconds, share, 1)


def run_here(costs: Costs) -> float:
    """Problems a second where the controller judges what the sandboxes of enough nodes answer: no more than its own time allows."""
    return 1 / (costs.judged_here + 10 * (costs.take + costs.read + 2 * costs.send / 10))


def times_of(mean: float, seed: int) -> Callable[[], float]:
    """Draw the times of jobs."""
    drawn = random.Random(seed)
    middle = math.log(mean) - SPREAD**2 / 2
    return lambda: drawn.lognormvariate(middle, SPREAD)


def table_of_jobs(costs: Costs, options: argparse.Namespace) -> None:
    print(
        "| nodes | delay | jobs/s | of what the workers could do | controller busy | jobs in a message |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for nodes, delay in itertools.product(options.nodes, options.delays):
        jobs = min(100_000, 400 * nodes * options.workers)
        run = run_jobs(replace(costs, delay=delay), nodes, options.workers, jobs, options.seed)
        print(
            f"| {nodes} | {1e3 * delay:g} ms | {run.rate:,.0f} | {run.workers:.0%} | {run.controller:.0%} | {run.batch:.1f} |",
            flush=True,
        )


def table_of_judges(costs: Costs, options: argparse.Namespace) -> None:
    here = TESTS * run_here(costs)
    print(f"Judged by the controller: at most {here:,.0f} verdicts/s, with any number of nodes.")
    print(
        "| nodes | delay | verdicts/s | of what the judges could do | controller busy | seconds |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for nodes, delay in itertools.product(options.nodes, options.delays):
        judges, problems = nodes * options.workers, options.problems
        run = run_judges(replace(costs, delay=delay), judges, problems, options.seed)
        print(
            f"| {nodes} | {1e3 * delay:g} ms | {TESTS * run.rate:,.0f} | {run.workers:.0%} | {run.controller:.0%} | "
            f"{problems / run.rate:.2f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4, 8, 32, 128])
    parser.add_argument("--workers", type=int, default=8, help="of each node")
    parser.add_argument("--delays", type=float, nargs="+", default=[1e-4, 1e-2], help="seconds")
    parser.add_argument("--problems", type=int, default=256, help="that are judged together")
    parser.add_argument("--job", type=float, default=Costs.job, help="seconds of a worker")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    costs = replace(Costs(), job=options.job)
    print(f"{options.workers} workers on each node, {costs}\n\nJobs:\n")
    table_of_jobs(costs, options)
    print("\nOther sizes of a batch, on the last number of nodes:\n")
    print("| at most | jobs/s | jobs in a message |\n|---:|---:|---:|")
    for batch in (1, 8, 64):
        run = run_jobs(costs, options.nodes[-1], options.workers, 50_000, options.seed, batch)
        print(f"| {batch} | {run.rate:,.0f} | {run.batch:.1f} |", flush=True)
    print(f"\n{options.problems} problems, a judge for each worker:\n")
    table_of_judges(costs, options)


if __name__ == "__main__":
    main()
