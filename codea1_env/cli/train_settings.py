"""What `codea1 train` begins with: settings from a preset, a baseline, a file, or the folder of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from codea1_env.baselines import BASELINES
from codea1_env.cli.errors import InputError, unknown_name, user_input
from codea1_env.training import TrainConfig
from codea1_env.training.config import OF_RAY
from codea1_env.training.run_folder import read_config
from codea1_env.training.settings import (
    MOVED,
    PRESETS,
    apply_table,
    file_table,
    flat,
    preset_table,
    replaced,
)

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
    max_steps: int | None = None
    engine: str | None = None


def with_trainers(settings: TrainConfig, below: TrainConfig) -> TrainConfig:
    """Keep the fields of trainers that stand in a preset or a file, and that the command line does not name."""
    with user_input():
        return replaced(
            settings,
            {
                f"{role}.trainer": below.player(role).trainer | settings.player(role).trainer
                for role in ("coder", "tester")
            },
        )


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
    """Return the settings before the command line's own.

    Raises:
        InputError: A name does not exist, a file cannot be read, or there is no run to resume.
    """
    config = TrainConfig()
    if sources.resume:
        return _settings_of_run(sources)
    quick = ("shortest" if sources.preset else "quick") if sources.quick else None
    for preset in filter(None, (sources.preset, quick)):
        table = preset_table(preset)
        config = apply_table(_without_budget(config, table), table, f"preset {preset}")
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
        config = apply_table(_without_budget(config, table), table, str(sources.config))
        # The file wins, as documented; that of a run, which holds every setting, would undo a baseline without a word.
        if sources.baseline and {each.name for each in dataclasses.fields(config)} <= table.keys():
            _check_beside(config, sources.baseline)
    # A number of steps on the command line, too: before the other options are looked at, which may not suit a budget.
    return config if sources.max_steps is None else dataclasses.replace(config, time_budget=None)


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


def _without_budget(config: TrainConfig, table: Mapping[str, Any]) -> TrainConfig:
    """Return a table that says how many steps goes before the time budget of a preset below it."""
    return dataclasses.replace(config, time_budget=None) if "max_steps" in table else config


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
        config = dataclasses.replace(config, engine="local", **OF_RAY)
    return config
