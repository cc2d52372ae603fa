"""`codea1 train`: settings from a preset, a baseline, a file and the command line; then the loop."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from codea1_env.agents.llm.agent import longest_prompt
from codea1_env.agents.llm.computing import check_threads
from codea1_env.agents.models import DEFAULT_MODEL, best_device, context_of
from codea1_env.agents.smollm2 import HUB_ID
from codea1_env.baselines import BASELINES
from codea1_env.cli.errors import (
    INTERRUPTED,
    InputError,
    unknown_name,
    user_input,
)
from codea1_env.cli.parsing import SandboxLevel, parse, parse_some
from codea1_env.problem_sets.sources import needs_network
from codea1_env.rendering.progress import say
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training import RunError, TrainConfig, train
from codea1_env.training.config import OF_RAY, check_own_code
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import read_config
from codea1_env.training.settings import (
    PRESETS,
    apply_table,
    file_table,
    flat,
    preset_table,
    replaced,
    to_toml,
)
from codea1_env.training.trainer_arguments import (
    check_batches,
    check_trainer_fields,
    tokens_of_step,
)

_DEFAULT_CONTEXT = 8192
"""Context of the default model, which is known before it is there."""

_Preset = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help=f"Begin with these settings ({', '.join(PRESETS)}).",
    ),
]
_Baseline = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help=f"Train a baseline of docs/baselines.md ({', '.join(BASELINES)}).",
    ),
]

Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag that has no `--no-` form: no file sets it."""


@dataclass(frozen=True)
class Sources:
    """Where settings come from, the weakest first: preset, baseline, file, command line."""

    preset: _Preset = None
    baseline: _Baseline = None
    quick: Switch = False
    """The shortest run. Of tables, a few seconds: --preset quick; over a preset of language models, minutes: the sizes of
    --preset shortest."""
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE.toml")] = None
    """Settings from a TOML file; `--dry-run` prints one with every setting in it."""
    resume: Switch = False
    """Continue the run in --output-dir, with its own settings, at its latest checkpoint."""


@dataclass(frozen=True)
class SourcesAndFolder(Sources):
    """What decides the defaults of all other options."""

    output_dir: Path | None = None
    problems: str | None = None
    engine: str | None = None


@dataclass(frozen=True)
class TrainCommand(Sources):
    """Train both players against each other.

    What the options below do not say comes from --config, --baseline and --preset, in this order. `--no-FLAG` undoes a
    flag. docs/training.md says more, and `--dry-run` prints every setting.
    """

    sandbox_level: SandboxLevel = None
    dry_run: Switch = False
    """Print the settings of the run as TOML, which can be given to --config, and how many tokens a step writes and learns
    from, and end."""
    json: Switch = False
    """Print the results to stdout as one JSON object; the progress display goes to stderr."""
    settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 train`; returns the exit code."""
    arguments = _with_blocks(arguments)
    sources = parse_some(SourcesAndFolder, arguments, name="train")
    with user_input():
        below = base_settings(sources)
    command = parse(
        TrainCommand,
        arguments,
        name="train",
        default=TrainCommand(settings=below),
        switches_only=False,
    )
    # The command line's fields of trainers stand beside those of presets and files.
    trainers = {
        f"{role}.trainer": below.player(role).trainer | command.settings.player(role).trainer
        for role in ("coder", "tester")
    }
    with user_input():
        settings = replaced(command.settings, trainers)
        check_own_code(settings)  # before anything is loaded that takes long
    # With --json stdout is for programs; people can still watch stderr.
    console = Console(stderr=command.json)
    if command.dry_run:
        problems = settings.max_problems or settings.problems_per_step
        if not needs_network(settings.problems):
            problems = len(problems_of_run(settings))
        print(to_toml(settings), end="", flush=True)
        show_plan(settings, problems)
        return 0
    with ExitStack() as stack:
        sandbox = None
        if command.sandbox_level is not None:
            limits = Limits(call_cpu_time=settings.time_limit)
            own = Sandbox(settings.workers, limits, level=command.sandbox_level)
            sandbox = stack.enter_context(own)
        result = train(settings, resume=command.resume, sandbox=sandbox, console=console)
    if command.json:
        about = dataclasses.asdict(result) | {"output_dir": str(result.output_dir)}
        print(json.dumps(about))
    return 0 if result.finished else INTERRUPTED


def _with_blocks(arguments: Sequence[str]) -> list[str]:
    """Write `--coder NAME`, which is short, as `--coder.player NAME`; likewise the tester's.

    Example:
        >>> _with_blocks(["--coder", "mutant", "--tester=golden", "--tester.freeze"])
        ['--coder.player', 'mutant', '--tester.player=golden', '--tester.freeze']
    """
    return [re.sub(r"^--(coder|tester)(?==|$)", r"--\1.player", word) for word in arguments]


def base_settings(sources: SourcesAndFolder) -> TrainConfig:
    """Return the settings before the command line's own.

    Raises an InputError if a name does not exist, a file cannot be read, or there is no run to resume.
    """
    config = TrainConfig()
    if sources.resume:
        return _settings_of_run(sources)
    quick = ("shortest" if sources.preset else "quick") if sources.quick else None
    for preset in filter(None, (sources.preset, quick)):
        config = apply_table(config, preset_table(preset), f"preset {preset}")
    if quick == "shortest":
        config = _without_batches(config)
    if quick == "quick" and _names_problems(sources):
        config = dataclasses.replace(config, difficulty=None)  # which suits the starter set
    if sources.baseline is not None:
        if sources.baseline not in BASELINES:
            raise unknown_name("baseline", sources.baseline, BASELINES)
        config = BASELINES[sources.baseline].apply(config)
    if sources.config is not None:
        table = file_table(sources.config)
        config = apply_table(config, table, str(sources.config))
        # The file wins, as documented; that of a run, which holds every setting, would undo a baseline without a word.
        if sources.baseline and {each.name for each in dataclasses.fields(config)} <= table.keys():
            _check_beside(config, sources.baseline)
    return config


def _names_problems(sources: SourcesAndFolder) -> bool:
    in_file = sources.config is not None and "problems" in file_table(sources.config)
    return in_file or sources.problems is not None


def _check_beside(config: TrainConfig, baseline: str) -> None:
    said = flat(config)
    undone = [name for name, value in BASELINES[baseline].overrides.items() if said[name] != value]
    if undone:
        raise InputError(
            f"expect a --config that leaves {', '.join(undone)} to --baseline {baseline}, actually: it sets "
            f"{undone[0]} = {said[undone[0]]!r}. Remove the line from the file, or leave out --baseline"
        )


def _without_batches(config: TrainConfig) -> TrainConfig:
    """Leave the sizes of batches to the trainer: those of a preset divide its own steps, and not the shortest."""
    sizes = ("per_device_train_batch_size", "gradient_accumulation_steps")
    changes = {}
    for role in ("coder", "tester"):
        trainer = config.player(role).trainer.items()
        changes[f"{role}.trainer"] = {name: value for name, value in trainer if name not in sizes}
    return replaced(config, changes)


def _settings_of_run(sources: SourcesAndFolder) -> TrainConfig:
    for name in ("preset", "baseline", "quick", "config"):
        if getattr(sources, name):
            raise InputError(
                f"expect --resume without --{name}: a run goes on with its own settings. "
                f"Remove --{name}, or start a new run without --resume"
            )
    if sources.output_dir is None:
        raise InputError("expect --output-dir DIR with --resume: the folder of the run to continue")
    config = read_config(sources.output_dir)
    # On this machine there is no use for what said where the cluster is.
    if sources.engine == "local":
        config = replaced(config, {"engine": "local", **OF_RAY})
    return config


def show_plan(config: TrainConfig, problems: int) -> None:
    """Say on stderr what a step of language models writes and learns, and check what can be checked without them.

    Raises a RunError if an update cannot be divided, or a trainer does not know a field.
    """
    if not config.has_language_model:
        return
    gpu = False
    if config.engine != "ray" and find_spec("torch") is not None:
        with user_input():
            check_threads(config.threads)
            gpu = best_device() != "cpu"
    check_trainer_fields(config)
    _check_contexts(config)
    check_batches(config, problems, gpu=gpu)
    step = dataclasses.replace(config, problems_per_step=min(config.problems_per_step, problems))
    written, learned = tokens_of_step(step)
    say(
        Console(stderr=True),
        f"A step writes at most {written:,} tokens, and learns from at most {learned:,} tokens of answers.",
    )


def _check_contexts(config: TrainConfig) -> None:
    """Check that prompts and answers fit into the models, as far as their config.json is at hand."""
    for role in ("coder", "tester"):
        if config.player(role).player != "llm" or find_spec("transformers") is None:
            continue
        name = config.model_of(role)
        context = context_of(HUB_ID if name == DEFAULT_MODEL else name)
        try:
            if name == DEFAULT_MODEL or context is not None:
                longest_prompt(config.player(role).sampling, context or _DEFAULT_CONTEXT)
        except ValueError as error:
            raise RunError(f"{role}.sampling: {error}") from error
