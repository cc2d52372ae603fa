"""`codea1 serve env`: the game over a web socket, as OpenEnv speaks it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from codea1_env.cli.errors import InputError, check_least, library_errors, unknown_name, user_input
from codea1_env.cli.parsing import SandboxLevel, parse
from codea1_env.support.extras import MissingExtraError, require

USAGE = """\
usage: codea1 serve env [OPTIONS]

Lets trainers of others play the game over a web socket, as OpenEnv speaks it. `codea1 serve env --help` explains
every option. Verdicts over HTTP: `codea1 sandbox serve`.
"""


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
    wording: Literal["detailed", "few-shot"] = "detailed"
    """How players are asked: "few-shot" for small models."""
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


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 serve`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] != "env":
        raise unknown_name("command", f"serve {arguments[0]}", ["serve env"])
    return serve_env(parse(ServeEnvCommand, arguments[1:], name="serve env"))


def serve_env(command: ServeEnvCommand) -> int:
    """Serve until told to stop; returns 0."""
    from codea1_env.agents.llm.completions import BackendError
    from codea1_env.integrations.side import OneSide
    from codea1_env.sandbox import Sandbox
    from codea1_env.service import open_address, run_server

    try:
        from codea1_env.integrations.openenv_game import make_openenv_app

        uvicorn = require("uvicorn", "openenv")
    except MissingExtraError as error:
        raise InputError(str(error)) from error
    with user_input():
        address = open_address(command.host, command.port, guarded=command.allow_others)
    with (
        address.listener,
        library_errors(),
        Sandbox(level=command.sandbox_level) as sandbox,
    ):
        try:
            side = OneSide(
                command.side,
                command.opponent,
                wording=command.wording,
                problems=command.problems,
                split=command.split,
                max_rounds=command.rounds,
                sandbox=sandbox,
            )
        except (ValueError, BackendError) as error:
            raise InputError(str(error)) from error
        app = make_openenv_app(side, command.max_sessions, command.idle_timeout)
        print(f"{address.url}: {command.side}, {len(side.problems)} problems", flush=True)
        # OpenEnv closes a session twice, which uvicorn calls an error; real ones are told to the client.
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, timeout_graceful_shutdown=5
        )
        run_server(uvicorn.Server(config), address)
    return 0
