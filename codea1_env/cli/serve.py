"""`codea1 serve env`: the game for trainers of others, over a web socket."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from codea1_env.cli.errors import InputError, check_least, user_input
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.rendering.display import counted
from codea1_env.sandbox import Sandbox
from codea1_env.support.extras import require
from codea1_env.support.stopping import terminable


@dataclass(frozen=True)
class ServeEnvCommand:
    """Let others play one side of the game over a web socket, as OpenEnv speaks it, until Ctrl-C or SIGTERM."""

    side: Literal["coder", "tester"] = "coder"
    """The side that clients play."""
    opponent: Annotated[str | None, tyro.conf.arg(metavar="NAME|URL|RUN|MODEL")] = None
    """Who plays the other side: a scripted player, the address of an OpenAI-compatible server, the folder of a run
    (`RUN/checkpoints` draws one of its steps for each answer), a language model, or FILE.py:NAME. Without it "golden"
    against a coder, "mutant" against a tester."""
    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE")] = "starter"
    """Where problems come from, as for `codea1 train`."""
    split: str | None = None
    """"train" or "eval"; None for all."""
    rounds: int = 1
    """Rounds of an episode."""
    prompts: str = "detailed"
    """How players are asked: "detailed", "few-shot" for small models, or FILE.py:NAME."""
    host: str = "127.0.0.1"
    """Address to listen on. Clients are not asked for a password, so it must be of this machine."""
    allow_others: bool = False
    """Listen on any address: whoever reaches it may play."""
    port: int = 8000
    """Port to listen on; 0 takes any free one."""
    max_sessions: int = 256
    """Episodes at a time; one more is refused."""
    idle_timeout: int = 600
    """Seconds after which a session without a request ends."""
    sandbox_level: SandboxLevel = None

    def __post_init__(self) -> None:
        check_least(self, rounds=1, max_sessions=1, idle_timeout=1)


def serve_env(arguments: Sequence[str]) -> int:
    """Run `codea1 serve env` until it is told to stop; returns 0."""
    command = parse(ServeEnvCommand, arguments, name="serve env")
    from codea1_env.agents.llm.completions import BackendError
    from codea1_env.integrations.openenv_game import make_openenv_app
    from codea1_env.integrations.side import OneSide

    uvicorn = require("uvicorn", "openenv")
    with user_input():
        listener = open_address(command.host, command.port, others=command.allow_others)
    with listener, Sandbox(level=command.sandbox_level) as sandbox:
        try:
            side = OneSide(
                command.side,
                command.opponent,
                prompts=command.prompts,
                problems=command.problems,
                split=command.split,
                max_rounds=command.rounds,
                sandbox=sandbox,
            )
        except (ValueError, BackendError) as error:
            raise InputError(str(error)) from error
        app = make_openenv_app(side, command.max_sessions, command.idle_timeout)
        number, port = listener.getsockname()[:2]
        host = f"[{number}]" if ":" in number else number
        problems = counted(len(side.problems), "problems")
        print(f"http://{host}:{port}: {command.side}, {problems}", flush=True)
        # OpenEnv closes a session twice, which uvicorn calls an error; real ones are told to the client.
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, timeout_graceful_shutdown=5
        )
        # Uvicorn has handlers of its own while it serves; afterwards it raises what it has caught once more.
        with suppress(KeyboardInterrupt), terminable():
            uvicorn.Server(config).run(sockets=[listener])
    return 0


def open_address(host: str, port: int, *, others: bool) -> socket.socket:
    """Take an address, before anything else is started; port 0 takes any free one.

    Raises a ValueError if it is not there, or taken, or open to other machines without `others`.
    """
    if not 0 <= port < 1 << 16:
        raise ValueError(f"Expect a port from 0 to 65535, actually: {port}")
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ValueError(f"Expect a host and a port, actually: {host}, {port}: {error}") from error
    if not others and not ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback:
        raise ValueError(
            f"Expect an address that no other machines reach, such as 127.0.0.1, actually: {host}. "
            "Give --allow-others where whoever reaches it may play"
        )
    try:
        listener = socket.create_server(place[:2], family=family, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ValueError(f"The address {host}:{port} cannot be used: {reason}") from error
    return listener
