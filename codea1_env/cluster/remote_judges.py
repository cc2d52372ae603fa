"""A referee whose rounds are judged on the nodes of a cluster."""

from __future__ import annotations

import logging
from typing import Any

from codea1_env.cluster.actors import JudgeActor, packed, unpacked
from codea1_env.cluster.nodes import connect
from codea1_env.cluster.places import ActorPlace, Seats
from codea1_env.judging.spread import Place, Reply, SpreadReferee
from codea1_env.judging.verdicts import AttackAnswers, RefereeConfig
from codea1_env.sandbox import Sandbox

_log = logging.getLogger(__name__)


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
        self._ray = connect(address)
        self._seats = Seats(self._ray, lambda node: workers or node.cores)
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
            made = [_JudgePlace(self._ray, self._seats, self._settings) for _ in range(missing)]
            again = [each for each in self._places if isinstance(each, _JudgePlace) and each.failed]
            self._places += made
            return [*again, *made]

    def close(self) -> None:
        """End all judges."""
        with self._joining:
            self._over = True
        super().close()


class _JudgePlace(ActorPlace):
    def __init__(self, ray: Any, seats: Seats, settings: tuple[Any, ...]) -> None:
        super().__init__(ray, seats, JudgeActor, lambda _: settings, at_once=2)
        self.failed = False
        """The last attempt to make it ready had no success. No problem may have its home here, so nobody else tries."""

    def ask(self, part: AttackAnswers) -> Reply:
        """Have answers judged."""
        [reply] = unpacked(self.call("judge", packed([part])))
        if isinstance(reply, BaseException):
            raise reply
        found: Reply = reply
        return found

    def ready(self) -> bool:
        """Start the actor; whether there is one."""
        self.failed = False
        try:
            self.start()
        except Exception as error:
            _log.info("A judge was not started, and will be tried again: %s", error)
            self.failed = not self._closed
            return False
        return True
