"""`codea1 sandbox doctor`: what keeps programs in, found out by trying. `codea1 sandbox serve`, `codea1 serve env`: servers."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from codea1_env.cli.errors import InputError, check_least, library_errors, unknown_name, user_input
from codea1_env.cli.parsing import Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.tables import say
from codea1_env.rendering.display import counted
from codea1_env.sandbox import LevelUnavailableError, Sandbox
from codea1_env.sandbox.inside.confine.confinement import LEVELS
from codea1_env.sandbox.levels import LevelReport, examine, strongest_level
from codea1_env.support.extras import MissingExtraError, require

USAGE = """\
usage: codea1 sandbox COMMAND [OPTIONS]

commands:
  doctor   Try every layer of the sandbox on this machine.
  serve    Run programs and tests for others, over HTTP.

`codea1 sandbox COMMAND --help` explains every option of a command.
"""


@dataclass(frozen=True)
class DoctorCommand:
    """Try every layer of the sandbox on this machine, level by level.

    A confined child attempts what its level forbids. Exit code 1 if no level contains hostile programs here.
    """

    json: bool = False
    """Print what was found as one JSON object instead of a table."""


@dataclass(frozen=True)
class ServeCommand:
    """Run programs and tests for others, over HTTP, as SandboxFusion does, until Ctrl-C or SIGTERM.

    With a token, which other machines need, in a file or in the environment variable CODEA1_SERVICE_TOKEN; see
    docs/service.md.
    """

    host: str = "127.0.0.1"
    """Address to listen on. Any but this machine's own needs a token."""
    port: int = 8080
    """Port to listen on; 0 takes any free one."""
    token_file: Path | None = None
    """File that holds the token that clients have to send."""
    workers: int = len(os.sched_getaffinity(0))
    """Programs that run at the same time."""
    queue: int = 256
    """Requests that may wait besides; one more is answered with 429."""
    max_memory_mb: int = 4096
    """Address space that a request may ask for, in MiB."""
    sandbox_level: SandboxLevel = None
    packages: Packages = ()

    def __post_init__(self) -> None:
        check_least(self, workers=1, queue=0, max_memory_mb=1)
        if self.max_memory_mb >= 1 << 20:
            raise ValueError(
                f"Expect --max-memory-mb to be below {1 << 20}, actually: {self.max_memory_mb}"
            )
        check_packages(self.packages)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 sandbox`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] == "doctor":
        return doctor(parse(DoctorCommand, arguments[1:], name="sandbox doctor"))
    if arguments[0] == "serve":
        return serve(parse(ServeCommand, arguments[1:], name="sandbox serve"))
    raise unknown_name("command", f"sandbox {arguments[0]}", ["sandbox doctor", "sandbox serve"])


def doctor(command: DoctorCommand) -> int:
    """Examine every level and show what was found; returns 1 if none contains hostile programs."""
    reports = [examine(level) for level in LEVELS]
    try:
        default, problem = strongest_level(), ""
    except LevelUnavailableError as error:
        default, problem = None, str(error)
    if command.json:
        levels = [dataclasses.asdict(report) | {"works": report.works} for report in reports]
        print(json.dumps({"default": default, "levels": levels}))
    else:
        console = Console(soft_wrap=True, highlight=False, markup=False)
        console.print(_table(reports))
        for remark in _remarks(reports):
            say(console, remark)
        for report in reports:
            if not report.works:
                say(console, f"{report.level}: {report.error}. {report.remedy}".rstrip())
        say(console, problem or f"Sandbox() uses the level {default!r} here.")
    return 0 if default else 1


def serve(command: ServeCommand) -> int:
    """Serve until told to stop; returns 0."""
    from codea1_env import service
    from codea1_env.service.schemas import CEILING

    with user_input():
        require("uvicorn", "service")
        token = service.read_token(command.token_file)
        address = service.open_address(command.host, command.port, guarded=token is not None)
    with address.listener, library_errors():
        packages = ("numpy", *command.packages)
        with Sandbox(command.workers, level=command.sandbox_level, packages=packages) as sandbox:
            sandbox.run_script("")  # what does not work is known before the first client
            app = service.make_app(
                sandbox,
                service.Admission(command.workers, command.queue),
                token=token,
                ceiling=dataclasses.replace(CEILING, memory=command.max_memory_mb << 20),
            )
            print(f"{address.url}: level {sandbox.level}, {command.workers} at a time", flush=True)
            service.serve(app, address)
    return 0


def _table(reports: Sequence[LevelReport]) -> Table:
    """Return what a child attempted, and what came of it at each level."""
    caption = "Empty: not tried, since the level does not forbid it"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    for heading in ("at this level a child may", *(report.level for report in reports)):
        table.add_column(heading, no_wrap=True)
    for act in dict.fromkeys(act for report in reports for act in report.found):
        found = [report.found.get(act, "") for report in reports]
        if all(what.startswith(("allowed", "denied")) for what in filter(None, found)):
            # The error number is in the output of --json.
            table.add_row(act, *(what.split(" (")[0] for what in found))
    return table


def _remarks(reports: Sequence[LevelReport]) -> list[str]:
    """Return what was found besides acts that are allowed or denied."""
    return [
        f"{report.level}: {name}: {what}"
        for report in reports
        for name, what in report.found.items()
        if not what.startswith(("allowed", "denied"))
    ]


SERVE_USAGE = """\
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


def run_serve(arguments: Sequence[str]) -> int:
    """Run `codea1 serve`; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(SERVE_USAGE, end="", file=sys.stdout if arguments else sys.stderr)
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
        print(
            f"{address.url}: {command.side}, {counted(len(side.problems), 'problems')}", flush=True
        )
        # OpenEnv closes a session twice, which uvicorn calls an error; real ones are told to the client.
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, timeout_graceful_shutdown=5
        )
        run_server(uvicorn.Server(config), address)
    return 0
