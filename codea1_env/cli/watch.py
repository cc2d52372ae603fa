"""`codea1 watch`: a run in the terminal while it goes on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.live import Live

from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.cli.watch_screen import EPISODES, screen
from codea1_env.training.config import RunError
from codea1_env.training.run_folder import no_run

_PAUSE = 1.0
"""Seconds between two looks at the folder, at least."""
_REST = 9.0
"""How much longer than a look the pause after it is: a run of very many steps must not be slowed down."""


@dataclass(frozen=True)
class WatchCommand:
    """Show a run in the terminal while it goes on: curves, last episodes, phases, speed and remaining time.

    It ends with the run, or with Ctrl-C, which does nothing to the run. Without a terminal it shows the run once.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run. Its logs need not be there yet."""
    once: bool = False
    """Show the run as it stands, and end."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 watch`; returns the exit code."""
    command = parse(WatchCommand, arguments, name="watch")
    # Here, so that a wrong word is told before the rest is loaded.
    from codea1_env.report.live import LiveReader

    if not (command.run / "config.toml").is_file():
        raise InputError(
            f"expect {command.run} to be the folder of a run, actually: {no_run(command.run)}"
        )
    console = Console()
    try:
        reader = LiveReader(command.run, command.run.resolve().name, EPISODES)
        now = reader.read()
        if command.once or not console.is_terminal:
            console.print(screen(now, console))
            return 0
        with Live(screen(now, console), console=console, auto_refresh=False) as live:
            try:
                took = 0.0
                while not now.finished:
                    time.sleep(max(_PAUSE, _REST * took))
                    began = time.perf_counter()
                    now = reader.read()
                    live.update(screen(now, console), refresh=True)
                    took = time.perf_counter() - began
            except KeyboardInterrupt:  # how one leaves; the last picture stays
                pass
    except RunError as error:
        raise InputError(str(error)) from error
    return 0
