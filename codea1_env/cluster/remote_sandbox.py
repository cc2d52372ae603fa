"""A sandbox whose programs run on the nodes of a cluster."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from codea1_env.cluster.actors import Failure, Request, SandboxActor, packed, unpacked
from codea1_env.cluster.nodes import Node, connect
from codea1_env.cluster.places import ATTEMPTS, ActorPlace, Seats
from codea1_env.sandbox import InfraError, Limits, Sandbox, SandboxError
from codea1_env.sandbox.tasks import SandboxTask

T = TypeVar("T")
_BATCH = 64
"""Requests that are sent together at most."""
_IN_FLIGHT = 2
"""Batches that a node has at the same time: while it works on one, the next is on its way."""
_WAITING = 4_096
"""Requests that may wait before whoever brings the next one has to wait."""
_LOOK = 2.0
"""Seconds between looks at which nodes there are."""


@dataclass
class _Task:
    request: bytes  # packed when it came: what its owner changes later is not meant, and what cannot be sent is theirs
    future: Future[Any] = field(default_factory=Future)
    failures: list[str] = field(default_factory=list)


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

    Raises:
        ClusterError: There is no cluster, or a node of it cannot be used. One that joins later is left out then.
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
    ) -> None:
        super().__init__(1 if workers is None else workers, limits, level=level, packages=packages)
        self._ray = connect(address)
        self._wanted = (workers, self.limits, level, self.packages)
        self._owner = os.getpid()
        self._waiting: deque[_Task] = deque()
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._places: list[ActorPlace] = []
        self._threads: list[threading.Thread] = []
        self._seats = Seats(self._ray, lambda node: 1)
        missing = self._make_places()
        try:
            with ThreadPoolExecutor(len(missing)) as starting:
                list(starting.map(ActorPlace.start, missing))
        except BaseException:
            self.close()
            raise
        self.workers = sum(workers or node.cores for node in self.nodes)
        self._serve(missing)
        self._run_beside(self._watch)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that programs run on now."""
        return [place.node for place in self._places if place.node is not None]

    def _now(self, task: SandboxTask[T]) -> T:
        return self._later(task).result()

    def _later(self, task: SandboxTask[T]) -> Future[T]:
        if os.getpid() != self._owner:
            raise SandboxError(
                "Expect a remote sandbox to be used in the process that made it, actually: in a forked one; make one there"
            )
        try:
            made = _Task(packed([Request(task.method, task.arguments, task.keywords)]))
        except Exception as error:
            raise TypeError(
                f"Expect a job that can be sent to another machine, actually: {type(error).__name__}: {error}"
            ) from error
        with self._changed:
            while len(self._waiting) >= _WAITING and not self._over.is_set():
                self._changed.wait()
            if self._over.is_set():
                raise SandboxError("Expect an open sandbox, actually: close() was called")
            self._waiting.append(made)
            self._changed.notify()
        return made.future

    def close(self) -> None:
        """Cancel what has not been sent, wait for what has, and end the actors. The cluster stays."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._over.set()
            waiting, self._waiting = list(self._waiting), deque()
            self._changed.notify_all()
        for task in waiting:
            if not task.future.cancel():  # one that is to be repeated has begun
                task.future.set_exception(SandboxError("the sandbox was closed meanwhile"))
        for thread in self._threads:
            thread.join()
        for place in self._places:
            place.close()
        super().close()

    def _make_places(self) -> list[ActorPlace]:
        """Make places for the nodes that have joined."""
        count, limits, level, packages = self._wanted
        made = [
            ActorPlace(
                self._ray,
                self._seats,
                SandboxActor,
                lambda node: (count or node.cores, limits, level, packages),
                at_once=_IN_FLIGHT + 1,
            )
            for _ in range(self._seats.look() - len(self._places))
        ]
        self._places += made
        return made

    def _serve(self, places: Sequence[ActorPlace]) -> None:
        for place in places:
            for _ in range(_IN_FLIGHT):
                self._run_beside(self._work, place)

    def _run_beside(self, target: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, name="cluster", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK):
            self._serve(self._make_places())

    def _work(self, place: ActorPlace) -> None:
        while tasks := self._batch():
            try:
                answers = unpacked(place.call("run", packed([task.request for task in tasks])))
            except Exception as error:
                for task in tasks:
                    task.future.set_exception(error)
                continue
            for task, data in zip(tasks, answers, strict=True):
                self._done(task, data)

    def _batch(self) -> list[_Task]:
        """Take the next requests for a node, of few its share; none when the sandbox is closed."""
        tasks: list[_Task] = []
        with self._changed:
            while not tasks and not self._over.is_set():
                size = math.ceil(len(self._waiting) / len(self._places))
                while self._waiting and len(tasks) < min(_BATCH, size):
                    task = self._waiting.popleft()
                    # A repeated one is running already.
                    if task.failures or task.future.set_running_or_notify_cancel():
                        tasks.append(task)
                if not tasks:
                    self._changed.wait()
            self._changed.notify_all()
        return tasks

    def _done(self, task: _Task, data: bytes) -> None:
        try:
            [result] = unpacked(data)
        except Exception as unread:  # an exception that cannot be made again here
            result = Failure(unread)
        if not isinstance(result, Failure):
            task.future.set_result(result)
            return
        if not isinstance(result.error, InfraError):
            task.future.set_exception(result.error)
            return
        task.failures.append(str(result.error))
        with self._changed:
            again = len(task.failures) < ATTEMPTS and not self._over.is_set()
            if again:
                self._waiting.appendleft(task)
                self._changed.notify()
        if not again:
            task.future.set_exception(
                InfraError(
                    f"A job could not be judged in {len(task.failures)} attempts: {'; '.join(task.failures)}"
                )
            )
