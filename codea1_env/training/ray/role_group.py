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
from codea1_env.training.ray.learner_actor import LearnerActor
from codea1_env.training.ray.writer_actor import WriterActor
from codea1_env.training.trainer_arguments import Role

_PLACING = 60.0
"""Seconds in which a cluster that has what is asked for must give it."""
_ENDING = 10.0
"""Seconds that a process has to end by itself."""
_GIVEN_BACK = 5.0


class LearnerLostError(UpdateError):
    """A process that played a role is gone, and with it what the role has learned since the last checkpoint."""


class RoleGroup:
    """The processes of a role. If one fails, the others may wait for it for ever: then nothing can be asked any more.

    Raises a RunError if the cluster has no room for them.
    """

    def __init__(self, ray: Any, config: TrainConfig, role: Role, gpu: bool, folder: str) -> None:
        self._ray = ray
        self.role = role
        self._failure: Exception | None = None
        groups: Any = require("ray.util.placement_group", "ray")
        strategies: Any = require("ray.util.scheduling_strategies", "ray")
        learn, write = config.devices_of(role)
        processor = {"CPU": 1.0}
        device = {"CPU": 1.0, "GPU": 1.0} if gpu else processor
        # One that never learns answers through the writers, and needs no device for that.
        bundles = [device] * learn or [processor]
        self.size = len(bundles)
        """Number of processes that learn; those behind them only write."""
        bundles += [device] * write
        self._actors: list[Any] = []
        self._writers: list[Any] = []
        # GPUs talk fastest inside a machine; processors are not shared where another machine has some.
        self._placement = groups.placement_group(bundles, strategy="PACK" if gpu else "SPREAD")
        if not self._placement.wait(_PLACING):
            self.close()
            raise RunError(
                f"Expect room for {len(bundles)} processes of the {role} within {_PLACING:g} s, actually: there "
                "is none. Another program may have taken it: see `ray status`."
            )
        for number, bundle in enumerate(bundles):
            place = strategies.PlacementGroupSchedulingStrategy(self._placement, number)
            actor = ray.remote(LearnerActor if number < self.size else WriterActor).options(
                num_cpus=1, num_gpus=bundle.get("GPU", 0), scheduling_strategy=place
            )
            (self._actors if number < self.size else self._writers).append(actor.remote(folder))

    def make(self, config: TrainConfig, problems: int, seed: int) -> Callable[[], Any]:
        """Begin to make the players; returns what waits for them. See `LearnerActor.make`."""
        group: dict[str, str] = {}
        if self.size > 1:
            # Variables as torch reads them; every process sees only the GPU that it was given.
            group = {"WORLD_SIZE": f"{self.size}", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
            group |= self.first("meeting_point")
        places = [group | {"RANK": f"{rank}"} if group else {} for rank in range(self.size)]
        started = [writer.start.remote(config, self.role) for writer in self._writers]
        writers = (self._writers, started)
        asked = [(config, self.role, problems, seed, place, writers) for place in places]
        return self.begin("make", asked)

    def all(self, method: str, *arguments: Any) -> list[Any]:
        """Ask all processes the same, and wait for their answers.

        Raises:
            LearnerLostError: One is gone.
            Exception: What one raised.
        """
        if self.size > 1:  # sent once, not to each
            arguments = tuple(map(self._ray.put, arguments))
        return self.begin(method, [arguments] * self.size)()  # type: ignore[no-any-return]

    def first(self, method: str, *arguments: Any) -> Any:
        """Ask the first process alone. See `all`."""
        return self.begin(method, [arguments])()[0]

    def begin(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> Callable[[], Any]:
        """Ask one process after the other, each with arguments of its own; returns what waits for the answers."""
        if self._failure is not None:
            raise self._failure
        asked = [
            getattr(actor, method).remote(*given)
            for actor, given in zip(self._actors, arguments, strict=False)
        ]
        return partial(self._wait, asked)

    def _wait(self, references: list[Any]) -> list[Any]:
        """Wait for answers, but not for the rest after the first failure."""
        waiting = references
        try:
            while waiting:
                ready, waiting = self._ray.wait(waiting)
                self._ray.get(ready)
            return list(self._ray.get(references))
        except Exception as error:
            failure = self._explained(error, references)
            if self.size > 1 or isinstance(failure, LearnerLostError):
                self._failure = failure
            raise failure from None

    def _explained(self, error: Exception, references: list[Any]) -> Exception:
        """The exception that a process raised; or one that says that it is lost, if one is."""
        errors: Any = require("ray.exceptions", "ray")
        raised = [error]
        if self.size > 1:
            # Another one may have failed first because it could not reach the lost one.
            ended, _ = self._ray.wait(references, num_returns=len(references), timeout=_ENDING)
            for each in ended:
                try:
                    self._ray.get(each)
                except errors.RayError as other:
                    raised.append(other)
        causes = [e.cause if isinstance(e, errors.RayTaskError) else e for e in raised]
        for cause in causes:
            if isinstance(cause, errors.RayError):
                return LearnerLostError(
                    f"A process of the {self.role} was lost ({type(cause).__name__}): it was killed, its node is gone, or "
                    "memory ran out there."
                )
        return causes[0]

    def close(self) -> None:
        """End all processes."""
        for actor in (*self._actors, *self._writers):
            with suppress(Exception):
                if self._failure is None:
                    self._ray.get(actor.close.remote(), timeout=_ENDING)
            with suppress(Exception):
                self._ray.kill(actor)
        groups: Any = require("ray.util.placement_group", "ray")
        with suppress(Exception):
            groups.remove_placement_group(self._placement)


def processes_of(config: TrainConfig, roles: Sequence[Role]) -> int:
    """Return the number of processes of these roles."""
    return sum(max(learn, 1) + write for learn, write in map(config.devices_of, roles))


def device_of(
    ray: Any, config: TrainConfig, roles: Sequence[Role], say: Callable[[str], None]
) -> bool:
    """Say what every device does, before anything is loaded; returns whether devices are GPUs.

    Raises a RunError if the cluster has not enough free.
    """
    divided = {role: config.devices_of(role) for role in roles}
    processes = processes_of(config, roles) + 1
    there, free = ray.cluster_resources(), _free_soon(ray, processes)
    gpu = bool(there.get("GPU", 0))
    each = [f"{role}: {learn} learn, {write} write" for role, (learn, write) in divided.items()]
    told = f" for language models ({'; '.join(each)})" if each else ""
    wanted = {"GPU": ("GPUs", sum(map(sum, divided.values())))} if gpu else {}
    wanted["CPU"] = (f"processors{told} and a task that judges", processes)
    for kind, (name, asked) in wanted.items():  # what is scarcer first
        if free.get(kind, 0) < asked:
            raise RunError(
                f"Expect {asked} {name}{told if kind == 'GPU' else ''}, actually: the cluster has {there.get(kind, 0):g}, "
                f"of which {free.get(kind, 0):g} are free. Add nodes, lower coder.devices or tester.devices, or start Ray with "
                "more (`ray start --num-cpus`)."
            )
    if each:
        kind = "GPU" if gpu else "processor"
        say(f"Devices, of which each is a {kind}: {'; '.join(each)}.")
    return gpu


def _free_soon(ray: Any, processors: int) -> dict[str, float]:
    """Free resources of the cluster. Those given back just now appear after a moment."""
    until = time.monotonic() + _GIVEN_BACK
    while True:
        free: dict[str, float] = ray.available_resources()
        enough = free.get("CPU", 0) >= min(processors, ray.cluster_resources().get("CPU", 0))
        if enough or time.monotonic() > until:
            return free
        time.sleep(0.1)
