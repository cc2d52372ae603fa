"""The nodes of a Ray cluster as they come and go, with an actor on each that can have one."""

from __future__ import annotations

import logging
import signal
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import codea1_env
from codea1_env.sandbox import SandboxError
from codea1_env.support.extras import require

_log = logging.getLogger(__name__)
_CONNECT = 10.0
_versions: dict[str, str] = {}
"""Id of a node -> the version of this package that it has: asked once, for it takes a process."""
START = 120.0
"""Seconds that a node has to start an actor."""


class ClusterError(SandboxError):
    """There is no cluster, or none of its nodes can contain programs. The message says what to do."""


class LostError(OSError):
    """A node or an actor is gone, or does not answer: nothing is known of what it was asked."""


def connect(address: str | None) -> Any:
    """Join a cluster, unless this process has done so."""
    ray: Any = require("ray", "ray")
    # What Ray notices of lost processes it prints on standard output, which may be for programs; we say it ourselves.
    require("ray._private.worker", "ray").__dict__["print_to_stdstream"] = _noticed
    if ray.is_initialized():
        return ray
    remedy = 'Start one with `ray start --head`, or say address="local".'
    try:
        host, _, port = (address or "").rpartition(":")
        if host and port.isdecimal():  # Ray itself would try for two minutes
            socket.create_connection((host, int(port)), _CONNECT).close()
            remedy = (
                "Something listens there: is it the port of the head (`ray start --head --port`), of the same version of Ray, "
                "and with the same token (RAY_AUTH_MODE, RAY_AUTH_TOKEN), if it has one?"
            )
        with warnings.catch_warnings(), _own_signals():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # of what later versions will do with GPUs
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ray.exceptions.RayError, RuntimeError, ValueError, OSError) as error:
        # Of other versions Ray tells in several lines.
        said = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise ClusterError(
            f"Expect a Ray cluster at {address!r}, actually: {said}. {remedy}"
        ) from error
    return ray


def _noticed(batch: Mapping[str, Any], ignore_prefix: bool) -> None:
    _log.info("Ray: %s", " ".join(batch["lines"]))


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the program's answer to SIGTERM, for which Ray would put its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    id: str
    address: str
    cores: int


def nodes(ray: Any) -> list[Node]:
    """Return the nodes that are alive and have processors to give."""
    found = []
    for each in ray.nodes():
        cores = int(each["Resources"].get("CPU", 0))
        if each["Alive"] and cores > 0:
            found.append(Node(each["NodeID"], each["NodeManagerAddress"], cores))
    return found


def on_node(ray: Any, node: Node) -> dict[str, Any]:
    """Options that keep an actor or a task on a node, and leave repeating to us."""
    strategies: Any = require("ray.util.scheduling_strategies", "ray")
    place = strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
    return {"num_cpus": 0, "scheduling_strategy": place}


def start_actor(ray: Any, node: Node, actor: type, arguments: tuple[Any, ...], at_once: int) -> Any:
    """Start an actor on a node, and wait until it can be used."""
    check_version(ray, node)
    options = {**on_node(ray, node), "max_restarts": 0, "max_task_retries": 0}
    handle = ray.remote(actor).options(max_concurrency=at_once, **options).remote(*arguments)
    try:
        asked(ray, handle.alive.remote())
    except LostError:
        raise
    except Exception as error:
        raise ClusterError(
            f"Expect node {node.address} to be able to run {actor.__name__}, actually: {_lines(error)[-1].strip()}"
        ) from error
    return handle


def end_actor(ray: Any, actor: Any, *, gently: bool) -> None:
    """End an actor, whatever is wrong with it: it is not needed any more."""
    with suppress(Exception):
        if gently:
            asked(ray, actor.close.remote(), 10.0)
    with suppress(Exception):
        ray.kill(actor)


def asked(ray: Any, reference: Any, timeout: float = START) -> Any:
    """Return the answer of an actor or a task."""
    try:
        return ray.get(reference, timeout=timeout)
    except LOST(ray) as error:
        # An actor that could not be made has died, too, with what it raised at the end of the message.
        unmade = ("creation task", "The actor died because of an error raised")
        died = isinstance(error, ray.exceptions.ActorDiedError)
        if died and any(words in str(error) for words in unmade):
            raise
        raise LostError(_lines(error)[0].rstrip(".")) from None


def LOST(ray: Any) -> tuple[type[Exception], ...]:  # noqa: N802 - classes of an optional package
    """Return what Ray raises where a node or an actor is gone."""
    errors = ray.exceptions
    return (
        errors.ActorDiedError,
        errors.ActorUnavailableError,
        errors.GetTimeoutError,
        errors.NodeDiedError,
        errors.WorkerCrashedError,
        errors.ObjectLostError,
        errors.RaySystemError,
        errors.TaskUnschedulableError,
        errors.ActorUnschedulableError,
    )


def check_version(ray: Any, node: Node) -> None:
    """Refuse a node that has another version of this package, or none."""

    def found_version() -> (
        str
    ):  # inside, so that it is sent as code: the node may have no such package
        try:
            import codea1_env
        except ImportError:
            return ""
        return codea1_env.__version__

    if node.id not in _versions:
        task = ray.remote(max_retries=0, **on_node(ray, node))(found_version)
        _versions[node.id] = asked(ray, task.remote())
    found = _versions[node.id]
    if found != codea1_env.__version__:
        there = f"has version {found}" if found else "does not have the package"
        raise ClusterError(
            f"Expect node {node.address} to have codea1_env {codea1_env.__version__}, as this machine, actually: it "
            f"{there}. Install the same on both."
        )


def _lines(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]
