"""A referee whose rounds are judged on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import Any

from codea1_env.cluster.actors import JudgeActor
from codea1_env.cluster.errors import ClusterError
from codea1_env.cluster.nodes import LostError, asked, connect, nodes, start_actor
from codea1_env.cluster.requests import packed, unpacked
from codea1_env.judging.answers import AttackAnswers
from codea1_env.judging.rules import RefereeConfig
from codea1_env.judging.spread import Reply, SpreadReferee
from codea1_env.sandbox import InfraError, Sandbox, SandboxError

_ATTEMPTS = 3
_LOOK = 5.0  # seconds after which somebody who judges is asked whether it is alive
_SILENCE = 30.0


class RemoteJudges(SpreadReferee):
    """A referee whose `judge_answers` is done by actors on the nodes of a Ray cluster, each with a sandbox of one worker.

    Each problem has an actor that it goes to, which then remembers its reference's values. Verdicts are those of a local
    `Referee`, however many nodes there are. What an actor had not answered when it was lost is judged by a new one, on
    another node if there is one; what three were lost with is an InfraError.

    Args:
        sandbox: Reads what has to be read here. The sandboxes of the actors are like it.
        config: How rounds are judged.
        judges: How many actors; None for one per processor of the cluster.
        address: See `RemoteSandbox`.

    Raises:
        ClusterError: There is no cluster, or it has no processors.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        config: RefereeConfig | None = None,
        *,
        judges: int | None = None,
        address: str = "auto",
    ) -> None:
        ray = connect(address)
        cores = sum(node.cores for node in nodes(ray))
        if judges is not None and judges < 1:
            raise ValueError(f"Expect judges to be a positive integer, actually: {judges!r}")
        if not cores:
            raise ClusterError(
                "Expect a cluster with processors, actually: none of its nodes has any"
            )
        config = RefereeConfig() if config is None else config
        settings = (sandbox.limits, sandbox.level, sandbox.packages, config)
        turns = itertools.count()
        places = [_Place(ray, settings, turns) for _ in range(cores if judges is None else judges)]
        super().__init__(sandbox, config, places)


class _Place:
    """A place for one actor: it starts when it is needed, and again when it was lost."""

    def __init__(self, ray: Any, settings: tuple[Any, ...], turns: itertools.count[int]) -> None:
        self._ray = ray
        self._settings = settings
        self._turns = turns
        self._lock = threading.Lock()
        self._actor: Any = None
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
                    if self._actor is None:
                        self._actor = self._start()
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

    def _start(self) -> Any:
        """Start an actor; those of a cluster take turns on its nodes, which have as many turns as processors."""
        there = nodes(self._ray)
        rounds = range(max((node.cores for node in there), default=0))
        found = [node for turn in rounds for node in there if turn < node.cores]
        if not found:
            raise LostError("no node is left")
        node = found[next(self._turns) % len(found)]
        return start_actor(self._ray, node, JudgeActor, self._settings, at_once=2)

    def _wait(self, reference: Any) -> Any:
        while not self._ray.wait([reference], timeout=_LOOK)[0]:
            asked(self._ray, self._actor.alive.remote(), _SILENCE)
        return asked(self._ray, reference)

    def _end(self, *, gently: bool) -> None:
        actor, self._actor = self._actor, None
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
