"""A real Ray cluster of two nodes on this machine, each with two processors by name and a loopback address of its own."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def two_nodes() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    from codea1_env.training.ray.cluster import connect

    # Not 127.0.0.1, which Ray would put the machine's outer address for.
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    head = {"num_cpus": 2, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=2, node_ip_address="127.0.0.3")
        connect(made.address)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def learners(cluster: Any) -> list[int]:
    """Ids of the processes of language models. Other tests may have a cluster on this machine, too."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended meanwhile
            line = Path("/proc", entry, "cmdline").read_text()
            if not (line.startswith("ray::") and "LearnerActor" in line):
                continue
            stat = Path("/proc", entry, "stat").read_bytes()
            parent = stat.rpartition(b")")[2].split()[1].decode()
            if f"--gcs-address={cluster.address}" in Path("/proc", parent, "cmdline").read_text():
                found.append(int(entry))
    return found


def all_end(cluster: Any, seconds: float = 100) -> bool:
    """Wait until the processes of language models have ended, not for ever; whether they have."""
    for pid in learners(cluster):
        with suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            try:
                if not select.select([process], [], [], seconds)[0]:
                    return False
            finally:
                os.close(process)
    return True
