"""A referee whose rounds are judged on the nodes of a cluster."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

from codea1_env.cluster.actors import JudgeActor, packed, unpacked
from codea1_env.cluster.nodes import (
    ClusterError,
    LostError,
    Node,
    asked,
    connect,
    end_actor,
    nodes,
    start_actor,
)
from codea1_env.judging.spread import Place, Reply, SpreadReferee
from codea1_env.judging.verdicts import AttackAnswers, RefereeConfig
from codea1_env.sandbox import InfraError, Sandbox, SandboxError

_log = logging.getLogger(__name__)
_ATTEMPTS = 3
_LOOK = 5.0  # seconds after which somebody who judges is asked whether it is alive
_SILENCE = 30.0


class RemoteJudges(SpreadReferee):
    """A referee whose `judge_answers` is done by actors on the nodes of a Ray cluster, each with a sandbox of one worker.

    Each problem has an actor that it goes to, which then remembers its reference's values. Verdicts are those of a local
    `Referee`, however many nodes there are. What an actor had not answered when it was lost is judged by a new one, on
    another node if there is one; what three were lost with is an InfraError. Nodes that join later get judges, too,
    also while others judge.

    Args:
        sandbox: Reads what has to be read here. The sandboxes of the actors are like it.
        config: How rounds are judged.
        workers: How many actors on each node; None for one per processor of the node.
        address: See `RemoteSandbox`.

    Raises:
        ClusterError: There is no cluster, or it has no processors.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        config: RefereeConfig | None = None,
        *,
        workers: int | None = None,
        address: str = "auto",
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"Expect workers to be a positive integer, actually: {workers!r}")
        self._ray = connect(address)
        self._seats = Seats(self._ray, workers)
        config = RefereeConfig() if config is None else config
        self._settings = (sandbox.limits, sandbox.level, sandbox.packages, config)
        super().__init__(sandbox, config, [])
        self._over = False
        self.join()

    def join(self) -> list[Place]:
        """Make places for the nodes that have joined; also for those whose actor could not be started before."""
        with self._joining:
            if self._over:
                return []
            missing = max(0, self._seats.look() - len(self._places))
            made = [_ActorPlace(self._ray, self._settings, self._seats) for _ in range(missing)]
            again = [each for each in self._places if isinstance(each, _ActorPlace) and each.failed]
            self._places += made
            return [*again, *made]

    def close(self) -> None:
        """End all judges."""
        with self._joining:
            self._over = True
        super().close()


class _ActorPlace:
    """A place for one actor: it starts when it is needed, and again when it was lost."""

    def __init__(self, ray: Any, settings: tuple[Any, ...], seats: Seats) -> None:
        self._ray = ray
        self._settings = settings
        self._seats = seats
        self._lock = threading.Lock()
        self._actor: Any = None
        self._node: Node | None = None
        self._closed = False
        self.failed = False
        """The last attempt to make it ready had no success. No problem may have its home here, so nobody else tries."""

    def ask(self, part: AttackAnswers) -> Reply:
        """Have answers judged."""
        failures: list[str] = []
        data = packed([part])
        with self._lock:
            while len(failures) < _ATTEMPTS:
                if self._closed:
                    raise SandboxError("Expect open judges, actually: close() was called")
                try:
                    self._settle()
                    [reply] = unpacked(self._wait(self._actor.judge.remote(data)))
                except LostError as error:
                    failures.append(str(error))
                    self._end(gently=False)
                else:
                    if isinstance(reply, BaseException):
                        raise reply
                    found: Reply = reply
                    return found
        raise InfraError(
            f"Answers could not be judged: {_ATTEMPTS} judges were lost: {'; '.join(failures)}"
        )

    def ready(self) -> bool:
        """Start the actor; whether there is one."""
        self.failed = False
        with self._lock:
            try:
                if not self._closed:
                    self._settle()
            except Exception as error:
                _log.info("A judge was not started, and will be tried again: %s", error)
                self._end(gently=False)
                self.failed = not self._closed
            return self._actor is not None

    def _settle(self) -> None:
        """Have an actor, on a node that is to have it."""
        if self._node is not None and self._seats.leave_crowded(self._node):
            self._node = None
            self._end(gently=True)
        while self._actor is None:
            node = self._node = self._seats.take()
            try:
                self._actor = start_actor(self._ray, node, JudgeActor, self._settings, at_once=2)
            except ClusterError as error:
                self._end(gently=False)
                self._seats.refuse(node, error)

    def _wait(self, reference: Any) -> Any:
        while not self._ray.wait([reference], timeout=_LOOK)[0]:
            asked(self._ray, self._actor.alive.remote(), _SILENCE)
        return asked(self._ray, reference)

    def _end(self, *, gently: bool) -> None:
        actor, self._actor = self._actor, None
        if self._node is not None:
            self._seats.leave(self._node)
            self._node = None
        if actor is not None:
            end_actor(self._ray, actor, gently=gently)

    def hang_up(self) -> None:
        """Take nothing more."""
        self._closed = True

    def close(self) -> None:
        """End the actor, when it has answered."""
        with self._lock:
            self._end(gently=True)


class Seats:
    """Seats for judges on the nodes that there are. Threads may share it."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        self._ray = ray
        self._workers = workers
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
        """See which nodes there are; how many judges are to work on them."""
        there = nodes(self._ray)
        with self._lock:
            self._there = [node for node in there if node.id not in self._refused]
            return sum(map(self._wanted, self._there))

    def take(self) -> Node:
        """Take a seat where most are free in proportion."""
        self.look()
        with self._lock:
            if not self._there:
                raise LostError("no node is left")
            node = min(
                self._there, key=lambda each: (self._taken[each.id] + 1) / self._wanted(each)
            )
            self._taken[node.id] += 1
            return node

    def leave(self, node: Node) -> None:
        """Give a seat back."""
        with self._lock:
            self._taken[node.id] -= 1

    def leave_crowded(self, node: Node) -> bool:
        """Give a seat back if the node has more judges than it is to have, and another one fewer."""
        with self._lock:
            free = any(self._taken[each.id] < self._wanted(each) for each in self._there)
            crowded = node in self._there and self._taken[node.id] > self._wanted(node)
            if free and crowded:
                self._taken[node.id] -= 1
            return free and crowded

    def refuse(self, node: Node, error: ClusterError) -> None:
        """Leave out a node that cannot have a judge."""
        if node.id in self._first:
            raise error
        _log.warning("%s", error)
        with self._lock:
            self._refused.add(node.id)

    def _wanted(self, node: Node) -> int:
        return node.cores if self._workers is None else self._workers
