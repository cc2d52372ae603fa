"""What a cluster adds to a job: sandboxes on the nodes of a Ray cluster beside a local sandbox with as many workers.

    python benchmarks/cluster.py --nodes 1 2 --jobs 2000

The nodes are processes of this machine with one worker each, so that both sides have the same processors. Both judge the same
jobs in turn, local first; results are compared. Needs the extra ray. With --stream more jobs are judged, without a clock: once by a
local sandbox, and once by each number of nodes; with --kill by two and more nodes once more, while one is killed every few seconds and
another one joins.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from statistics import median
from typing import Any

from codea1_env import load_problems
from codea1_env.cluster import RemoteSandbox
from codea1_env.sandbox import Job, Sandbox, TestResult
from codea1_env.support.machine import this_machine

# Other processes of the machine must not have another priority than these.
_ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}


@contextmanager
def nodes_here() -> Iterator[Any]:
    """Give a cluster of processes of this machine, of which the head has no processor."""
    os.environ |= _ENVIRONMENT
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def jobs_of(count: int) -> list[Job]:
    """Return references of the starter set with their golden tests, some with a fault, none like another."""
    made = []
    problems = itertools.islice(itertools.cycle(load_problems("starter")), count)
    for number, problem in enumerate(problems):
        name = problem.entry_point
        fault = f"\n_{name} = {name}\n" if number % 3 else "\nraise ValueError\n"
        made.append(Job(f"{problem.reference}{fault}# {number}", problem.tests, name))
    return made


def told(results: Sequence[Sequence[TestResult]]) -> list[list[tuple[Any, ...]]]:
    """Results without times."""
    return [[(test.outcome, test.message, test.error) for test in one] for one in results]


def rate(sandbox: Sandbox, jobs: Sequence[Job]) -> tuple[float, list[Any]]:
    """Jobs per second, and what came of them."""
    started = time.perf_counter()
    results = sandbox.run_many(jobs)
    return len(jobs) / (time.perf_counter() - started), told(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--jobs", type=int, default=2000, help="in each block")
    parser.add_argument("--blocks", type=int, default=3, help="of each side, in turn")
    parser.add_argument("--stream", type=int, default=0, help="jobs whose results are compared")
    parser.add_argument("--kill", type=float, default=3, help="seconds between lost nodes")
    arguments = parser.parse_args()
    addresses = (f"127.0.0.{number}" for number in itertools.count(3))
    jobs, stream = jobs_of(arguments.jobs), jobs_of(arguments.stream)
    results: list[Any] = []
    print(this_machine())
    with nodes_here() as cluster:
        for number in arguments.nodes:
            while len(cluster.worker_nodes) < number:
                cluster.add_node(num_cpus=1, node_ip_address=next(addresses))
            with RemoteSandbox(address=cluster.address) as remote, Sandbox(number) as local:
                warm = jobs[: 32 * number]
                rate(local, warm), rate(remote, warm)
                rates: list[tuple[float, float]] = []
                differ = 0
                for _ in range(arguments.blocks):
                    here, expected = rate(local, jobs)
                    there, found = rate(remote, jobs)
                    rates.append((here, there))
                    differ += sum(a != b for a, b in zip(expected, found, strict=True))
                here, there = map(median, zip(*rates, strict=True))
                print(
                    f"{number} nodes: {there:.0f} jobs/s, local {here:.0f} jobs/s: {there / here:.2f}x; "
                    f"{differ} of {len(jobs) * arguments.blocks} jobs differ; load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
                if stream:
                    results = results or rate(local, stream)[1]
                    _compare(f"{number} nodes", remote, stream, results)
                if stream and number > 1:
                    losing = _Losing(cluster, arguments.kill, addresses)
                    _compare(f"{number} nodes", remote, stream, results, losing)


class _Losing:
    """Nodes that are killed, the oldest first, and others that join."""

    def __init__(self, cluster: Any, seconds: float, addresses: Iterator[str]) -> None:
        self.killed = 0
        self._cluster = cluster
        self._seconds = seconds
        self._addresses = addresses

    def until(self, answer: Future[Any]) -> None:
        """Go on until there is an answer. Here: Ray starts nodes in the main thread alone."""
        nodes = self._cluster.worker_nodes
        while not wait([answer], self._seconds).done:
            if len(nodes) > 1:
                oldest = min(nodes, key=lambda each: int(each.node_ip_address.split(".")[3]))
                self._cluster.remove_node(oldest, allow_graceful=False)
                self.killed += 1
            try:
                self._cluster.add_node(num_cpus=1, node_ip_address=next(self._addresses))
            except Exception as error:  # where the machine is busy Ray gives a node up
                print(f"a node did not start: {error!s:.60}")


def _compare(
    name: str,
    remote: RemoteSandbox,
    jobs: Sequence[Job],
    expected: Sequence[Any],
    losing: _Losing | None = None,
) -> None:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(rate, remote, jobs)
        if losing is not None:
            losing.until(answer)
        speed, found = answer.result()
    differ = sum(a != b for a, b in zip(expected, found, strict=True))
    lost = f", {losing.killed} of them killed and replaced" if losing else ""
    print(
        f"{name}{lost}: {differ} of {len(jobs)} jobs differ from one local sandbox; {speed:.0f} jobs/s",
        flush=True,
    )


if __name__ == "__main__":
    main()
