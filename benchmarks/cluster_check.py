"""The simulation of a cluster beside the real dispatcher, whose nodes only wait: so that there may be more than this machine has.

    python benchmarks/cluster_check.py

Nodes are actors on this machine that sleep as long as jobs would take, with a job's time drawn as in `cluster_simulation.py`; how
many, and how many jobs they get, the real dispatcher decides. Then nodes that answer at once: what a job costs the controller where
it is the limit, and how many go in one message. Needs the extra ray.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from dataclasses import replace
from typing import Any

from cluster_simulation import Costs, _times, run_jobs

from codea1_env.cluster import dispatcher
from codea1_env.cluster.actors import Request, packed, unpacked
from codea1_env.cluster.nodes import Node
from codea1_env.sandbox import Job

WORKERS = 8
_ANSWER = packed([1])


class Sleeper:
    """A node whose programs only take time.

    Args:
        seconds: Of a job; 0 answers at once.
        seed: Of the times.
    """

    def __init__(self, seconds: float, seed: int) -> None:
        self._draw = _times(seconds, seed) if seconds else lambda: 0.0
        self._free_at = [0.0] * WORKERS
        self._lock = threading.Lock()
        self._messages = 0

    def run(self, requests: bytes) -> bytes:
        """As `SandboxActor.run`."""
        number = len(unpacked(requests))
        done = now = time.monotonic()
        with self._lock:
            self._messages += 1
            for _ in range(number):
                worker = min(range(WORKERS), key=self._free_at.__getitem__)
                self._free_at[worker] = max(now, self._free_at[worker]) + self._draw()
                done = max(done, self._free_at[worker])
        time.sleep(max(0.0, done - time.monotonic()))
        return packed([_ANSWER] * number)

    def messages(self) -> int:
        """How many there were."""
        return self._messages

    def alive(self) -> bool:
        """As those of the actors that it stands for."""
        return True

    def close(self) -> None:
        """There is nothing to end."""


def real(ray: Any, nodes: int, seconds: float, jobs: int) -> tuple[float, float, float]:
    """Jobs a second, jobs in a message, and microseconds of CPU time of this process for a job."""
    there = [Node(f"{number}", f"node {number}", WORKERS) for number in range(nodes)]
    dispatcher.nodes = lambda ray: there  # type: ignore[attr-defined] # they are one
    actors: list[Any] = []

    def start(node: Node) -> Any:
        options = {"num_cpus": 0, "max_concurrency": dispatcher.AT_ONCE}
        actor = ray.remote(Sleeper).options(**options).remote(seconds, int(node.id))
        ray.get(actor.alive.remote())
        actors.append(actor)
        return actor

    made = dispatcher.Dispatcher(ray, start, leave_out=False)
    request = Request("submit", (Job("def f(n):\n    return n\n" * 10, ["assert f(1) == 1"] * 10),))
    began, cpu = time.monotonic(), time.process_time()
    for future in [made.submit(request) for _ in range(jobs)]:
        future.result()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    messages = sum(ray.get([actor.messages.remote() for actor in actors]))
    made.close()
    return jobs / took, jobs / messages, 1e6 * cpu / jobs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=0.2, help="of a job")
    parser.add_argument("--many", type=int, nargs="+", default=[1, 8], help="that answer at once")
    arguments = parser.parse_args()
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    import ray

    ray.cloudpickle.register_pickle_by_value(__import__("__main__"))
    ray.cloudpickle.register_pickle_by_value(__import__("cluster_simulation"))
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    try:
        for nodes in arguments.nodes:
            jobs = 400 * nodes
            rate, batch, _ = real(ray, nodes, arguments.seconds, jobs)
            run = run_jobs(replace(Costs(), job=arguments.seconds), nodes, WORKERS, jobs)
            print(
                f"{nodes} nodes: {rate:.1f} jobs/s, simulated {run.rate:.1f}; {batch:.1f} jobs in a message, simulated "
                f"{run.batch:.1f}; load {os.getloadavg()[0]:.0f}",
                flush=True,
            )
        for nodes in arguments.many:
            rate, batch, cpu = real(ray, nodes, 0.0, 4000)
            run = run_jobs(replace(Costs(), job=1e-6), nodes, WORKERS, 4000)
            print(
                f"{nodes} nodes that answer at once: {batch:.1f} jobs in a message, simulated {run.batch:.1f}; controller "
                f"{cpu:.0f} us a job, simulated {1e6 * run.controller / run.rate:.0f}",
                flush=True,
            )
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
