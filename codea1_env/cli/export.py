"""`codea1 export`: what a run has taught a language model, as a folder that other libraries load."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.training import RunError
from codea1_env.training.checkpoints import checkpoints, step_of, verify


@dataclass(frozen=True)
class ExportCommand:
    """Copy a player's adapter or model out of a run.

    An adapter goes to DIR as `peft.PeftModel.from_pretrained(base, DIR)` loads it, a whole model as
    `transformers.AutoModelForCausalLM.from_pretrained(DIR)` does.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """A new folder."""
    role: Literal["coder", "tester"] = "coder"
    """The player."""
    step: int | None = None
    """The checkpoint; None for the latest."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 export`; returns the exit code."""
    command = parse(ExportCommand, arguments, name="export")
    try:
        source = find_weights(command.run, command.role, command.step)
    except RunError as error:
        raise InputError(str(error)) from error
    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    shutil.copytree(source, command.output_dir)
    Console().print(f"Wrote {command.output_dir}", highlight=False, soft_wrap=True)
    return 0


def find_weights(path: Path, role: str, step: int | None) -> Path:
    """The folder of a checkpoint that holds a player's weights.

    Raises:
        RunError: There is no such checkpoint, it is damaged, or the player is no language model.
    """
    found = {step_of(checkpoint): checkpoint for checkpoint in checkpoints(path)}
    if not found:
        raise RunError(f"expect {path} to be the folder of a run, actually: it has no checkpoint")
    wanted = max(found) if step is None else step
    if wanted not in found:
        steps = ", ".join(map(str, sorted(found)))
        raise RunError(f"expect step to be one of {steps}, actually: {wanted}")
    verify(found[wanted])
    for kind in ("adapter", "model"):
        if (found[wanted] / role / kind).is_dir():
            return found[wanted] / role / kind
    raise RunError(
        f"expect the {role} of {path} to be a language model that learned, actually: it is not. "
        "Choose the other role, or another run"
    )
