"""Gives requests to sandboxes on many nodes, in batches, and again where a node was lost."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from codea1_env.cluster.actors import Failure, Request, packed, unpacked
from codea1_env.cluster.nodes import LOST, ClusterError, LostError, Node, end_actor, nodes
from codea1_env.sandbox import InfraError, SandboxError

BATCH = 64
"""Requests that are sent together at most."""
IN_FLIGHT = 2
"""Batches that a node has at the same time: while it works on one, the next is on its way."""
AT_ONCE = IN_FLIGHT + 1
"""Calls that an actor must answer at the same time: batches, and whether it is alive."""
WAITING = 4_096
"""Requests that may wait before whoever brings the next one has to wait."""
_ATTEMPTS = 3
_LOOK = 2.0  # seconds between looks at which nodes there are
_SILENCE = 30.0  # seconds without a sign of life after which a node is given up


def batch_size(waiting: int, nodes: int) -> int:
    """How many requests a node gets next: of few each node gets a share.

    Example:
        >>> batch_size(1000, 4), batch_size(10, 4)
        (64, 3)
    """
    return min(BATCH, math.ceil(waiting / max(1, nodes)))


@dataclass
class _Task:
    """A request and whoever waits for it."""

    request: bytes  # packed when it came: what its owner changes later is not meant, and what cannot be sent is theirs
    future: Future[Any] = field(default_factory=Future)
    failures: list[str] = field(default_factory=list)


@dataclass(eq=False)
class _Home:
    """An actor on a node, and what it is working on."""

    node: Node
    actor: Any
    batches: dict[Any, list[_Task]] = field(default_factory=dict)
    asked_at: float = 0.0
    heard_at: float = field(default_factory=time.monotonic)


class Dispatcher:
    """Keeps the sandboxes of all nodes busy."""

    def __init__(self, ray: Any, start: Callable[[Node], Any], *, leave_out: bool) -> None:
        self._ray = ray
        self._owner = os.getpid()
        self._start = start
        self._leave_out = leave_out
        self._lost_errors = LOST(ray)
        self._waiting: deque[_Task] = deque()
        self._homes: dict[str, _Home] = {}
        self._refused: dict[str, str] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._helpers = ThreadPoolExecutor(8, "cluster-help")
        self._starting: set[str] = set()
        self._begun = False
        try:
            self._begin(nodes(ray))
        except BaseException:
            self._end_all()  # also what another node is starting just now
            raise
        self._begun = True  # a node that joins from now on and does not fit is left out
        self._thread = threading.Thread(target=self._work, name="cluster-dispatch", daemon=True)
        self._thread.start()

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are at work."""
        with self._changed:
            return [home.node for home in self._homes.values()]

    def submit(self, request: Request) -> Future[Any]:
        """Queue a request. Waits while too many others wait."""
        if os.getpid() != self._owner:
            raise SandboxError(
                "Expect a remote sandbox to be used in the process that made it, actually: in a forked one; make one there"
            )
        try:
            task = _Task(packed([request]))
        except Exception as error:
            raise TypeError(
                f"Expect a job that can be sent to another machine, actually: {type(error).__name__}: {error}"
            ) from error
        with self._changed:
            while len(self._waiting) >= WAITING and not self._closed:
                self._changed.wait()
            if self._closed:
                raise SandboxError("Expect an open sandbox, actually: close() was called")
            self._waiting.append(task)
            self._changed.notify_all()
        return task.future

    def close(self) -> None:
        """Cancel what has not been sent, wait for what has, and end all actors."""
        if os.getpid() != self._owner:
            return
        with self._changed:
            self._closed = True
            waiting, self._waiting = list(self._waiting), deque()
            self._changed.notify_all()
        for task in waiting:
            if not task.future.cancel():  # one that is to be repeated has begun
                task.future.set_exception(SandboxError("the sandbox was closed meanwhile"))
        with self._changed:
            while any(home.batches for home in self._homes.values()):
                self._changed.wait(_LOOK)
                self._check_signs_of_life()
        self._thread.join()
        self._end_all()

    def _end_all(self) -> None:
        """End all actors; one that is being started is ended by who starts it."""
        with self._changed:
            self._closed = True
            homes, self._homes = list(self._homes.values()), {}
        for home in homes:
            self._helpers.submit(end_actor, self._ray, home.actor, gently=True)
        self._helpers.shutdown()

    # Nodes

    def _begin(self, found: list[Node]) -> None:
        """Start an actor on each node that is there at the beginning."""
        for future in [self._helpers.submit(self._add, node) for node in found]:
            future.result()
        if not self._homes:
            why = "; ".join(self._refused.values()) or "it has no node with processors"
            raise ClusterError(f"Expect a cluster whose nodes can run programs, actually: {why}")

    def _add(self, node: Node) -> None:
        try:
            actor = self._start(node)
        except ClusterError as error:
            if not self._leave_out and not self._begun:
                raise
            with self._changed:
                self._refused[node.id] = str(error)
        except OSError:
            return  # gone again; if it comes back, it is another one
        else:
            with self._changed:
                late = self._closed  # nobody would end what is put among the homes now
                if not late:
                    self._homes[node.id] = _Home(node, actor)
                    self._changed.notify_all()
            if late:
                end_actor(self._ray, actor, gently=True)
        finally:
            with self._changed:
                self._starting.discard(node.id)

    def _look(self) -> None:
        """Give actors to nodes that have joined, and give up those that have gone."""
        found = {node.id: node for node in nodes(self._ray)}
        with self._changed:
            for home in [h for h in self._homes.values() if h.node.id not in found]:
                self._give_up(home, "the node has left the cluster")
            known = {*self._homes, *self._refused, *self._starting}
            new = [node for node in found.values() if node.id not in known]
            self._starting |= {node.id for node in new}
            self._check_signs_of_life()
        for node in new:
            self._helpers.submit(self._add, node)

    def _check_signs_of_life(self) -> None:
        """Ask those who have work whether they are alive; give up who has not said so for long."""
        now = time.monotonic()
        for home in list(self._homes.values()):
            if not home.batches:
                home.heard_at = now
            elif now - home.heard_at > _SILENCE:
                self._give_up(home, f"no sign of life for {_SILENCE:g} s")
            elif now - home.asked_at > _LOOK:
                home.asked_at = now
                home.actor.alive.remote().future().add_done_callback(partial(self._heard, home))

    def _heard(self, home: _Home, answer: Future[Any]) -> None:
        if answer.exception() is None:
            home.heard_at = time.monotonic()

    def _give_up(self, home: _Home, why: str) -> None:
        """Let others do what a node had to do. With the lock held."""
        if self._homes.get(home.node.id) is not home:  # it has been given up
            return
        del self._homes[home.node.id]
        for tasks in home.batches.values():
            self._again(tasks, f"{home.node.address}: {why}")
        home.batches.clear()
        # Elsewhere: in a thread that Ray calls us back in, Ray itself must not be called.
        self._helpers.submit(end_actor, self._ray, home.actor, gently=False)
        self._changed.notify_all()

    # Batches

    def _work(self) -> None:
        """Send batches, and look after nodes, until closed."""
        looked = time.monotonic()
        while True:
            with self._changed:
                if self._closed:
                    return
                ready = [(home, self._batch(home)) for home in self._free()]
                ready = [(home, tasks) for home, tasks in ready if tasks]
                if not ready:
                    self._changed.wait(max(0.01, looked + _LOOK - time.monotonic()))
            for home, tasks in ready:
                self._send(home, tasks)
            if time.monotonic() - looked > _LOOK:
                self._look()
                looked = time.monotonic()

    def _free(self) -> list[_Home]:
        """Return the nodes that can have another batch, the idle ones first."""
        free = [home for home in self._homes.values() if len(home.batches) < IN_FLIGHT]
        return sorted(free, key=lambda home: len(home.batches))

    def _batch(self, home: _Home) -> list[_Task]:
        """Take the next requests for a node."""
        size = batch_size(len(self._waiting), len(self._homes))
        tasks: list[_Task] = []
        while self._waiting and len(tasks) < size:
            task = self._waiting.popleft()
            # A repeated one is running already.
            if task.failures or task.future.set_running_or_notify_cancel():
                tasks.append(task)
        if tasks:
            home.batches[id(tasks)] = tasks
            self._changed.notify_all()
        return tasks

    def _send(self, home: _Home, tasks: list[_Task]) -> None:
        try:
            answer = home.actor.run.remote(packed([task.request for task in tasks]))
        except Exception as error:
            with self._changed:
                home.batches.pop(id(tasks), None)
            for task in tasks:
                task.future.set_exception(error)
            return
        answer.future().add_done_callback(partial(self._done, home, tasks))

    def _done(self, home: _Home, tasks: list[_Task], answer: Future[Any]) -> None:
        error = answer.exception()
        with self._changed:
            if id(tasks) not in home.batches:
                return  # given up meanwhile: somebody else does it
            if isinstance(error, (*self._lost_errors, LostError)):
                self._give_up(home, type(error).__name__)
                return
            del home.batches[id(tasks)]
            home.heard_at = time.monotonic()
            self._changed.notify_all()
        if error is not None:
            for task in tasks:
                task.future.set_exception(error)
            return
        for task, data in zip(tasks, unpacked(answer.result()), strict=True):
            try:
                [result] = unpacked(data)
            except Exception as unread:  # an exception that cannot be made again here
                result = Failure(unread)
            if not isinstance(result, Failure):
                task.future.set_result(result)
            elif isinstance(result.error, InfraError):
                with self._changed:
                    self._again([task], f"{home.node.address}: {result.error}")
            else:
                task.future.set_exception(result.error)

    def _again(self, tasks: list[_Task], why: str) -> None:
        """Queue requests once more, before all others. With the lock held."""
        for task in reversed(tasks):
            task.failures.append(why)
            if len(task.failures) < _ATTEMPTS and not self._closed:
                self._waiting.appendleft(task)
            else:
                task.future.set_exception(
                    InfraError(
                        f"A job could not be judged on {len(task.failures)} nodes: {'; '.join(task.failures)}"
                    )
                )
        self._changed.notify_all()
