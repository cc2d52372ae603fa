"""`codea1 train`: settings from a preset, a baseline, a file and the command line; then the loop."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from codea1_env.baselines import BASELINES
from codea1_env.cli.errors import (
    INTERRUPTED,
    FailureError,
    InputError,
    library_errors,
    unknown_name,
    user_input,
)
from codea1_env.cli.parsing import SandboxLevel, parse, parse_some
from codea1_env.cli.train_plan import show_plan
from codea1_env.cluster import RemoteSandbox
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training import PlayerError, RunError, TrainConfig, train
from codea1_env.training.moved_settings import MOVED
from codea1_env.training.preset_files import PRESETS, file_table, preset_table
from codea1_env.training.run_folder import read_config
from codea1_env.training.settings import apply_table, to_toml

_Preset = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help=f"Begin with these settings instead of the defaults: {', '.join(PRESETS)}.",
    ),
]
_Baseline = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help="Train what the co-evolution is compared with. "
        + " ".join(f"{name}: {baseline.summary}" for name, baseline in BASELINES.items()),
    ),
]

_Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True)
class Sources:
    """Where settings come from, the weakest first: preset, baseline, file, command line."""

    preset: _Preset = None
    baseline: _Baseline = None
    quick: _Switch = False
    """A run of a few seconds that goes through everything: --preset quick, over any other preset."""
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE.toml")] = None
    """Settings from a TOML file; `--dry-run` prints one with every setting in it."""
    resume: _Switch = False
    """Continue the run in --output-dir, with its own settings, at its latest checkpoint."""


@dataclass(frozen=True)
class SourcesAndFolder(Sources):
    """What decides the defaults of all other options."""

    output_dir: Path | None = None
    max_steps: int | None = None


@dataclass(frozen=True)
class TrainCommand(Sources):
    """Train both players against each other.

    What the options below do not say comes from --config, --baseline and --preset, in this order.
    """

    settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    sandbox_level: SandboxLevel = None
    dry_run: _Switch = False
    """Print the settings of the run as TOML, which can be given to --config, and the memory that language models need,
    and end. A run that does not fit is refused."""
    devices: Annotated[str | None, tyro.conf.arg(metavar="NUMBERxGB")] = None
    """With --dry-run: the GPUs that the run is for, one process on each, as 8x80; those of this machine if not given."""
    json: _Switch = False
    """Print the results to stdout as one JSON object; the progress display goes to stderr."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 train`; returns the exit code."""
    arguments = with_blocks(arguments)
    sources = parse_some(SourcesAndFolder, arguments, name="train")
    with user_input():
        default = TrainCommand(settings=base_settings(sources))
    command = parse(TrainCommand, arguments, name="train", default=default, switches_only=False)
    if sources.max_steps is not None:  # goes before a time budget
        settings = dataclasses.replace(command.settings, time_budget=None)
        command = dataclasses.replace(command, settings=settings)
    if command.dry_run:
        print(to_toml(command.settings), end="", flush=True)
        try:
            show_plan(command.settings, command.devices)
        except RunError as error:
            raise InputError(str(error)) from error
        return 0
    if command.devices is not None:
        raise InputError("expect --devices with --dry-run: a run takes the devices that are there")
    # With --json stdout is for programs; people can still watch stderr.
    console = Console(stderr=command.json)
    settings, sandbox = command.settings, None
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


def with_blocks(arguments: Sequence[str]) -> list[str]:
    """Write `--coder NAME`, which is short, as `--coder.player NAME`; likewise the tester's.

    Raises:
        InputError: An option has another name now.

    Example:
        >>> with_blocks(["--coder", "mutant", "--tester=golden", "--tester.freeze"])
        ['--coder.player', 'mutant', '--tester.player=golden', '--tester.freeze']
    """
    written = []
    for word in arguments:
        option = word.partition("=")[0]
        name, inside, rest = option.removeprefix("--").replace("-", "_").partition(".")
        negated = name.startswith("no_") and not inside
        new = MOVED.get(name.removeprefix("no_")) if option.startswith("--") else None
        if new is None or (name in ("coder", "tester") and inside):
            written.append(word)
            continue
        block, _, setting = new.partition(".")
        new = f"--{block}.{'no-' if negated else ''}{setting}{inside}{rest}".replace("_", "-")
        if name not in ("coder", "tester"):
            raise InputError(f"{option} is now {new}")
        written.append(new + word[len(option) :])
    return written


def base_settings(sources: SourcesAndFolder) -> TrainConfig:
    """The settings before the command line's own.

    Raises:
        InputError: A name does not exist, a file cannot be read, or there is no run to resume.
    """
    config = TrainConfig()
    if sources.resume:
        return _settings_of_run(sources)
    for preset in filter(None, (sources.preset, "quick" if sources.quick else None)):
        table = preset_table(preset)
        config = apply_table(_without_budget(config, table), table, f"preset {preset}")
    if sources.baseline is not None:
        if sources.baseline not in BASELINES:
            raise unknown_name("baseline", sources.baseline, BASELINES)
        config = BASELINES[sources.baseline].apply(config)
    if sources.config is not None:
        table = file_table(sources.config)
        if sources.baseline is not None:
            _check_beside(table, sources.baseline)
        config = apply_table(_without_budget(config, table), table, str(sources.config))
    return config


def _check_beside(table: Mapping[str, Any], baseline: str) -> None:
    """Refuse a file that would undo the baseline without a word: that of a run, which holds every setting.

    Raises:
        InputError: It says something else.
    """
    if not {field.name for field in dataclasses.fields(TrainConfig)} <= table.keys():
        return  # the file wins, as documented
    changes = BASELINES[baseline].overrides
    said = {name: _value(table, name) for name in changes}
    undone = [name for name, value in changes.items() if said[name] not in (None, value)]
    if undone:
        raise InputError(
            f"expect a --config that leaves {', '.join(undone)} to --baseline {baseline}, actually: it sets "
            f"{undone[0]} = {said[undone[0]]!r}. Remove the line from the file, or leave out --baseline"
        )


def _value(table: Mapping[str, Any], name: str) -> Any:
    """What a table says of a setting, whose name may reach into a block; None if it says nothing."""
    block, inside, rest = name.partition(".")
    value = table.get(block)
    if not inside:
        return value
    return _value(value, rest) if isinstance(value, Mapping) else None


def _without_budget(config: TrainConfig, table: Mapping[str, Any]) -> TrainConfig:
    """A table that says how many steps goes before the time budget of a preset below it."""
    return dataclasses.replace(config, time_budget=None) if "max_steps" in table else config


def _settings_of_run(sources: SourcesAndFolder) -> TrainConfig:
    for name in ("preset", "baseline", "quick", "config"):
        if getattr(sources, name):
            raise InputError(
                f"expect --resume without --{name}: a run goes on with its own settings. "
                f"Remove --{name}, or start a new run without --resume"
            )
    if sources.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the folder of the run to continue")
    return read_config(sources.output_dir)
