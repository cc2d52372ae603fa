"""`codea1 train`: settings from a preset, a baseline, a file and the command line; then the loop."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.cli.errors import (
    INTERRUPTED,
    FailureError,
    InputError,
    library_errors,
    user_input,
)
from codea1_env.cli.parsing import SandboxLevel, parse, parse_some
from codea1_env.cli.train_plan import show_plan
from codea1_env.cli.train_settings import (
    Sources,
    SourcesAndFolder,
    Switch,
    base_settings,
    with_blocks,
    with_trainers,
)
from codea1_env.cluster import RemoteSandbox
from codea1_env.problem_sets.sources import needs_network
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training import PlayerError, RunError, TrainConfig, train
from codea1_env.training.algorithms import check_own_code
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.settings import to_toml


@dataclass(frozen=True)
class TrainCommand(Sources):
    """Train both players against each other.

    What the options below do not say comes from --config, --baseline and --preset, in this order.
    """

    settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    sandbox_level: SandboxLevel = None
    dry_run: Switch = False
    """Print the settings of the run as TOML, which can be given to --config, and the memory that language models need,
    and end. A run that does not fit is refused."""
    devices: Annotated[str | None, tyro.conf.arg(metavar="NUMBERxGB")] = None
    """With --dry-run: the GPUs that the run is for, one process on each, as 8x80; those of this machine if not given."""
    json: Switch = False
    """Print the results to stdout as one JSON object; the progress display goes to stderr."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 train`; returns the exit code."""
    arguments = with_blocks(arguments)
    sources = parse_some(SourcesAndFolder, arguments, name="train")
    with user_input():
        default = TrainCommand(settings=base_settings(sources))
    command = parse(TrainCommand, arguments, name="train", default=default, switches_only=False)
    settings = with_trainers(command.settings, default.settings)
    if sources.max_steps is not None:  # goes before a time budget
        settings = dataclasses.replace(settings, time_budget=None)
    command = dataclasses.replace(command, settings=settings)
    with user_input():  # before anything is loaded that takes long
        check_own_code(settings)
    if command.dry_run:
        try:
            if not needs_network(settings.problems):
                with library_errors():
                    problems_of_run(settings)
            print(to_toml(settings), end="", flush=True)
            show_plan(settings, command.devices)
        except RunError as error:
            raise InputError(str(error)) from error
        return 0
    if command.devices is not None:
        raise InputError("expect --devices with --dry-run: a run takes the devices that are there")
    # With --json stdout is for programs; people can still watch stderr.
    console = Console(stderr=command.json)
    sandbox = None
    try:
        with library_errors(), ExitStack() as stack:
            if command.sandbox_level is not None:
                limits = Limits(call_cpu_time=settings.time_limit)
                sandbox = stack.enter_context(_sandbox(settings, limits, command.sandbox_level))
            result = train(settings, resume=command.resume, sandbox=sandbox, console=console)
    except RunError as error:
        raise InputError(str(error)) from error
    except PlayerError as error:
        raise FailureError(str(error)) from error
    if command.json:
        about = dataclasses.asdict(result) | {"output_dir": str(result.output_dir)}
        print(json.dumps(about))
    return 0 if result.finished else INTERRUPTED


def _sandbox(settings: TrainConfig, limits: Limits, level: str) -> Sandbox:
    if settings.engine == "local":
        return Sandbox(settings.workers, limits, level=level)
    return RemoteSandbox(settings.workers, limits, level=level, address=settings.address)
