"""Short runs, and a real Ray cluster of two nodes on this machine, each with two processors by name and a loopback address of its own."""

from __future__ import annotations

import io
import os
import re
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))
from processes import descendants
from rich.console import Console

from codea1_env.sandbox import Sandbox
from codea1_env.training import TrainConfig, train
from codea1_env.training.run_folder import TIMINGS
from codea1_env.training.settings import replaced

# Before Ray is imported: other tests run beside, and a node that is gone is asked five times before it counts as lost.
os.environ |= {"RAY_raylet_start_wait_time_s": "120", "RAY_health_check_period_ms": "500"}
_HELPERS = "metrics_agent", "metrics_export", "runtime_env_agent", "dashboard_agent_listen"
TABLES = TrainConfig(
    max_problems=3, problems_per_step=2, num_generations=2, num_suites=2, eval_samples=1, eval_problems=0, max_steps=2,
    panel_size=0, eval_steps=2, save_steps=1, workers=1,
)  # fmt: skip


def run(
    folder: Path, config: TrainConfig, sandbox: Sandbox, *, resume: bool = False, **changes: Any
) -> str:
    """Train; returns what is shown."""
    shown = io.StringIO()
    config = replaced(config, {"output_dir": folder, **changes})
    train(config, resume=resume, sandbox=sandbox, console=Console(file=shown))
    return shown.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (TIMINGS, ".lock", "config.toml")
    }


def there(cluster: Any, **changes: Any) -> dict[str, Any]:
    """Settings of a run on a cluster."""
    return {"engine": "ray", "address": cluster.address, **changes}


def ports() -> dict[str, int]:
    """Ports of a node's helpers: Ray gives up one that does not say its own within 15 s, as where other tests run beside."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _HELPERS]
        for each in sockets:
            each.bind(("", 0))
        numbers = [each.getsockname()[1] for each in sockets]
    return {f"{name}_port": number for name, number in zip(_HELPERS, numbers, strict=True)}


@contextmanager
def two_nodes() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    from codea1_env.training.ray.cluster import connect

    # Not 127.0.0.1, which Ray would put the machine's outer address for.
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    os.environ |= {"GLOO_SOCKET_IFNAME": "lo"}
    head = {"num_cpus": 2, "node_ip_address": "127.0.0.2", "no_monitor": True}
    head |= {"include_dashboard": False, "include_log_monitor": False}
    made = Cluster(initialize_head=True, head_node_args=head | ports())
    try:
        made.add_node(num_cpus=2, node_ip_address="127.0.0.3", **ports())
        connect(made.address)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def workers_of(node: Any) -> set[int]:
    """Ids of the processes of a node that judge, or have judged."""
    found = set()
    for pid in descendants(node.all_processes["raylet"][0].process.pid):
        with suppress(OSError):  # it has ended meanwhile
            if Path("/proc", str(pid), "cmdline").read_text().startswith("ray::"):
                found.add(pid)
    return found


def learners(cluster: Any, kind: str = "(Learner|Writer)Actor") -> list[int]:
    """Ids of the processes of language models, or of those that learn or write alone. Other tests may have a cluster on this machine, too."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended meanwhile
            line = Path("/proc", entry, "cmdline").read_text()
            if not (line.startswith("ray::") and re.search(kind, line)):
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
