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
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from statistics import median
from typing import Any

from codea1_env import load_problems
from codea1_env.cluster import RemoteSandbox
from codea1_env.sandbox import Job, Sandbox, TestResult


def jobs_of(count: int) -> list[Job]:
    """References of the starter set with their golden tests, some with a fault, none like another."""
    made = []
    for number, problem in zip(
        range(count), itertools.cycle(load_problems("starter")), strict=False
    ):
        fault = (
            f"\n_{problem.entry_point} = {problem.entry_point}\n"
            if number % 3
            else "\nraise ValueError\n"
        )
        made.append(
            Job(f"{problem.reference}{fault}# {number}", problem.tests, problem.entry_point)
        )
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
    # Other processes of the machine must not have another priority than these.
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    import ray
    from ray.cluster_utils import Cluster

    addresses = (f"127.0.0.{number}" for number in itertools.count(3))
    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    jobs, stream = jobs_of(arguments.jobs), jobs_of(arguments.stream)
    results: list[Any] = []
    print(f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    try:
        for number in arguments.nodes:
            while len(cluster.worker_nodes) < number:
                cluster.add_node(num_cpus=1, node_ip_address=next(addresses))
            with RemoteSandbox(address=cluster.address) as remote, Sandbox(number) as local:
                warm = jobs[: 32 * number]
                rate(local, warm), rate(remote, warm)
                rates: dict[str, list[float]] = {"local": [], "remote": []}
                differ = 0
                for _ in range(arguments.blocks):
                    here, expected = rate(local, jobs)
                    there, found = rate(remote, jobs)
                    rates["local"].append(here)
                    rates["remote"].append(there)
                    differ += sum(a != b for a, b in zip(expected, found, strict=True))
                here, there = median(rates["local"]), median(rates["remote"])
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
    finally:
        ray.shutdown()
        cluster.shutdown()


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
