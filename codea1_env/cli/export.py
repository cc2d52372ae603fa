"""`codea1 export`: what a run has taught a language model, or its episodes, in forms that other libraries load."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.cli.tables import say
from codea1_env.support.extras import MissingExtraError
from codea1_env.training import RunError
from codea1_env.training.checkpoints import find_weights, step_of

_TOKENIZER = ("*token*.json", "vocab*", "merges.txt", "tokenizer.model", "chat_template*")
_EPISODES = 1000
"""Episodes of a log, all of which inspect_ai keeps in memory while it writes them."""


@dataclass(frozen=True)
class ExportCommand:
    """Copy a player's adapter or model out of a run, or its episodes.

    An adapter goes to DIR as `peft.PeftModel.from_pretrained(base, DIR)` loads it, a whole model as
    `transformers.AutoModelForCausalLM.from_pretrained(DIR)` does, with a model card. Episodes go to a log in DIR, which
    `inspect view --log-dir DIR` shows, or to a data set with a card: "sft" has answers that did their work, "preference"
    pairs of answers to one prompt.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """A new folder; for episodes it may hold other logs."""
    format: Literal["model", "inspect", "sft", "preference"] = "model"
    """What is exported: a player, episodes as a log of inspect_ai, or a data set of both players' answers."""
    file: Literal["jsonl", "parquet"] | None = None
    """The kind of file of a data set; None for jsonl."""
    role: Literal["coder", "tester"] | None = None
    """The player; None for the coder."""
    step: int | None = None
    """The checkpoint; None for the latest."""
    max_episodes: int | None = None
    """Episodes of a log; of more, so many are drawn from all steps alike. None for 1000."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 export`; returns the exit code."""
    command = parse(ExportCommand, arguments, name="export")
    fits = {"model": ("role", "step"), "inspect": ("max_episodes",)}.get(command.format, ("file",))
    for name in ("role", "step", "max_episodes", "file"):
        if name not in fits and getattr(command, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"expect no {option} with --format {command.format}: leave it out")
    try:
        if command.format == "model":
            text = _export_model(command)
        elif command.format == "inspect":
            text = _export_episodes(command)
        else:
            text = _export_data(command, command.format)
    except (RunError, MissingExtraError, FileExistsError) as error:
        raise InputError(str(error)) from error
    say(Console(), text)
    return 0


def _export_episodes(command: ExportCommand) -> str:
    from codea1_env.report.inspect_log import write_inspect_log
    from codea1_env.report.runs import read_run

    most = _EPISODES if command.max_episodes is None else command.max_episodes
    if most < 1:
        raise InputError(f"expect --max-episodes to be 1 or more, actually: {most}")
    if command.output_dir.is_file():
        raise InputError(
            f"expect --output-dir to be a folder, actually {command.output_dir} is a file"
        )
    found = read_run(command.run, command.run.resolve().name)
    written = write_inspect_log(found, command.output_dir, most)
    return f"Wrote {written.path} ({written.episodes} of {written.total} episodes)"


def _export_data(command: ExportCommand, kind: Literal["sft", "preference"]) -> str:
    from codea1_env.report.rollout_data import write_rollouts
    from codea1_env.report.runs import read_run

    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    run = read_run(command.run, command.run.resolve().name)
    said: list[str] = []
    rows = write_rollouts(run, kind, command.output_dir, command.file or "jsonl", said.append)
    return " ".join([f"Wrote {command.output_dir} ({rows} rows).", *filter(None, said)])


def _export_model(command: ExportCommand) -> str:
    from codea1_env.report.model_card import model_card
    from codea1_env.report.runs import read_run

    role = command.role or "coder"
    source = find_weights(command.run, role, command.step)
    if command.output_dir.exists():
        raise InputError(f"expect {command.output_dir} to be a new folder, actually: it exists")
    run = read_run(command.run, command.run.resolve().name)
    card = model_card(run, role, step_of(source.parents[1]), source.name)
    shutil.copytree(source, command.output_dir)
    _copy_tokenizer(source, command.output_dir)
    card.save(command.output_dir / "README.md")
    return f"Wrote {command.output_dir}"


def _copy_tokenizer(weights: Path, target: Path) -> None:
    """Put the files of the tokenizer beside an adapter, as peft's users expect, where its base is a folder here."""
    with suppress(OSError, ValueError, KeyError):
        settings = json.loads((weights / "adapter_config.json").read_text(encoding="utf-8"))
        for pattern in _TOKENIZER:
            for file in Path(settings["base_model_name_or_path"]).glob(pattern):
                shutil.copy(file, target / file.name)
