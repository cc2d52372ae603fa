"""The processes that play a role on the nodes of a cluster: they are started together, asked together, and lost together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.support.extras import require
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.ray.cluster import lost_errors
from codea1_env.training.ray.learner_actor import LearnerActor
from codea1_env.training.trainer_arguments import Role

_FIRST = 2 * 3600.0
"""Seconds for what was never done before."""
_LEAST = 600.0
_TIMES = 10.0
"""How many times as long as ever before something may take."""
_PLACING = 60.0
"""Seconds in which a cluster that has what is asked for must give it."""
_ENDING = 10.0
"""Seconds that a process has to end by itself."""


class Patience:
    """Remembers how long things took.

    Example:
        >>> patience = Patience()
        >>> patience.took("learn", 8, 120.0)
        >>> patience.limit("learn", 8), patience.limit("learn", 4), patience.limit("save", 1)
        (1200.0, 600.0, 7200.0)
    """

    def __init__(self) -> None:
        self._slowest: dict[str, float] = {}

    def limit(self, what: str, amount: int) -> float:
        """Seconds after which something hangs."""
        slowest = self._slowest.get(what)
        return _FIRST if slowest is None else max(_LEAST, _TIMES * slowest * max(amount, 1))

    def took(self, what: str, amount: int, seconds: float) -> None:
        """Remember that something was done."""
        each = seconds / max(amount, 1)
        self._slowest[what] = max(each, self._slowest.get(what, 0.0))


class LearnerLostError(UpdateError):
    """A process that played a role is gone, and with it what the role has learned since the last checkpoint."""


class RoleGroup:
    """The processes of a role. If one fails, the others may wait for it for ever: then nothing can be asked any more.

    Raises a RunError if the cluster has no room for them.
    """

    def __init__(self, ray: Any, config: TrainConfig, role: Role, gpus: float, folder: str) -> None:
        self._ray = ray
        self.role = role
        self._failure: Exception | None = None
        self._patience = Patience()
        size = config.learner_processes
        groups: Any = require("ray.util.placement_group", "ray")
        strategies: Any = require("ray.util.scheduling_strategies", "ray")
        bundle = {"CPU": 1.0, "GPU": gpus} if gpus else {"CPU": 1.0}
        # GPUs talk fastest inside a machine; processors are not shared where another machine has some.
        self._placement = groups.placement_group(
            [bundle] * size, strategy="PACK" if gpus else "SPREAD"
        )
        if not self._placement.wait(_PLACING):
            self._remove_placement()
            raise RunError(
                f"Expect room for {size} processes of the {role} within {_PLACING:g} s, actually: there "
                "is none. Another program may have taken it: see `ray status`."
            )
        self._actors = [
            ray.remote(LearnerActor)
            .options(
                num_cpus=1,
                num_gpus=gpus,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=strategies.PlacementGroupSchedulingStrategy(
                    self._placement, placement_group_bundle_index=number
                ),
            )
            .remote(config, role, folder)
            for number in range(size)
        ]

    @property
    def size(self) -> int:
        """Number of processes."""
        return len(self._actors)

    def make(self, config: TrainConfig, problems: int, seed: int) -> Callable[[], Any]:
        """Begin to make the players; returns what waits for them. See `LearnerActor.make`."""
        group: dict[str, str] = {}
        if self.size > 1:
            # Variables as torch reads them; every process sees only the GPU that it was given.
            group = {"WORLD_SIZE": f"{self.size}", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
            group |= self.first("meeting_point")
        places = [group | {"RANK": f"{rank}"} if group else {} for rank in range(self.size)]
        return self.begin("make", [(config, problems, seed, place) for place in places])

    def all(self, method: str, *arguments: Any) -> list[Any]:
        """Ask all processes the same, and wait for their answers.

        Raises:
            LearnerLostError: One is gone.
            Exception: What one raised.
        """
        amount = _amount(arguments)
        if self.size > 1:  # sent once, not to each
            arguments = tuple(map(self._ray.put, arguments))
        return self.begin(method, [arguments] * self.size, amount)()  # type: ignore[no-any-return]

    def first(self, method: str, *arguments: Any) -> Any:
        """Ask the first process alone. See `all`."""
        return self.begin(method, [arguments], _amount(arguments))()[0]

    def begin(
        self, method: str, arguments: Sequence[tuple[Any, ...]], amount: int = 1
    ) -> Callable[[], Any]:
        """Ask one process after the other, each with arguments of its own; returns what waits for the answers.

        With a larger `amount` a process is given more time.
        """
        if self._failure is not None:
            raise self._failure
        asked = [
            getattr(actor, method).remote(*given)
            for actor, given in zip(self._actors, arguments, strict=False)
        ]
        return partial(self._wait, asked, method, amount)

    def _wait(self, references: list[Any], method: str, amount: int) -> list[Any]:
        """Wait for answers, not for ever, and not for the rest after the first failure."""
        waiting = references
        started = time.monotonic()
        limit = self._patience.limit(method, amount)
        try:
            while waiting:
                left = max(0.0, started + limit - time.monotonic())
                ready, waiting = self._ray.wait(waiting, timeout=left)
                if not ready:
                    raise LearnerLostError(
                        f"A process of the {self.role} hangs: no answer to {method!r} within {limit:.0f} s."
                    )
                self._ray.get(ready)
            self._patience.took(method, amount, time.monotonic() - started)
            return list(self._ray.get(references))
        except Exception as error:
            failure = self._explained(error)
            if self.size > 1 or isinstance(failure, LearnerLostError):
                self._failure = failure
            raise failure from None

    def _explained(self, error: Exception) -> Exception:
        """The exception that a process raised; or one that says that it is lost."""
        errors: Any = require("ray.exceptions", "ray")
        if isinstance(error, errors.RayTaskError):
            error = error.cause
        if isinstance(error, lost_errors(self._ray)):
            return LearnerLostError(
                f"A process of the {self.role} was lost ({type(error).__name__}): it was killed, its node is gone, or memory "
                "ran out there."
            )
        return error

    def close(self) -> None:
        """End all processes."""
        for actor in self._actors:
            with suppress(Exception):
                if self._failure is None:
                    self._ray.get(actor.close.remote(), timeout=_ENDING)
            with suppress(Exception):
                self._ray.kill(actor)
        self._remove_placement()

    def _remove_placement(self) -> None:
        groups: Any = require("ray.util.placement_group", "ray")
        with suppress(Exception):
            groups.remove_placement_group(self._placement)


def _amount(arguments: Sequence[Any]) -> int:
    return len(arguments[0]) if arguments and isinstance(arguments[0], list) else 1
