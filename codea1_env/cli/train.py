"""`codea1 train`: settings from a preset, a baseline, a file and the command line; then the loop."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.agents.llm.agent import longest_prompt
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.computing import check_threads
from codea1_env.agents.llm.engines import check_processes
from codea1_env.agents.llm.memory import ModelShape, available_memory, shape_of
from codea1_env.agents.llm.processes import world_size
from codea1_env.agents.models import DEFAULT_MODEL
from codea1_env.agents.smollm2 import HUB_ID
from codea1_env.cli.errors import (
    INTERRUPTED,
    FailureError,
    InputError,
    library_errors,
    user_input,
)
from codea1_env.cli.parsing import SandboxLevel, parse, parse_some
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
from codea1_env.support.extras import require
from codea1_env.training import PlayerError, RunError, TrainConfig, train
from codea1_env.training.algorithms import check_own_code
from codea1_env.training.batches import check_batches
from codea1_env.training.language_models import check_trainer_fields
from codea1_env.training.memory_plan import Devices, check_fits, memory_table, plans_of
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
    if command.devices is not None and not command.dry_run:
        raise InputError("expect --devices with --dry-run: a run takes the devices that are there")
    # With --json stdout is for programs; people can still watch stderr.
    console = Console(stderr=command.json)
    sandbox = None
    try:
        with library_errors(), ExitStack() as stack:
            if command.dry_run:
                problems = settings.max_problems or settings.problems_per_step
                if not needs_network(settings.problems):
                    problems = len(problems_of_run(settings))
                print(to_toml(settings), end="", flush=True)
                show_plan(settings, problems, command.devices, default.settings)
                return 0
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


def show_plan(config: TrainConfig, problems: int, devices: str | None, below: TrainConfig) -> None:
    """Show on stderr what memory a run of language models needs.

    Args:
        config: The run.
        problems: Number of problems to train on: a step has no more.
        devices: GPUs that it is for, as "8x80"; None for those of this machine.
        below: The run without the options of its command line.

    Raises:
        InputError: `devices` cannot be read.
        RunError: The run does not fit, its engine cannot be had in so many processes, an update cannot be divided, or a
            trainer does not know a field.
    """
    there = None if devices is None else read_devices(devices)
    if not config.has_language_model:
        return
    console = Console(stderr=True)
    there = there or _here()
    if there is None:
        console.print(
            "No memory table: torch, which knows the devices here, is not installed (pip install 'codea1-env[llm]'). "
            "Name the GPUs that the run is for: --devices 8x80"
        )
        return
    if config.engine != "ray":  # there each player has processes of its own
        try:
            check_processes(config.backend, there.number)
        except BackendError as error:
            raise RunError(str(error)) from error
    check_trainer_fields(config)
    if devices is None and config.engine != "ray":
        try:
            check_threads(config.threads, config.generation_threads)
        except ValueError as error:
            raise RunError(str(error)) from error
    step = min(config.problems_per_step, problems)
    _show_memory(dataclasses.replace(config, problems_per_step=step), there, below, console)
    check_batches(config, problems, there.number, gpu=there.gpu)


def _show_memory(config: TrainConfig, there: Devices, below: TrainConfig, console: Console) -> None:
    """Show what each process needs, and refuse what does not fit."""
    shapes: dict[str, ModelShape] = {}
    for role in ("coder", "tester"):
        if config.player(role).player != "llm":
            continue
        name = config.model_of(role)
        shape = shape_of(HUB_ID if name == DEFAULT_MODEL else name)
        if shape is None:
            console.print(
                f"No memory table: it needs the config.json of {name!r}, which is not at hand. Fetch it with "
                f"`hf download {name} config.json`, or give a folder with the model."
            )
            return
        shapes[name] = shape
        try:
            longest_prompt(config.player(role).sampling, shape.context)
        except ValueError as error:
            raise RunError(f"{role}.sampling: {error}") from error
    for on, plan in plans_of(config, shapes, there):
        console.print(memory_table(plan, on))
    check_fits(config, shapes, there, below)


def read_devices(text: str) -> Devices:
    """Read the devices that a run is for.

    Raises:
        InputError: It is not a number of GPUs and the memory of each.

    Example:
        >>> read_devices("8x80")
        Devices(number=8, memory=80000000000.0, gpu=True)
    """
    found = re.fullmatch(r"([1-9]\d{0,5})x(\d{1,5}(?:\.\d{1,3})?)", text)
    if found is None or not float(found[2]):
        raise InputError(
            f"expect --devices to be a number of GPUs and the GB of each, as 8x80, actually: {text!r:.200}"
        )
    return Devices(int(found[1]), float(found[2]) * 1e9, gpu=True)


def _here() -> Devices | None:
    """Return the devices of this machine for the processes that were started; None without torch, which knows them."""
    if find_spec("torch") is None:
        return None
    torch: Any = require("torch")
    if torch.cuda.is_available():
        gpus = range(torch.cuda.device_count())
        free = min(torch.cuda.mem_get_info(gpu)[0] for gpu in gpus)
        return Devices(world_size(), float(free), gpu=True)
    return Devices(world_size(), float(available_memory()), gpu=False)
