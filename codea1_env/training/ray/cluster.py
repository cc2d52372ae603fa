"""Joins a Ray cluster, and says in one line what is wrong with it."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import codea1_env
from codea1_env.support.extras import replaced, require
from codea1_env.training.config import RunError

_log = logging.getLogger(__name__)
_CONNECT = 10.0
_ANSWER = 120.0
"""Seconds that a node has to say which version it has."""


def connect(address: str, processes: int = 0) -> Any:
    """Join a cluster, unless this process has done so; one of its own has room for so many processes beside those that judge.

    Raises a RunError if there is none, a MissingExtraError without Ray.
    """
    ray: Any = require("ray", "ray")
    # What Ray notices of lost processes it prints on standard output, which may be for programs; we say it ourselves.
    require("ray._private.worker", "ray").__dict__["print_to_stdstream"] = _noticed
    if ray.is_initialized():
        return ray
    own, remedy = None, 'Start one with `ray start --head`, or say address="local".'
    if address == "local":
        own = len(os.sched_getaffinity(0)) + processes
        remedy = "Ray gives up where its own processes start slowly: try again when the machine is less busy."
        # Else Ray writes one into the home folder, and each later `ray start` there asks all machines for it.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    before = signal.getsignal(signal.SIGTERM)  # for which Ray puts its own answer
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():  # Ray itself would try for two minutes
            socket.create_connection((host, int(port)), _CONNECT).close()
            remedy = (
                "Something listens there: is it the port of the head (`ray start --head --port`), of the same version of Ray, "
                "and with the same token (RAY_AUTH_MODE, RAY_AUTH_TOKEN), if it has one?"
            )
        # Ray warns of what later versions will do with GPUs.
        with warnings.catch_warnings(action="ignore", category=FutureWarning), _own_group():
            ray.init(address=address, num_cpus=own, log_to_driver=False, logging_level="ERROR")
    except SystemExit as error:  # Ray's answer to SIGTERM
        raise KeyboardInterrupt from error
    except Exception as error:  # Ray raises no narrower one where a node is slow to start
        # Of other versions Ray tells in several lines.
        said = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise RunError(
            f"Expect a Ray cluster at {address!r}, actually: {said}. {remedy}"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    return ray


def _own_group() -> AbstractContextManager[None]:
    """Give what Ray starts here a process group of its own.

    Schedulers and `timeout` send SIGTERM to the group of a run, whose step is still to be finished and saved with Ray.
    """
    services, name = require("ray._private.services", "ray"), "ConsolePopen"
    return replaced(services, name, partial(getattr(services, name), process_group=0))


def _noticed(batch: Mapping[str, Any], ignore_prefix: bool) -> None:
    _log.info("Ray: %s", " ".join(batch["lines"]))


def check_versions(ray: Any) -> None:
    """Check that all nodes have this version of the package. Raises a RunError if one has another version, or none."""

    # Inside, so that it is sent as code: the node may have no such package.
    def version() -> str:
        from importlib.util import find_spec

        return str(__import__("codea1_env").__version__) if find_spec("codea1_env") else "none"

    for node in (each for each in ray.nodes() if each["Alive"] and each["Resources"].get("CPU")):
        affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        here = affinity(node["NodeID"], soft=False)
        task = ray.remote(max_retries=0, num_cpus=0, scheduling_strategy=here)(version)
        try:
            found = ray.get(task.remote(), timeout=_ANSWER)
        except ray.exceptions.RayError:
            continue  # it has gone meanwhile
        if found != codea1_env.__version__:
            raise RunError(
                f"Expect node {node['NodeManagerAddress']} to have codea1_env {codea1_env.__version__}, as this machine, "
                f"actually: it has version {found}. Install the same on both."
            )
