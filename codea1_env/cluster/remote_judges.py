"""A referee whose rounds are judged on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from codea1_env.cluster.actors import JudgeActor
from codea1_env.cluster.errors import ClusterError
from codea1_env.cluster.nodes import LostError, Node, asked, connect, start_actor
from codea1_env.cluster.requests import packed, unpacked
from codea1_env.cluster.seats import Seats
from codea1_env.judging.spread import Place, Reply, SpreadReferee
from codea1_env.judging.verdicts import AttackAnswers, RefereeConfig
from codea1_env.sandbox import InfraError, Sandbox, SandboxError

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
        """Make places for the nodes that have joined."""
        with self._joining:
            if self._over:
                return []
            missing = max(0, self._seats.look() - len(self._places))
            made = [_Place(self._ray, self._settings, self._seats) for _ in range(missing)]
            self._places += made
            return list(made)

    def close(self) -> None:
        """End all judges."""
        with self._joining:
            self._over = True
        super().close()


class _Place:
    """A place for one actor: it starts when it is needed, and again when it was lost."""

    def __init__(self, ray: Any, settings: tuple[Any, ...], seats: Seats) -> None:
        self._ray = ray
        self._settings = settings
        self._seats = seats
        self._lock = threading.Lock()
        self._actor: Any = None
        self._node: Node | None = None
        self._closed = False

    def ask(self, part: AttackAnswers) -> Reply:
        """Have answers judged.

        Raises:
            InfraError: The actor was lost, and so were two more.
        """
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
        """Start the actor; whether there is one. If not, it is tried again when it is needed."""
        with contextlib.suppress(Exception), self._lock:
            if not self._closed:
                self._settle()
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
        if actor is None:
            return
        with contextlib.suppress(Exception):  # whatever is wrong with it, it is not needed any more
            if gently:
                asked(self._ray, actor.close.remote(), 10.0)
            self._ray.kill(actor)

    def hang_up(self) -> None:
        """Take nothing more."""
        self._closed = True

    def close(self) -> None:
        """End the actor, when it has answered."""
        with self._lock:
            self._end(gently=True)
