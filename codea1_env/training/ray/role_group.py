"""The processes that play a role on the nodes of a cluster: they are started together, asked together, and lost together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.trainer_drive import UpdateError
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
        learn, write = config.devices_of(role)
        self.size = max(learn, 1)
        """Number of processes that learn; those behind them only write."""
        device = {"CPU": 1, "GPU": int(gpu)}
        # One that never learns answers through the writers, and needs no device for that.
        bundles = [device if learn else {"CPU": 1}] * self.size + [device] * write
        self._actors: list[Any] = []
        self._writers: list[Any] = []
        # GPUs talk fastest inside a machine; processors are not shared where another machine has some.
        self._placement = ray.util.placement_group(bundles, strategy="PACK" if gpu else "SPREAD")
        if not self._placement.wait(_PLACING):
            self.close()
            raise RunError(
                f"Expect room for {len(bundles)} processes of the {role} within {_PLACING:g} s, actually: there "
                "is none. Another program may have taken it: see `ray status`."
            )
        strategies = ray.util.scheduling_strategies
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
        pairs = zip(self._actors, arguments, strict=False)
        asked = [getattr(actor, method).remote(*given) for actor, given in pairs]
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
            raise self._explained(error, references) from None

    def _explained(self, error: Exception, references: list[Any]) -> Exception:
        """The exception that a process raised; or one that says that it is lost, if one is."""
        errors = self._ray.exceptions
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
        lost = [type(cause).__name__ for cause in causes if isinstance(cause, errors.RayError)]
        if lost:
            causes[0] = LearnerLostError(
                f"A process of the {self.role} was lost ({lost[0]}): it was killed, its node is gone, or memory ran out there."
            )
        # An engine that fails fails all who learn: then none of them waits, and they can still be saved.
        told = sum(isinstance(cause, BackendError) for cause in causes)
        if lost or 1 < self.size >= told:
            self._failure = causes[0]
        return causes[0]

    def close(self) -> None:
        """End all processes."""
        actors = (*self._actors, *self._writers)
        with suppress(Exception):
            if self._failure is None:  # all at once: who learns together leaves together
                closed = [actor.close.remote() for actor in actors]
                self._ray.wait(closed, num_returns=len(closed), timeout=_ENDING)
        for actor in actors:
            with suppress(Exception):
                self._ray.kill(actor)
        with suppress(Exception):
            self._ray.util.remove_placement_group(self._placement)


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
    devices, processes = sum(map(sum, divided.values())), processes_of(config, roles) + 1
    there, free = _free_soon(ray, {"CPU": processes, "GPU": devices})
    gpu = there["GPU"] > 0
    each = [f"{role}: {learn} learn, {write} write" for role, (learn, write) in divided.items()]
    told = f" for language models ({'; '.join(each)})" if each else ""
    wanted = [(f"processors{told} and a task that judges", processes, there["CPU"], free["CPU"])]
    if gpu:  # what is scarcer first
        wanted.insert(0, (f"GPUs{told}", devices, there["GPU"], free["GPU"]))
    elif config.address == "local":  # there is room for any number; each player may have one
        here = float(max(len(os.sched_getaffinity(0)), len(roles)))
        wanted.insert(0, (f"processors{told}", devices, here, here))
    for name, asked, has, left in wanted:
        if left < asked:
            raise RunError(
                f"Expect {asked} {name}, actually: the cluster has {has:g}, of which {left:g} are free. Add nodes, lower "
                "coder.devices or tester.devices, or start Ray with more (`ray start --head --num-cpus N`, and --address auto)."
            )
    if each:
        say(f"Devices, of which each is a {'GPU' if gpu else 'processor'}: {'; '.join(each)}.")
    return gpu


def _free_soon(ray: Any, wanted: Mapping[str, int]) -> tuple[dict[str, float], dict[str, float]]:
    """What the cluster has of these kinds, and what is free. Those given back just now appear after a moment."""
    until = time.monotonic() + _GIVEN_BACK
    while True:
        found = ray.cluster_resources(), ray.available_resources()
        there, free = ({kind: each.get(kind, 0.0) for kind in wanted} for each in found)
        enough = all(free[kind] >= min(asked, there[kind]) for kind, asked in wanted.items())
        if enough or time.monotonic() > until:
            return there, free
        time.sleep(0.1)
