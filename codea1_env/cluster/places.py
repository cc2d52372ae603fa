"""Places for actors on the nodes of a cluster: an actor starts when it is needed, and again elsewhere when it is lost."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from codea1_env.cluster.nodes import (
    ClusterError,
    LostError,
    Node,
    asked,
    end_actor,
    nodes,
    start_actor,
)
from codea1_env.sandbox import InfraError, SandboxError

_log = logging.getLogger(__name__)
ATTEMPTS = 3
"""Actors with which the same work may be lost."""
_LOOK = 5.0  # seconds after which an actor at work is asked whether it is alive
_SILENCE = 30.0


class Seats:
    """Seats for actors on the nodes that there are. Threads may share it.

    Args:
        ray: The connected library.
        wanted: How many actors a node is to have.

    Raises:
        ClusterError: No node has processors.
    """

    def __init__(self, ray: Any, wanted: Callable[[Node], int]) -> None:
        self._ray = ray
        self._wanted = wanted
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._there: list[Node] = []
        if not self.look():
            raise ClusterError(
                "Expect a cluster with processors, actually: none of its nodes has any"
            )
        self._first = {node.id for node in self._there}

    def look(self) -> int:
        """See which nodes there are; returns how many actors are to work on them."""
        there = nodes(self._ray)
        with self._lock:
            self._there = [node for node in there if node.id not in self._refused]
            return sum(map(self._wanted, self._there))

    def take(self, lost: set[str]) -> Node:
        """Take a seat where most are free in proportion; on a `lost` node only if there is no other."""
        self.look()
        with self._lock:
            if not self._there:
                raise LostError("no node is left")

            def crowded(node: Node) -> tuple[bool, float]:
                return node.id in lost, (self._taken[node.id] + 1) / self._wanted(node)

            node = min(self._there, key=crowded)
            self._taken[node.id] += 1
            return node

    def leave(self, node: Node) -> None:
        """Give a seat back."""
        with self._lock:
            self._taken[node.id] -= 1

    def leave_crowded(self, node: Node) -> bool:
        """Give a seat back if the node has more actors than it is to have, and another one fewer."""
        with self._lock:
            free = any(self._taken[each.id] < self._wanted(each) for each in self._there)
            crowded = node in self._there and self._taken[node.id] > self._wanted(node)
            if free and crowded:
                self._taken[node.id] -= 1
            return free and crowded

    def refuse(self, node: Node, error: ClusterError) -> None:
        """Leave out a node that cannot have an actor; one that was there at the beginning is an error."""
        if node.id in self._first:
            raise error
        _log.warning("%s", error)
        with self._lock:
            self._refused.add(node.id)


class ActorPlace:
    """A place for one actor.

    Args:
        ray: The connected library.
        seats: Where the actor may be.
        kind: Class of the actor.
        arguments: Arguments of the actor on a node.
        at_once: Calls that the actor answers at the same time.
    """

    def __init__(
        self,
        ray: Any,
        seats: Seats,
        kind: type,
        arguments: Callable[[Node], tuple[Any, ...]],
        at_once: int,
    ) -> None:
        self._ray = ray
        self._seats = seats
        self._kind = kind
        self._arguments = arguments
        self._at_once = at_once
        self._lock = threading.Lock()
        self._actor: Any = None
        self._asking: Counter[Any] = Counter()
        self._closed = False
        self.node: Node | None = None
        """Where the actor is."""

    def call(self, method: str, data: bytes) -> bytes:
        """Have the actor do something; what is lost with one is done by the next.

        Raises:
            InfraError: Three were lost.
        """
        failures: list[str] = []
        lost: set[str] = set()
        while len(failures) < ATTEMPTS:
            actor = None
            try:
                actor = self._begin(lost)
                return self._wait(actor, getattr(actor, method).remote(data))
            except LostError as error:
                failures.append(str(error))
                self._lose(actor, lost)
            finally:
                self._leave(actor)
        raise InfraError(
            f"A job could not be judged: {ATTEMPTS} actors were lost: {'; '.join(failures)}"
        )

    def start(self) -> None:
        """Have an actor, on a node that is to have it.

        Raises:
            ClusterError: A node that was there at the beginning cannot have one.
            LostError: The node is gone, or there is none.
            SandboxError: It is closed.
        """
        actor = self._begin(set())
        self._leave(actor)

    def _begin(self, lost: set[str]) -> Any:
        with self._lock:
            if self._closed:
                raise SandboxError("Expect an open sandbox, actually: close() was called")
            if self.node is not None and self._seats.leave_crowded(self.node):
                # What it works on is waited for: see `_leave`.
                moved, self._actor, self.node = self._actor, None, None
                if not self._asking[moved]:
                    end_actor(self._ray, moved, gently=True)
            while self._actor is None:
                node = self.node = self._seats.take(lost)
                try:
                    self._actor = start_actor(
                        self._ray, node, self._kind, self._arguments(node), self._at_once
                    )
                except ClusterError as error:
                    self._end(gently=False)
                    self._seats.refuse(node, error)
                except BaseException:
                    lost.add(node.id)
                    self._end(gently=False)
                    raise
            self._asking[self._actor] += 1
            return self._actor

    def _leave(self, actor: Any) -> None:
        if actor is None:
            return
        with self._lock:
            self._asking[actor] -= 1
            last = not self._asking[actor]
            if last:
                del self._asking[actor]
            moved = last and actor is not self._actor
        if moved:
            end_actor(self._ray, actor, gently=True)

    def hang_up(self) -> None:
        """Take nothing more."""
        self._closed = True

    def close(self) -> None:
        """Take nothing more, and end the actor."""
        self._closed = True
        with self._lock:
            self._end(gently=True)

    def _wait(self, actor: Any, reference: Any) -> bytes:
        while not self._ray.wait([reference], timeout=_LOOK)[0]:
            asked(self._ray, actor.alive.remote(), _SILENCE)
        found: bytes = asked(self._ray, reference)
        return found

    def _lose(self, actor: Any, lost: set[str]) -> None:
        with self._lock:
            if actor is not None and self._actor is actor:
                if self.node is not None:
                    lost.add(self.node.id)
                self._end(gently=False)

    def _end(self, *, gently: bool) -> None:
        actor, self._actor = self._actor, None
        if self.node is not None:
            self._seats.leave(self.node)
            self.node = None
        if actor is not None:
            end_actor(self._ray, actor, gently=gently)
