"""A sandbox whose programs run on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from codea1_env.cluster.actors import Request, SandboxActor
from codea1_env.cluster.dispatcher import AT_ONCE, Dispatcher
from codea1_env.cluster.nodes import Node, connect, start_actor
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.sandbox.tasks import SandboxTask

T = TypeVar("T")


class RemoteSandbox(Sandbox):
    """Runs untrusted programs on the nodes of a Ray cluster, and is asked as any `Sandbox` is.

    Each node has one actor with a sandbox of its own. Jobs go there in batches. Nodes may join and leave: what a
    node had not answered when it was lost is done by another, and what three have failed at is an InfraError. Verdicts
    are those of a local sandbox of the same level. Texts are read (`analyse`) on this machine.

    Args:
        workers: How many programs run at the same time on each node; None for one per processor of the node.
        limits: See `Sandbox`.
        level: See `Sandbox`. None takes the strongest that each node offers.
        packages: See `Sandbox`; they must be installed on this machine and on the nodes.
        address: "auto" for the cluster that this machine belongs to, "HOST:PORT", or "local" for one on this machine
            alone. A process that has called `ray.init` stays where it is.
        leave_out_unfit: Whether nodes that cannot contain programs, or have another version of this package, are left
            out. By default they are refused; those that join later are always left out.

    Raises:
        ClusterError: There is no cluster, or a node of it cannot be used.
        MissingExtraError: Ray is not installed.
    """

    def __init__(
        self,
        workers: int | None = None,
        limits: Limits | None = None,
        *,
        level: str | None = None,
        packages: str | Sequence[str] = ("numpy",),
        address: str = "auto",
        leave_out_unfit: bool = False,
    ) -> None:
        super().__init__(1 if workers is None else workers, limits, level=level, packages=packages)
        ray = connect(address)
        asked, names = self.limits, self.packages

        def start(node: Node) -> Any:
            count = node.cores if workers is None else workers
            return start_actor(ray, node, SandboxActor, (count, asked, level, names), AT_ONCE)

        self._cluster = Dispatcher(ray, start, leave_out=leave_out_unfit)
        self.workers = sum(workers or node.cores for node in self._cluster.nodes)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that programs run on now."""
        return self._cluster.nodes

    def _now(self, task: SandboxTask[T]) -> T:
        return self._later(task).result()

    def _later(self, task: SandboxTask[T]) -> Future[T]:
        return self._cluster.submit(Request(task.method, task.arguments, task.keywords))

    def close(self) -> None:
        """Cancel what has not been sent, wait for what has, and end the actors. The cluster stays."""
        self._cluster.close()
        super().close()
