"""Real Ray clusters of several nodes on this machine, each node with a loopback address of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_addresses = (f"127.0.0.{number}" for number in itertools.count(3))


@contextmanager
def cluster_of(nodes: int) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    from codea1_env.training.ray.cluster import connect

    # Not 127.0.0.1, which Ray would put the machine's outer address for.
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1, node_ip_address=next(_addresses))
        connect(made.address)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def ray_processes(cluster: Any, actor: str) -> list[int]:
    """Ids of the processes that are actors of a class. Other tests may have a cluster on this machine, too."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", entry, "cmdline").read_text()
            if not (line.startswith("ray::") and actor in line):
                continue
            parent = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1]
            if f"--gcs-address={cluster.address}" in Path("/proc", parent, "cmdline").read_text():
                found.append(int(entry))
        except OSError:  # it has ended meanwhile
            continue
    return found
